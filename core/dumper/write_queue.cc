#include "ott/core/dumper/write_queue.h"

#include <unistd.h>

#include <utility>

#include "ott/core/base/observer_thread.h"

namespace ott {
namespace {

absl::Status Forked() {
  return absl::FailedPreconditionError(
      "this process was forked, and the threads that write dumps are its parent's; dump there, or without "
      "writer threads");
}

}  // namespace

WriteQueue::WriteQueue(const Options& options) : options_(options), process_(getpid()) {
  for (int i = 0; i < options.num_threads && threads_.Start([this] { Work(); });) ++i;
}

WriteQueue::~WriteQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  job_came_.notify_all();
  threads_.Join();
}

absl::Status WriteQueue::Submit(int64_t num_bytes, std::function<absl::Status()> job) {
  if (getpid() != process_) return Forked();
  if (threads_.empty()) return job();
  std::unique_lock lock(mutex_);
  const auto has_room = [&] { return unfinished_.empty() || num_bytes_ + num_bytes <= options_.max_bytes; };
  if (options_.drop_when_full && !has_room()) {
    ++num_dropped_;
    return TakeError();
  }
  job_done_.wait(lock, has_room);
  unfinished_.insert(num_submitted_);
  jobs_.push_back({num_submitted_++, num_bytes, std::move(job)});
  num_bytes_ += num_bytes;
  job_came_.notify_one();
  return TakeError();
}

absl::Status WriteQueue::Flush() {
  if (getpid() != process_) return Forked();
  std::unique_lock lock(mutex_);
  job_done_.wait(lock,
                 [this, end = num_submitted_] { return unfinished_.empty() || *unfinished_.begin() >= end; });
  return TakeError();
}

int64_t WriteQueue::num_dropped() const {
  const std::lock_guard lock(mutex_);
  return num_dropped_;
}

absl::Status WriteQueue::TakeError() { return std::exchange(error_, absl::OkStatus()); }

void WriteQueue::Work() {
  const ObserverThread marked(options_.background ? ObserverThread::Priority::kBackground
                                                  : ObserverThread::Priority::kNormal);
  std::unique_lock lock(mutex_);
  while (true) {
    job_came_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const absl::Status status = job.run();
    // Frees its memory before the room is given to others.
    job.run = nullptr;
    lock.lock();
    error_.Update(status);
    num_bytes_ -= job.num_bytes;
    unfinished_.erase(job.number);
    job_done_.notify_all();
  }
}

}  // namespace ott
