// Keeps a rank's flight recorder alive, and asks why the job stands once it has waited for too long.

#ifndef OTT_QUESTIONS_HANG_WATCHDOG_H_
#define OTT_QUESTIONS_HANG_WATCHDOG_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/thread_group.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/questions/hang/hang.pb.h"
#include "ott/questions/hang/recorder_exchange.h"

namespace ott {

class HangConfig;  // config.proto

// Returns RUN/hang.json.
std::string HangVerdictPath(const std::string& run_dir);

// A thread that beats the recorder's heart every second. With after_seconds, it also watches whether the rank
// has begun or ended anything for so long. The first rank of the job that finds it has not reads the
// recorders of all in the run directory, prints the verdict on stderr, and writes RUN/hang.json. A verdict of
// "not hanging" is not printed, and asked for again later. Each rank that stands then does what it was told,
// once.
class HangWatchdog {
 public:
  enum class Reaction {
    kGoOn,
    // Ends the process with abort().
    kAbort,
  };

  struct Options {
    std::string run_dir;
    // 0: nothing is watched.
    double after_seconds = 0;
    Reaction reaction = Reaction::kGoOn;
    // On the watchdog's thread, before the reaction, on each rank that stands.
    std::function<void(const HangVerdict&)> on_hang;
  };

  // Options of an ott.Config, but for the directory.
  static Options FromConfig(const HangConfig& config);

  // `clock` is the recorder's. Without a free thread nothing is watched, as a line on stderr says.
  HangWatchdog(FlightRecorder* recorder, const Clock& clock, Options options);
  HangWatchdog(const HangWatchdog&) = delete;
  HangWatchdog& operator=(const HangWatchdog&) = delete;
  ~HangWatchdog();

  void SetOnHang(std::function<void(const HangVerdict&)> on_hang);

  // Answers for a rank, for the exchange.
  static RecorderExchange::Answers AnswersOf(const std::string& run_dir, int rank);
  // Sets whom to ask for recorders that are not in the run directory, as hosts do not share it. Must outlive
  // the watchdog.
  void SetExchange(const RecorderExchange* exchange);

 private:
  void Run();
  void Watch();
  // Returns true if this rank is the one that diagnoses; no other will until the file of the turn is removed.
  bool TakeTurn();
  void Diagnose();
  void React(const HangVerdict& verdict);
  double IdleSeconds() const;

  FlightRecorder* const recorder_;
  const Clock clock_;
  const uint64_t started_;
  Options options_;
  std::atomic<const RecorderExchange*> exchange_{nullptr};
  // Those that were asked for their recorders.
  std::vector<int> elsewhere_;
  // The rank that gave this rank its turn; -1: nobody was asked.
  int turn_of_ = -1;
  // The event that was the last when this rank reacted; it reacts again after another.
  uint64_t reacted_at_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  ThreadGroup thread_;
};

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_WATCHDOG_H_
