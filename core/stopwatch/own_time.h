// The time that a process itself needs for an iteration: without waiting for other ranks, and without the
// time in which others had its CPU.

#ifndef OTT_CORE_STOPWATCH_OWN_TIME_H_
#define OTT_CORE_STOPWATCH_OWN_TIME_H_

#include <optional>

#include "ott/core/statistics/steady_time.h"

namespace ott {

struct OwnTime {
  // nullopt: too few iterations.
  std::optional<SteadyTime> all;
  // The time in the window that was closed last; nullopt if there were too few iterations to close it.
  std::optional<SteadyTime> window;
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

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_OWN_TIME_H_
