// Writes dumps on threads of its own, so that training does not wait for a disk.

#ifndef OTT_CORE_DUMPER_WRITE_QUEUE_H_
#define OTT_CORE_DUMPER_WRITE_QUEUE_H_

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>

#include "absl/status/status.h"
#include "ott/core/base/thread_group.h"

namespace ott {

// Runs jobs, each of which holds some bytes of memory, in the order of their submission. Thread-safe. In a
// process that was forked, Submit() and Flush() return FAILED_PRECONDITION: threads are not forked.
class WriteQueue {
 public:
  struct Options {
    int num_threads = 1;
    // Limit for the jobs that wait or run, together. A single job may be larger.
    int64_t max_bytes = int64_t{1} << 30;
    // If there is no room for a job: false: Submit() waits; true: the job is dropped, and counted.
    bool drop_when_full = false;
    // Threads of ordinary priority would take cores from the training.
    bool background = true;
  };

  explicit WriteQueue(const Options& options);
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;
  // Runs what was submitted.
  ~WriteQueue();

  // Returns the first error of earlier jobs that no call has returned yet; the new job is run all the same.
  // Queues the job. If no thread could be started, runs it and returns its error.
  absl::Status Submit(int64_t num_bytes, std::function<absl::Status()> job);

  // Waits until all jobs are done that were submitted before this call; others may go on submitting. The
  // first error that no call has returned yet.
  absl::Status Flush();

  int64_t num_dropped() const;

 private:
  struct Job {
    int64_t number;  // in the order of submission
    int64_t num_bytes;
    std::function<absl::Status()> run;
  };

  void Work();
  absl::Status TakeError();

  const Options options_;
  const pid_t process_;
  mutable std::mutex mutex_;
  std::condition_variable job_came_;
  std::condition_variable job_done_;
  std::deque<Job> jobs_;
  int64_t num_bytes_ = 0;  // of jobs that wait or run
  int64_t num_submitted_ = 0;
  std::set<int64_t> unfinished_;  // numbers of jobs that wait or run
  int64_t num_dropped_ = 0;
  absl::Status error_;
  bool stop_ = false;
  ThreadGroup threads_;
};

}  // namespace ott

#endif  // OTT_CORE_DUMPER_WRITE_QUEUE_H_
