// The parts of a Stopwatch that need protobuf, apart from the rest: a program that only measures links none
// of it.

#include "ott/core/base/config.pb.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {

Stopwatch::Options Stopwatch::FromConfig(const StopwatchConfig& config) {
  // Who holds the others up takes 40 iterations, and a model in shards has some 400 collectives in each. A
  // mebibyte each for those that have so many.
  constexpr size_t kArrivalsLimit = 16384;
  Options options;
  options.num_warmup_iters = config.num_warmup_iters();
  options.print_every_n_iters = config.print_every_n_iters();
  if (config.device_sync() == DEVICE_SYNC_DEVICE) options.device_sync = DeviceSync::kDevice;
  if (config.device_sync() == DEVICE_SYNC_STREAM) options.device_sync = DeviceSync::kStream;
  if (config.device_sync() == DEVICE_SYNC_EVENTS) options.device_sync = DeviceSync::kEvents;
  // cudaStreamPerThread
  if (config.per_thread_default_stream()) options.stream = reinterpret_cast<void*>(uintptr_t{2});
  options.collective_measurements.assign(config.collective_measurements().begin(),
                                         config.collective_measurements().end());
  options.sampled_measurements.assign(config.sampled_measurements().begin(),
                                      config.sampled_measurements().end());
  options.cpu_usage_measurement = config.cpu_usage_measurement();
  options.emit_nvtx = config.emit_nvtx();
  if (config.has_series_limit()) options.series_limit = static_cast<size_t>(config.series_limit());
  options.watch_cpu = !config.has_watch_cpu() || config.watch_cpu();
  options.arrivals_limit =
      config.arrivals_limit() == 0 ? kArrivalsLimit : static_cast<size_t>(config.arrivals_limit());
  if (config.on_misuse() == MISUSE_POLICY_ABORT) options.on_misuse = OnMisuse::kAbort;
  return options;
}

void Stopwatch::Stats(StopwatchStats* stats) const { ToProto(Snapshot(), stats); }

std::string Stopwatch::Json() const {
  StopwatchStats stats;
  Stats(&stats);
  return ProtoToJson(stats, JsonLayout::kIndented);
}

}  // namespace ott
