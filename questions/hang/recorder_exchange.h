// Lets ranks see each other's flight recorders if hosts do not share the run directory.

#ifndef OTT_QUESTIONS_HANG_RECORDER_EXCHANGE_H_
#define OTT_QUESTIONS_HANG_RECORDER_EXCHANGE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/thread_group.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/socket.h"

namespace ott {

// A rank elsewhere is waited for so long.
inline constexpr std::chrono::nanoseconds kTimeToAnswer = std::chrono::seconds(2);

// Answers other ranks of this job, on a thread and by sockets of its own, so also while the program stands in
// whatever library; and asks them. Who does not know the job's token is not answered.
class RecorderExchange {
 public:
  // Gives what this rank answers, on the exchange's thread.
  struct Answers {
    // The bytes of its recorder.
    std::function<absl::StatusOr<std::string>()> recorder;
    // True if the rank that asks is the first, and so the one to diagnose.
    std::function<bool()> take_turn;
    // Takes what another rank found.
    std::function<void(const std::string& verdict)> set_verdict;
  };

  // Collective: every rank says where it listens.
  static absl::StatusOr<std::unique_ptr<RecorderExchange>> Start(Communicator& ranks, Answers answers,
                                                                 Deadline deadline);
  RecorderExchange(const RecorderExchange&) = delete;
  RecorderExchange& operator=(const RecorderExchange&) = delete;
  ~RecorderExchange();

  // Thread-safe. DEADLINE_EXCEEDED or UNAVAILABLE, naming the rank, where it does not answer.
  absl::StatusOr<std::string> AskForRecorder(int rank, Deadline deadline) const;
  absl::StatusOr<bool> AskForTurn(int rank, Deadline deadline) const;
  absl::Status SendVerdict(int rank, const std::string& verdict, Deadline deadline) const;

  int size() const { return static_cast<int>(peers_.size()); }

 private:
  struct Peer {
    std::string host;
    int port = 0;
  };

  RecorderExchange(Socket listener, Answers answers);
  absl::StatusOr<std::string> Ask(int rank, uint64_t kind, const std::string& contents,
                                  Deadline deadline) const;
  void Serve();
  void AnswerOne(const Socket& socket) const;

  const Socket listener_;
  const Answers answers_;
  int rank_ = 0;
  uint64_t token_ = 0;
  std::vector<Peer> peers_;
  std::atomic<bool> ends_{false};
  ThreadGroup thread_;
};

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_RECORDER_EXCHANGE_H_
