#include "ott/core/stopwatch/stopwatch.h"

#include "core/stopwatch/stopwatch_core.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/report.h"

namespace ott {
namespace {

std::optional<double> MeanOf(const StopwatchSnapshot& snapshot, std::string_view name,
                             DurationStatistics StopwatchSnapshot::Measurement::*times) {
  for (const StopwatchSnapshot::Measurement& measurement : snapshot.measurements) {
    if (measurement.name == name && (measurement.*times).count() > 0) return (measurement.*times).mean();
  }
  return std::nullopt;
}

}  // namespace

constexpr Stopwatch::Stopwatch(const char* process_wide_name) : core_(process_wide_name) {}

constexpr StopwatchOfThisProcess::Immortal::Immortal() : stopwatch("ott.Stopwatch") {}

StopwatchOfThisProcess::Immortal StopwatchOfThisProcess::instance;

const ProcessWide<internal::StopwatchCore>::JoinAtLoad StopwatchOfThisProcess::join_at_load(
    instance.stopwatch.core_);

ProcessWide<internal::StopwatchCore> internal::stopwatch_of_scopes("ott.Stopwatch");

const ProcessWide<internal::StopwatchCore>::JoinAtLoad join_scopes_at_load(internal::stopwatch_of_scopes);

Stopwatch::Stopwatch(const Environment& environment) : Stopwatch(new internal::StopwatchCore(environment)) {}

Stopwatch::Stopwatch(internal::StopwatchCore* own_core) : core_(own_core) {}

Stopwatch::~Stopwatch() = default;

absl::Status Stopwatch::Enable(const Options& options, Place place) {
  OTT_RETURN_IF_ERROR(core_.Enable(options, place));
  if (options.at_exit && core_.is_process_wide()) {
    internal::CallAtExit([] {
      if (Get().enabled()) Get().core_.IfEnabled()->AtExit(Get());
    });
  }
  return absl::OkStatus();
}

void Stopwatch::Disable() { core_.Disable(); }

bool Stopwatch::enabled() const { return core_.enabled(); }

void Stopwatch::RecordInto(EventRecorder* recorder) { core_.RecordInto(recorder); }

absl::Status Stopwatch::RecordFlight(FlightRecorder* recorder) {
  if (!enabled())
    return absl::FailedPreconditionError("stopwatch: enable it before a flight recorder is set");
  core_.IfEnabled()->RecordFlight(recorder);
  return absl::OkStatus();
}

const Clock& Stopwatch::clock() const { return core_.IfEnabled()->clock(); }

void Stopwatch::SetOperation(std::string_view name, const FlightOperation& operation) {
  if (enabled()) core_.IfEnabled()->SetOperation(name, operation);
}

absl::Status Stopwatch::SetCpuUsageMeasurement(std::string_view name) {
  if (!enabled())
    return absl::FailedPreconditionError("stopwatch: enable it before setting what CPU usage is of");
  return core_.IfEnabled()->SetCpuUsageMeasurement(name);
}

StopwatchSnapshot Stopwatch::Snapshot() const {
  return enabled() ? core_.IfEnabled()->Snapshot() : StopwatchSnapshot();
}

int64_t Stopwatch::num_measured_iters() const { return Snapshot().num_measured_iters; }

std::optional<double> Stopwatch::MeanSecondsPerInterval(std::string_view name) const {
  return MeanOf(Snapshot(), name, &StopwatchSnapshot::Measurement::per_interval);
}

std::optional<double> Stopwatch::MeanSecondsPerIteration(std::string_view name) const {
  return MeanOf(Snapshot(), name, &StopwatchSnapshot::Measurement::per_iteration);
}

std::vector<StopwatchArrivals> Stopwatch::TakeArrivals() {
  internal::StopwatchCore* const core = core_.IfEnabled();
  return core == nullptr ? std::vector<StopwatchArrivals>() : core->TakeArrivals();
}

void Stopwatch::CloseWindow() {
  if (enabled()) core_.IfEnabled()->CloseWindow();
}

std::string Stopwatch::Table() const { return FormatTable(Snapshot()); }

std::string Stopwatch::Csv() const { return FormatCsv(Snapshot()); }

}  // namespace ott
