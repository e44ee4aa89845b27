#include "ott/core/base/observer_thread.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "gtest/gtest.h"

namespace ott {
namespace {

double OwnSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void Burn(double seconds) {
  while (OwnSeconds() < seconds) {
  }
}

TEST(ObserverThread, CountsWhileItRunsAndAfterItsEndAndNothingElse) {
  const double before = ObserverThreadSeconds();
  std::promise<void> burnt, asked;
  std::thread own([&] {
    const ObserverThread marked;
    Burn(0.02);
    burnt.set_value();
    asked.get_future().wait();
  });
  burnt.get_future().wait();
  const double running = ObserverThreadSeconds();
  EXPECT_GE(running, before + 0.02);
  asked.set_value();
  own.join();
  EXPECT_GE(ObserverThreadSeconds(), running);
  const double after = ObserverThreadSeconds();
  std::thread([] { Burn(0.02); }).join();
  EXPECT_EQ(ObserverThreadSeconds(), after);
}

TEST(ObserverThread, InTheBackgroundOnlyItIsOfLowPriority) {
  const auto nice = [] { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); };
  const int before = nice(), policy = sched_getscheduler(0);
  for (const bool is_in_background : {false, true}) {
    std::thread([&] {
      const ObserverThread marked(is_in_background ? ObserverThread::Priority::kBackground
                                                   : ObserverThread::Priority::kNormal);
      EXPECT_EQ(nice(), is_in_background ? 19 : before);
      EXPECT_EQ(sched_getscheduler(0), is_in_background ? SCHED_BATCH : policy);
    }).join();
  }
  EXPECT_EQ(nice(), before);
}

}  // namespace
}  // namespace ott
