#include "ott/questions/faster/read_run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::faster {
namespace {

absl::StatusOr<StopwatchStats> ReadRank(const std::string& run_dir, int rank) {
  const std::string path = RankDirectory(run_dir, rank) + "/stopwatch.pb";
  OTT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  StopwatchStats stats;
  if (!stats.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(path, ": no statistics in its ", bytes.size(), " bytes"));
  }
  for (const float seconds : stats.iteration_series().seconds()) {
    if (!(seconds > 0) || !std::isfinite(seconds)) {
      return absl::DataLossError(absl::StrCat(path, ": an iteration of ", seconds, " seconds"));
    }
  }
  return stats;
}

absl::Status CheckSameIterations(const std::string& run_dir, const std::vector<StopwatchStats>& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].iteration_series().seconds_size() == ranks[0].iteration_series().seconds_size() &&
        ranks[rank].iteration_series().stride() == ranks[0].iteration_series().stride()) {
      continue;
    }
    return absl::DataLossError(absl::StrCat(run_dir, ": rank 0 measured ", ranks[0].num_measured_iters(),
                                            " iterations and rank ", rank, " ",
                                            ranks[rank].num_measured_iters(), ": was the run cut short?"));
  }
  return absl::OkStatus();
}

// From the last rank's end of one iteration to the last rank's end of the next.
std::vector<double> BetweenEndsOfAll(const std::vector<StopwatchStats>& ranks) {
  const int count = ranks[0].iteration_series().seconds_size();
  std::vector<double> ended(ranks.size());
  std::vector<double> seconds;
  double previous = 0;
  for (int i = 0; i < count; ++i) {
    double last = 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      ended[rank] += ranks[rank].iteration_series().seconds(i);
      last = std::max(last, ended[rank]);
    }
    seconds.push_back(last - previous);
    previous = last;
  }
  return seconds;
}

std::vector<double> OfLongestRank(const std::vector<StopwatchStats>& ranks) {
  const auto total = [](const StopwatchStats& stats) {
    const auto& seconds = stats.iteration_series().seconds();
    return std::accumulate(seconds.begin(), seconds.end(), 0.0);
  };
  const auto longest = std::max_element(ranks.begin(), ranks.end(),
                                        [&](const auto& a, const auto& b) { return total(a) < total(b); });
  return {longest->iteration_series().seconds().begin(), longest->iteration_series().seconds().end()};
}

// The mean of the ranks that have the measurement, in the iterations in which it ran on any.
MeasurementSamples MeanOverRanks(const std::vector<StopwatchStats>& ranks, const std::string& name) {
  std::vector<double> sums;
  double num_ranks = 0;
  bool is_sampled = false;
  for (const StopwatchStats& rank : ranks) {
    for (const ott::Measurement& of_rank : rank.measurements()) {
      if (of_rank.name() != name || of_rank.series().seconds_size() == 0) continue;
      is_sampled |= of_rank.sampled();
      sums.resize(std::max(sums.size(), static_cast<size_t>(of_rank.series().seconds_size())));
      for (int i = 0; i < of_rank.series().seconds_size(); ++i) sums[i] += of_rank.series().seconds(i);
      ++num_ranks;
    }
  }
  MeasurementSamples mean;
  mean.name = name;
  for (const double sum : sums) {
    if (sum > 0 && std::isfinite(sum)) mean.seconds.push_back(sum / num_ranks);
  }
  // Sampled iterations stand for all.
  if (!sums.empty() && !is_sampled)
    mean.share_of_iterations = static_cast<double>(mean.seconds.size()) / static_cast<double>(sums.size());
  return mean;
}

void AddMeasurements(const std::vector<StopwatchStats>& ranks, Process* process) {
  std::set<std::string> seen = {kIteration};
  for (const StopwatchStats& rank : ranks) {
    for (const ott::Measurement& of_rank : rank.measurements()) {
      if (!seen.insert(of_rank.name()).second) continue;
      MeasurementSamples mean = MeanOverRanks(ranks, of_rank.name());
      if (!mean.seconds.empty()) process->measurements.push_back(std::move(mean));
    }
  }
}

void AddConditions(const RunInfo& info, Process* process) {
  const std::set<std::string> hosts(info.hosts().begin(), info.hosts().end());
  process->conditions["ranks"] = absl::StrCat(info.world_size());
  if (!hosts.empty()) process->conditions["machine"] = absl::StrJoin(hosts, " ");
  if (!info.cpu().empty()) process->conditions["CPU"] = info.cpu();
  if (!info.version().empty()) process->conditions["library"] = "optim_test_tools " + info.version();
  absl::Time started;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, info.started(), &started, &error)) {
    process->started = absl::ToDoubleSeconds(started - absl::UnixEpoch());
  }
}

}  // namespace

absl::StatusOr<Process> ReadRun(const std::string& run_dir) {
  Process process;
  process.name = EscapeControlCharacters(run_dir);
  OTT_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(run_dir));
  AddConditions(info, &process);
  std::vector<StopwatchStats> ranks;
  for (int rank = 0; rank < info.world_size(); ++rank) {
    OTT_ASSIGN_OR_RETURN(StopwatchStats stats, ReadRank(run_dir, rank));
    ranks.push_back(std::move(stats));
  }
  OTT_RETURN_IF_ERROR(CheckSameIterations(run_dir, ranks));
  if (ranks.empty() || ranks[0].iteration_series().seconds().empty()) {
    return absl::NotFoundError(absl::StrCat(run_dir,
                                            ": no iteration was measured; the program calls FinishIter(), "
                                            "and stopwatch { } is in its OTT_CONFIG?"));
  }
  const bool whole = ranks[0].iteration_series().stride() == 1;
  process.measurements.push_back({kIteration, whole ? BetweenEndsOfAll(ranks) : OfLongestRank(ranks)});
  process.measurements.back().num_iterations = static_cast<size_t>(ranks[0].num_measured_iters());
  for (const double seconds : process.measurements.back().seconds) {
    if (seconds <= 0) return absl::DataLossError(absl::StrCat(run_dir, ": an iteration of 0 seconds"));
  }
  AddMeasurements(ranks, &process);
  return process;
}

}  // namespace ott::faster
