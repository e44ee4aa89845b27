#include "ott/dist/comm/other_calls.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {
namespace {

using testing::ElementsAre;

// Returns what each rank is told; a rank without a call does not ask.
std::vector<std::string> Told(const std::vector<std::string>& calls) {
  auto ranks = CreateSimulatedCommunicators(std::vector<std::string>(calls.size(), "node"));
  std::vector<std::string> told(calls.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    if (calls[rank].empty()) continue;
    threads.emplace_back(
        [&, rank] { told[rank] = DescribeCalls(*ranks[rank], calls[rank], std::chrono::milliseconds(500)); });
  }
  for (std::thread& thread : threads) thread.join();
  return told;
}

TEST(DescribeCalls, AllRanksAreToldWhoCalledWhatAndWhoIsMissing) {
  const std::string told =
      "ranks 0, 2 called AreEqual #3; rank 1 (node) called Broadcast #3; nothing from rank 3 (node)";
  EXPECT_THAT(Told({"AreEqual #3", "Broadcast #3", "AreEqual #3", ""}), ElementsAre(told, told, told, ""));
  EXPECT_THAT(Told({"", "AreEqual #3"}), ElementsAre("", "called AreEqual #3; nothing from rank 0 (node)"));
}

}  // namespace
}  // namespace ott
