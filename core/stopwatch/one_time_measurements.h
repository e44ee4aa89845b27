// Measurements that run once in a process, such as loading the data.

#ifndef OTT_CORE_STOPWATCH_ONE_TIME_MEASUREMENTS_H_
#define OTT_CORE_STOPWATCH_ONE_TIME_MEASUREMENTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/base/clock.h"
#include "ott/core/base/place.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"

namespace ott::internal {

// Not synchronised.
class OneTimeMeasurements {
 public:
  // Returns what rule the call breaks, or "". now: ticks. recorder: may be null.
  std::string Start(std::string_view name, uint64_t now, Place place, FlightRecorder* recorder);
  std::string End(std::string_view name, uint64_t now, Place place);

  // In the order of their starts. clock: that of the ticks; what runs has lasted until now.
  std::vector<StopwatchSnapshot::OneTime> Read(const Clock& clock) const;

 private:
  struct Measurement {
    std::string name;
    uint64_t start;
    uint64_t end;
    bool running;
    int thread;
    Place place;
    // Null if there is no flight recorder, or no place in it.
    FlightRecorder::Measurement* flight;
  };

  std::vector<Measurement> measurements_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_ONE_TIME_MEASUREMENTS_H_
