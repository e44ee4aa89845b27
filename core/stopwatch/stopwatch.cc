#include "ott/core/stopwatch/stopwatch.h"

#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/report.h"
#include "stopwatch_core.h"

namespace ott {

constexpr Stopwatch::Stopwatch(const char* process_wide_name) : core_(process_wide_name) {}

constexpr StopwatchOfThisProcess::Immortal::Immortal() : stopwatch("ott.Stopwatch") {}

StopwatchOfThisProcess::Immortal StopwatchOfThisProcess::instance;

const ProcessWide<internal::StopwatchCore>::JoinAtLoad StopwatchOfThisProcess::join_at_load(
    instance.stopwatch.core_);

Stopwatch::Stopwatch(const Environment& environment) : Stopwatch(new internal::StopwatchCore(environment)) {}

Stopwatch::Stopwatch(internal::StopwatchCore* own_core) : core_(own_core), own_core_(own_core) {}

Stopwatch::~Stopwatch() { delete own_core_; }

Stopwatch::Options Stopwatch::FromConfig(const StopwatchConfig& config) {
  Options options;
  options.num_warmup_iters = config.num_warmup_iters();
  options.print_every_n_iters = config.print_every_n_iters();
  if (config.device_sync() == DEVICE_SYNC_DEVICE) options.device_timing = DeviceTiming::kSynchronizeDevice;
  options.collective_measurements.assign(config.collective_measurements().begin(),
                                         config.collective_measurements().end());
  return options;
}

absl::Status Stopwatch::Enable(const Options& options, Place place) {
  OTT_ASSIGN_OR_RETURN(internal::StopwatchCore* const core, core_.Find());
  OTT_RETURN_IF_ERROR(core->Enable(options, place));
  core_.SetEnabled(true);
  return absl::OkStatus();
}

void Stopwatch::Stats(StopwatchStats* stats) const {
  if (const internal::StopwatchCore* core = core_.IfEnabled(); core != nullptr) core->Stats(stats);
}

std::string Stopwatch::Table() const {
  StopwatchStats stats;
  Stats(&stats);
  return FormatTable(stats);
}

std::string Stopwatch::Json() const {
  StopwatchStats stats;
  Stats(&stats);
  return FormatJson(stats);
}

}  // namespace ott
