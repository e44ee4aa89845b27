// Two copies of the library that look for each other at the same time. This executable has none.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace {

using CounterOrNull = int64_t*();

CounterOrNull* Open(const std::string& name) {
  void* const handle =
      dlopen(("core/base/lib" + name + "_plugin_for_test.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  return handle != nullptr ? reinterpret_cast<CounterOrNull*>(dlsym(handle, "CounterOrNull")) : nullptr;
}

// In a process where no copy has looked yet.
bool MeetInThreads() {
  CounterOrNull* const first = Open("first_lazy");
  CounterOrNull* const second = Open("second_lazy");
  if (first == nullptr || second == nullptr) return false;
  std::atomic<int> num_ready{0};
  const auto find = [&num_ready](CounterOrNull* counter, int64_t** found) {
    ++num_ready;
    while (num_ready < 2) {
    }
    *found = counter();
  };
  int64_t* of_first = nullptr;
  int64_t* of_second = nullptr;
  std::thread other([&] { find(second, &of_second); });
  find(first, &of_first);
  other.join();
  return of_first != nullptr && of_first == of_second;
}

TEST(ProcessWide, CopiesThatLookAtTheSameTimeMeet) {
  constexpr int kNumProcesses = 200;
  int num_met = 0;
  for (int i = 0; i < kNumProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(MeetInThreads() ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (status == 0) ++num_met;
  }
  EXPECT_EQ(num_met, kNumProcesses);
}

}  // namespace
