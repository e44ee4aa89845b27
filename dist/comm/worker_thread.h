// A thread that is started once, and runs tasks when there are any.

#ifndef OTT_DIST_COMM_WORKER_THREAD_H_
#define OTT_DIST_COMM_WORKER_THREAD_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>

#include "absl/status/status.h"
#include "ott/core/base/thread_group.h"

namespace ott {

// Runs tasks one after another. Handing it a task costs the caller a third of std::async(), which starts a
// thread.
//
// Thread-safe.
class WorkerThread {
 public:
  WorkerThread() : has_thread_(thread_.Start([this] { Work(); })) {}
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;
  // Waits until all tasks are done.
  ~WorkerThread();

  // Returns what `task` will return. Waits for nothing, unless no thread was free, which makes it run the
  // task.
  std::future<absl::Status> Run(std::function<absl::Status()> task);

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<absl::Status()>> tasks_;  // guarded by mutex_
  bool ends_ = false;                                     // guarded by mutex_
  ThreadGroup thread_;                                    // joined before what it uses is destroyed
  const bool has_thread_;
};

}  // namespace ott

#endif  // OTT_DIST_COMM_WORKER_THREAD_H_
