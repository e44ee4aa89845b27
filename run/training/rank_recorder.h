// A rank's flight recorder in a run, and the watchdog over it.

#ifndef OTT_RUN_TRAINING_RANK_RECORDER_H_
#define OTT_RUN_TRAINING_RANK_RECORDER_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/clock.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/dist/comm/communicator.h"
#include "ott/questions/hang/recorded_communicator.h"
#include "ott/questions/hang/recorder_exchange.h"
#include "ott/questions/hang/watchdog.h"
#include "ott/run/training/run_frame.h"

namespace ott {

// Records what the stopwatch measures, and the calls of ranks(), so that `ott hang` and the watchdog know
// where this rank stands. Not thread-safe.
class RankRecorder {
 public:
  // Also tells the recorder who waits for whom, as configured. Start the stopwatch before.
  static absl::StatusOr<std::unique_ptr<RankRecorder>> Start(const RunFrame& frame);
  RankRecorder(const RankRecorder&) = delete;
  RankRecorder& operator=(const RankRecorder&) = delete;

  // Lets ranks whose hosts share no directory see each other's recorders. Collective.
  absl::Status Exchange();

  // Returns those of the frame, with their calls recorded.
  Communicator& ranks() { return *recorded_ranks_; }

  // Records, while the result exists, that ranks wait for each other in a cross-check or in a gather of
  // statistics; nothing if `recorder` is null.
  static RecordedOperation InCheck(const RankRecorder* recorder);
  static RecordedOperation InGather(const RankRecorder* recorder);

  void SetOnHang(std::function<void(const HangVerdict&)> on_hang) {
    watchdog_->SetOnHang(std::move(on_hang));
  }

  // Ends an iteration, which the stopwatch tells the recorder of where it is on.
  void FinishIter();
  // Says that the process leaves the run in order.
  void SetFinished() { recorder_->SetFinished(); }
  // Says that the user ended the process.
  void SetInterrupted() { recorder_->SetTerminated(kFlightInterrupt); }
  // Says that the run is over, whatever the process does from now on.
  void SetLeft() { recorder_->SetLeft(); }

 private:
  RankRecorder(const RunFrame& frame, FlightRecorder* recorder, const Clock& clock);

  const RunFrame& frame_;
  const Clock& clock_;
  // Never destroyed.
  FlightRecorder* const recorder_;
  FlightRecorder::Measurement* const check_;
  FlightRecorder::Measurement* const gather_;
  std::unique_ptr<RecorderExchange> exchange_;
  std::unique_ptr<HangWatchdog> watchdog_;
  std::unique_ptr<Communicator> recorded_ranks_;
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_RANK_RECORDER_H_
