#include "ott/core/stopwatch/stopwatch.h"

#include <unistd.h>

#include <cstdlib>

#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/report.h"
#include "stopwatch_core.h"

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

Stopwatch::Stopwatch(const Environment& environment) : Stopwatch(new internal::StopwatchCore(environment)) {}

Stopwatch::Stopwatch(internal::StopwatchCore* own_core) : core_(own_core), own_core_(own_core) {}

Stopwatch::~Stopwatch() { delete own_core_; }

absl::Status Stopwatch::Enable(const Options& options, Place place) {
  OTT_ASSIGN_OR_RETURN(internal::StopwatchCore* const core, core_.Find());
  OTT_RETURN_IF_ERROR(core->Enable(options, place));
  core_.SetEnabled(true);
  if (options.at_exit && own_core_ == nullptr) {
    static const pid_t process = getpid();
    static const int registered = std::atexit([] {
      if (getpid() == process && Get().enabled()) internal::AtExit(*Get().core_.IfEnabled(), Get());
    });
    (void)registered;
  }
  return absl::OkStatus();
}

void Stopwatch::Disable() {
  if (!enabled()) return;
  internal::StopwatchCore* const core = core_.IfEnabled();
  core_.SetEnabled(false);
  core->Disable();
}

bool Stopwatch::enabled() const {
  const internal::StopwatchCore* const core = core_.IfEnabled();
  return core != nullptr && core->enabled();
}

void Stopwatch::RecordInto(EventRecorder* recorder) {
  const absl::StatusOr<internal::StopwatchCore*> core = core_.Find();
  if (!core.ok()) return;
  // As long as the core has a recorder, nobody enables it meanwhile.
  if (recorder == nullptr && !(*core)->enabled()) core_.SetEnabled(false);
  (*core)->RecordInto(recorder);
  if (recorder != nullptr) core_.SetEnabled(true);
}

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
