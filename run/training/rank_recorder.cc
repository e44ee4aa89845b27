#include "ott/run/training/rank_recorder.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/slurm.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/run_state.h"

namespace ott {
namespace {

// Tells the stopwatch which ranks come to a collective measurement together.
void SetCollectiveGroups(const RunFrame& frame) {
  const Communicator& ranks = frame.ranks;
  const std::vector<std::map<std::string, std::string>>& groups_of_ranks = frame.groups.collective_groups;
  for (const CollectiveGroups& groups : frame.config.stopwatch().collective_groups()) {
    for (const std::string& measurement : groups.measurements()) {
      const std::string& own = groups_of_ranks[ranks.rank()].at(measurement);
      std::vector<int> members;
      for (int rank = 0; rank < ranks.size(); ++rank) {
        if (groups_of_ranks[rank].at(measurement) == own) members.push_back(rank);
      }
      Stopwatch::Get().SetOperation(measurement, FlightOperation::Collective(own, std::move(members)));
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankRecorder>> RankRecorder::Start(const RunFrame& frame) {
  const Communicator& ranks = frame.ranks;
  const Config& config = frame.config;
  const Clock& clock = config.has_stopwatch() ? Stopwatch::Get().clock() : Clock::Fastest();
  FlightRecorder::Options options = FlightRecorder::FromConfig(config.hang());
  options.path = FlightPath(config.run_dir(), ranks.rank());
  options.rank = ranks.rank();
  options.world_size = ranks.size();
  options.host = ranks.host(ranks.rank());
  options.first_iteration = config.start_iteration();
  if (const std::optional<SlurmTask> task = SlurmTaskFromEnvironment()) {
    options.job = task->Name();
    options.job_ends_s = task->ends_s;
  }
  // A run that goes on has the recorder of the start before.
  std::error_code error;
  std::filesystem::remove(options.path, error);
  OTT_ASSIGN_OR_RETURN(FlightRecorder* const recorder, FlightRecorder::Create(options, clock));
  if (config.has_stopwatch()) {
    OTT_RETURN_IF_ERROR(Stopwatch::Get().RecordFlight(recorder));
    // Ranks do not come to it equally often.
    Stopwatch::Get().SetOperation(kObserverMeasurement, FlightOperation());
    SetCollectiveGroups(frame);
  }
  return std::unique_ptr<RankRecorder>(new RankRecorder(frame, recorder, clock));
}

RankRecorder::RankRecorder(const RunFrame& frame, FlightRecorder* recorder, const Clock& clock)
    : frame_(frame),
      clock_(clock),
      recorder_(recorder),
      check_(AddObserverOperation(recorder, "cross-check", frame.ranks.size(), kObserverMeasurement)),
      gather_(
          AddObserverOperation(recorder, "gather of statistics", frame.ranks.size(), kObserverMeasurement)) {
  HangWatchdog::Options options = HangWatchdog::FromConfig(frame.config.hang());
  options.run_dir = frame.config.run_dir();
  watchdog_ = std::make_unique<HangWatchdog>(recorder, clock, std::move(options));
  recorded_ranks_ = MakeRecordedCommunicator(frame.ranks, recorder, clock, kObserverMeasurement);
}

absl::Status RankRecorder::Exchange() {
  OTT_ASSIGN_OR_RETURN(
      exchange_, RecorderExchange::Start(
                     frame_.ranks, HangWatchdog::AnswersOf(frame_.config.run_dir(), frame_.ranks.rank()),
                     frame_.NextDeadline()));
  watchdog_->SetExchange(exchange_.get());
  return absl::OkStatus();
}

RecordedOperation RankRecorder::InCheck(const RankRecorder* recorder) {
  if (recorder == nullptr) return {nullptr, Clock::Fastest()};
  return {recorder->check_, recorder->clock_};
}

RecordedOperation RankRecorder::InGather(const RankRecorder* recorder) {
  if (recorder == nullptr) return {nullptr, Clock::Fastest()};
  return {recorder->gather_, recorder->clock_};
}

void RankRecorder::FinishIter() {
  if (frame_.config.has_stopwatch()) return;
  recorder_->FinishIter(clock_.Ticks(), internal::ThisThreadId());
}

}  // namespace ott
