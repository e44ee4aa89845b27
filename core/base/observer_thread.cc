#include "ott/core/base/observer_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace ott {
namespace {

double SecondsOf(clockid_t clock) {
  timespec time = {};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Threads {
  std::mutex mutex;
  std::vector<clockid_t> running;  // guarded by mutex
  double ended_seconds = 0;        // guarded by mutex
};

// Never destroyed: threads may end later than main().
Threads& All() {
  static Threads* const threads = new Threads;
  return *threads;
}

clockid_t OwnClock() {
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  pthread_getcpuclockid(pthread_self(), &clock);
  return clock;
}

// Leaves as it is what is not allowed.
void RunInBackground() {
  const sched_param parameters = {};
  sched_setscheduler(0, SCHED_BATCH, &parameters);
  // On Linux, the nice value is a thread's.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
}

}  // namespace

ObserverThread::ObserverThread(Priority priority) {
  if (priority == Priority::kBackground) RunInBackground();
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().running.push_back(OwnClock());
}

ObserverThread::~ObserverThread() {
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().ended_seconds += SecondsOf(OwnClock());
  std::vector<clockid_t>& running = All().running;
  running.erase(std::find(running.begin(), running.end(), OwnClock()));
}

double ObserverThreadSeconds() {
  const std::lock_guard<std::mutex> lock(All().mutex);
  double seconds = All().ended_seconds;
  for (const clockid_t clock : All().running) seconds += SecondsOf(clock);
  return seconds;
}

}  // namespace ott
