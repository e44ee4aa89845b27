// The parts of Profiler that need protobuf, apart from the rest.

#include "ott/core/base/config.pb.h"
#include "ott/core/trace/profiler.h"

namespace ott {

Profiler::Options Profiler::FromConfig(const ProfileConfig& config) {
  Options options;
  options.schedule = Schedule::FromConfig(config);
  options.synchronize_device = config.synchronize_device();
  if (config.thread_buffer_mib() > 0) {
    options.thread_buffer_bytes = static_cast<size_t>(config.thread_buffer_mib()) << 20;
  }
  return options;
}

}  // namespace ott
