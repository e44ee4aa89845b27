// Takes the buffers of all captured processes, each as it begins, and writes a file of each.

#ifndef OTT_TOOLS_PROFILE_CAPTURE_RECEIVER_H_
#define OTT_TOOLS_PROFILE_CAPTURE_RECEIVER_H_

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/profile/capture_session.h"
#include "tools/profile/channel.h"

namespace ott::profile {

// `run.sqlite` for a process of no job, `run.rank_00003.sqlite` for one of rank 3; further processes, with
// number 1 and up, have their ids in the name, `run.pid_1234.sqlite`, `run.pid_1234_2.sqlite`.
std::string CapturePath(const std::string& output, int rank, int pid, int number);

// Thread-safe.
class CaptureReceiver {
 public:
  struct Options {
    std::string output;      // as in CapturePath
    bool overwrite = false;  // files that are there; else their names are passed over
    SessionStart start;
    std::string command;
  };

  static absl::StatusOr<std::unique_ptr<CaptureReceiver>> Create(Options options);
  ~CaptureReceiver();

  // For kSocketVariable.
  const std::string& address() const { return address_; }

  // Ends all captures. A process that runs on is in summaries' problems.
  std::vector<CaptureSummary> Stop();

 private:
  CaptureReceiver(Options options, int listening, int stop, std::string address)
      : options_(std::move(options)), listening_(listening), stop_(stop), address_(std::move(address)) {}

  void Accept();
  void AcceptAll();
  void Receive(ReceivedBuffer received, absl::StatusOr<std::unique_ptr<CaptureSession>> session);
  absl::StatusOr<std::unique_ptr<CaptureSession>> MakeSession(const ReceivedBuffer& received);

  const Options options_;
  const int listening_;
  const int stop_;  // an eventfd
  const std::string address_;
  std::thread acceptor_;
  // The acceptor's.
  std::vector<std::thread> sessions_;
  std::set<std::string> paths_;
  std::mutex mutex_;
  std::vector<CaptureSummary> summaries_;
};

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_CAPTURE_RECEIVER_H_
