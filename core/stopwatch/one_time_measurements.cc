#include "core/stopwatch/one_time_measurements.h"

#include "absl/strings/str_cat.h"
#include "core/stopwatch/ticks.h"
#include "ott/core/base/misuse.h"

namespace ott::internal {

std::string OneTimeMeasurements::Start(std::string_view name, uint64_t now, Place place,
                                       FlightRecorder* recorder) {
  for (const Measurement& known : measurements_) {
    if (known.name != name) continue;
    return absl::StrCat("StartOneTime(", Quoted(name), ") at ", At(place), " on thread ", ThisThreadId(),
                        ", but it was started at ", At(known.place), " by thread ", known.thread,
                        "; it can run but once");
  }
  FlightRecorder::Measurement* const flight =
      recorder == nullptr ? nullptr : recorder->Add(name, FlightOperation());
  if (flight != nullptr) FlightRecorder::Begin(flight, now, ThisThreadId());
  measurements_.push_back({std::string(name), now, now, true, ThisThreadId(), place, flight});
  return "";
}

std::string OneTimeMeasurements::End(std::string_view name, uint64_t now, Place place) {
  for (Measurement& known : measurements_) {
    if (known.name != name || !known.running) continue;
    known.running = false;
    known.end = now;
    if (known.flight != nullptr) FlightRecorder::End(known.flight, now, ThisThreadId());
    return "";
  }
  return absl::StrCat("EndOneTime(", Quoted(name), ") at ", At(place), " on thread ", ThisThreadId(),
                      ", but it does not run; start it first");
}

std::vector<StopwatchSnapshot::OneTime> OneTimeMeasurements::Read(const Clock& clock) const {
  std::vector<StopwatchSnapshot::OneTime> all;
  for (const Measurement& measurement : measurements_) {
    const uint64_t end = measurement.running ? clock.Ticks() : measurement.end;
    const uint64_t duration = PicosecondsBetween(clock, measurement.start, end);
    all.push_back({measurement.name, static_cast<double>(duration) * 1e-12, measurement.running});
  }
  return all;
}

}  // namespace ott::internal
