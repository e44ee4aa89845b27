#include "ott/core/base/per_thread.h"

#include <thread>

#include "gtest/gtest.h"

namespace ott::internal {
namespace {

struct State {
  int value = 0;
  int num_entered = 0;
};

void Enter(State& state) { ++state.num_entered; }
bool Keep(State&) { return true; }

TEST(PerThread, GivesEachThreadItsOwnWhichItLeavesToTheNext) {
  PerThread<State> states(Enter, Keep);
  State& mine = states.Get();
  EXPECT_EQ(&states.Get(), &mine);
  for (int i = 0; i < 10; ++i) {
    std::thread([&, i] {
      EXPECT_NE(&states.Get(), &mine);
      EXPECT_EQ(states.Get().value++, i);
      EXPECT_EQ(states.Get().num_entered, i + 1);
    }).join();
  }
  const std::lock_guard<std::mutex> lock(states.mutex());
  EXPECT_EQ(states.all().size(), 2);
}

TEST(PerThread, AStateThatCannotBeLeftIsKeptForItself) {
  PerThread<State> states(Enter, [](State& state) { return state.value == 0; });
  std::thread([&states] { states.Get().value = 1; }).join();
  std::thread([&states] { EXPECT_EQ(states.Get().value, 0); }).join();
  const std::lock_guard<std::mutex> lock(states.mutex());
  EXPECT_EQ(states.all().size(), 2);
}

TEST(PerThread, SeveralDoNotMixOnOneThreadNorOneAfterAnother) {
  for (int i = 0; i < 100; ++i) {
    PerThread<State> a(Enter, Keep);
    PerThread<State> b(Enter, Keep);
    EXPECT_EQ(a.Get().value++, 0);
    EXPECT_EQ(b.Get().value++, 0);
    EXPECT_EQ(a.Get().value++, 1);
  }
}

}  // namespace
}  // namespace ott::internal
