#include "ott/dist/comm/worker_thread.h"

#include <utility>

#include "ott/core/base/observer_thread.h"

namespace ott {

WorkerThread::~WorkerThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
}

std::future<absl::Status> WorkerThread::Run(std::function<absl::Status()> task) {
  std::packaged_task<absl::Status()> packaged(std::move(task));
  std::future<absl::Status> result = packaged.get_future();
  if (!has_thread_) {
    packaged();
    return result;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(packaged));
  }
  changed_.notify_one();
  return result;
}

void WorkerThread::Work() {
  const ObserverThread marked;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::packaged_task<absl::Status()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace ott
