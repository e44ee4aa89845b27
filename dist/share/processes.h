// Several processes that answer one question: each reads the files that are on its host, or its share where
// all see them, and only summaries travel.

#ifndef OTT_DIST_SHARE_PROCESSES_H_
#define OTT_DIST_SHARE_PROCESSES_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/thread_group.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/share/share.pb.h"

namespace ott {

namespace internal {
class FarIndex;
}  // namespace internal

// Makes a summary of what an argument names, on up to num_threads threads. The result depends on the argument
// and the files alone, so that it is the same wherever it is made.
struct ShareTask {
  const char* name;
  absl::StatusOr<std::string> (*run)(const std::string& argument, int num_threads);
};

struct SharePiece {
  std::string argument;
  // The files and folders that it is made of: a process works on it that has all of them.
  std::vector<std::string> paths;
  // Heavier ones are begun first.
  int64_t weight = 0;
};

// The processes of a command. A thread of its own talks, so a process that works is not taken for a dead one.
// One that is silent for `patience`, or is gone, is lost: others that see the same files work on its pieces,
// and a piece of files that only it has is an UNAVAILABLE error that names it and its host.
//
// Thread-safe. Calls of Run() wait for each other.
class Processes {
 public:
  struct Options {
    std::chrono::nanoseconds patience = std::chrono::seconds(30);
    // Pieces at a time; 0: as many as there are cores.
    int num_threads = 0;
    // Returns true if the launcher ends the job: nobody is waited for any more. Null: it never does.
    bool (*is_ending)() = nullptr;
  };

  // Collective. `connect` is called on the thread that talks. Errors of it. tasks: the same in all processes.
  static absl::StatusOr<std::unique_ptr<Processes>> Start(
      std::function<absl::StatusOr<std::unique_ptr<Communicator>>()> connect, std::vector<ShareTask> tasks,
      const Options& options);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }

  // On other processes than the first: works until that one is done or lost; an error says that it is lost.
  absl::Status Serve();

  // The following are for the first process.

  // Asks the others which files they have below the paths that are folders. Where those are not here, as
  // well, the functions of core/base/file.h find them from now on.
  void FindFiles(const std::vector<std::string>& paths);
  // Returns the results in the order of the pieces. Errors: as the task's, or UNAVAILABLE for a lost process.
  std::vector<absl::StatusOr<std::string>> Run(const ShareTask& task, const std::vector<SharePiece>& pieces);
  // Returns "process 2 (node7): no sign of life for 30 s" of each that was lost before it was done with all.
  std::vector<std::string> Lost() const;
  // Says how many processes worked on what, and how much travelled.
  std::string Describe() const;
  // Ends the others. False if not all ended well: then do not wait for the launcher's library, end by
  // _exit().
  bool Finish();

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    Clock::time_point heard;
    absl::Status lost;  // OK: it lives
    bool is_done = false;
    bool sees_ours = false;  // has all files that the first process has
    int num_threads = 1;
    int num_running = 0;
    int64_t num_pieces = 0;
  };

  // The pieces of one Run().
  struct Batch {
    const ShareTask* task;
    const std::vector<SharePiece>* pieces;
    int64_t first_number;
    int at_a_time;                      // in a process, if it has as many threads
    std::vector<std::vector<int>> who;  // may work on a piece
    std::vector<int> where;             // works on it; -1: nobody
    std::deque<size_t> waiting;
    std::vector<std::optional<absl::StatusOr<std::string>>> results;
    size_t num_results = 0;
  };

  Processes(std::vector<ShareTask> tasks, const Options& options);

  void Talk(const std::function<absl::StatusOr<std::unique_ptr<Communicator>>()>& connect);
  // Returns true if anything came or went.
  bool TalkOnce(Communicator& all);

  // The following need mutex_.
  void Post(int to, const google::protobuf::MessageLite& message);
  void Handle(int from, const std::string& bytes);
  void HandleReply(int from, internal::ShareReply reply);
  void Lose(int peer, absl::Status why);
  void GiveOut(int peer);
  std::optional<size_t> Take(int process);
  void PutBack(size_t piece, int without, absl::Status why);
  void SetResult(size_t piece, absl::StatusOr<std::string> result);
  std::string NameOf(int peer) const;

  std::vector<int> WhoHas(const std::vector<std::string>& paths) const;
  std::vector<absl::StatusOr<std::string>> RunAt(const ShareTask& task, const std::vector<SharePiece>& pieces,
                                                 std::vector<std::vector<int>> who);
  void Work(Batch& batch, int num_threads);

  const std::vector<ShareTask> tasks_;
  const Options options_;
  const int num_threads_;
  std::unique_ptr<internal::FarIndex> files_;

  std::mutex run_mutex_;  // one batch at a time
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<absl::Status> started_;
  int rank_ = 0;
  std::vector<std::string> hosts_;
  std::vector<Peer> peers_;  // by rank
  std::deque<std::pair<int, std::string>> leaving_;
  std::deque<internal::ShareRequest> requests_;
  Batch* batch_ = nullptr;
  int64_t num_pieces_ = 0;
  int64_t bytes_arrived_ = 0;
  bool is_done_ = false;
  bool ends_ = false;     // the thread that talks is to end
  bool is_clean_ = true;  // all ended well

  Clock::time_point beat_;
  ThreadGroup talker_;
};

// Runs the task on the processes of this command, or without any on threads of this one.
std::vector<absl::StatusOr<std::string>> RunShared(const ShareTask& task,
                                                   const std::vector<SharePiece>& pieces);

// Returns how many processes RunShared() uses.
int NumProcesses();

// Makes RunShared() use these processes from now on. Null: this process works alone.
void SetProcesses(Processes* processes);

}  // namespace ott

#endif  // OTT_DIST_SHARE_PROCESSES_H_
