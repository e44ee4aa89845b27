// What a process takes by itself, iteration after iteration: without waiting for other ranks, and without
// what its CPU did for others.

#ifndef OTT_CORE_STOPWATCH_OWN_TIME_H_
#define OTT_CORE_STOPWATCH_OWN_TIME_H_

#include <optional>

#include "ott/core/statistics/steady_time.h"

namespace ott {

struct OwnTime {
  // nullopt: too few iterations.
  std::optional<SteadyTime> all;
  // Of the window that was closed last; nullopt if it had too few to be closed.
  std::optional<SteadyTime> window;
};

// Not synchronised.
class OwnTimeRecorder {
 public:
  void Add(double seconds) {
    all_.Add(seconds);
    open_.Add(seconds);
  }

  // Ends the window of iterations since the last one that was closed, if there are enough of them; else they
  // go on.
  void CloseWindow() {
    closed_ = open_.Finish();
    if (closed_.has_value()) open_ = SteadyTimeRecorder();
  }

  OwnTime Read() const { return {all_.Finish(), closed_}; }

 private:
  SteadyTimeRecorder all_;
  SteadyTimeRecorder open_;
  std::optional<SteadyTime> closed_;
};

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_OWN_TIME_H_
