// The parts of FlightRecorder that need protobuf, apart from the rest.

#include "ott/core/base/config.pb.h"
#include "ott/core/flight/flight_recorder.h"

namespace ott {

FlightRecorder::Options FlightRecorder::FromConfig(const HangConfig& config) {
  Options options;
  if (config.recorder_bytes() != 0) options.bytes = static_cast<size_t>(config.recorder_bytes());
  return options;
}

}  // namespace ott
