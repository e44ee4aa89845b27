// The time that a process itself needs for an iteration: without waiting for other ranks, and without the
// time in which others had its CPU.

#ifndef OTT_CORE_STOPWATCH_OWN_TIME_H_
#define OTT_CORE_STOPWATCH_OWN_TIME_H_

#include <memory>
#include <optional>

#include "ott/core/statistics/steady_time.h"

namespace ott {

struct OwnTime {
  // nullopt: too few iterations.
  std::optional<SteadyTime> all;
  // The time in the window that was closed last; nullopt if there were too few iterations to close it.
  std::optional<SteadyTime> window;
  // The same with the time in which others had the CPU; nullopt if they never had it.
  std::optional<SteadyTime> all_with_taken = std::nullopt;
  std::optional<SteadyTime> window_with_taken = std::nullopt;
};

// Not synchronised.
class OwnTimeRecorder {
 public:
  void Add(double seconds) {
    all_.Add(seconds);
    open_.Add(seconds);
  }

  // Closes the window of iterations since the last one that was closed. If these are too few, the window
  // stays open, and false is returned.
  bool CloseWindow() {
    closed_ = open_.Finish();
    if (closed_.has_value()) open_ = SteadyTimeRecorder();
    return closed_.has_value();
  }

  OwnTime Read() const { return {all_.Finish(), closed_}; }

 private:
  SteadyTimeRecorder all_;
  SteadyTimeRecorder open_;
  std::optional<SteadyTime> closed_;
};

// Records the time with what others took of the CPU, too. Not synchronised.
class WorkTimeRecorder {
 public:
  // taken: seconds beside, in which others had the CPU.
  void Add(double seconds, double taken) {
    if (taken > 0 && with_taken_ == nullptr) with_taken_ = std::make_unique<OwnTimeRecorder>(own_);
    own_.Add(seconds);
    if (with_taken_ != nullptr) with_taken_->Add(seconds + taken);
  }

  void CloseWindow() {
    own_.CloseWindow();
    if (with_taken_ != nullptr) with_taken_->CloseWindow();
  }

  OwnTime Read() const {
    OwnTime time = own_.Read();
    if (with_taken_ == nullptr) return time;
    const OwnTime with_taken = with_taken_->Read();
    time.all_with_taken = with_taken.all;
    time.window_with_taken = with_taken.window;
    return time;
  }

 private:
  OwnTimeRecorder own_;
  // Null until something is taken: own_ says it.
  std::unique_ptr<OwnTimeRecorder> with_taken_;
};

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_OWN_TIME_H_
