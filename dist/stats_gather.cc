#include "ott/dist/stats_gather.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/dist/rank_list.h"

namespace ott {
namespace {

// Of a normal distribution: standard deviation / median absolute deviation.
constexpr double kDeviationOverMad = 1.4826;
constexpr double kNumDeviations = 3;

// What one rank reports about one name.
struct Entry {
  DurationStatistics per_iteration;
  bool collective = false;
};

// All reports of one rank.
struct Rank {
  int rank = 0;
  std::string host;
  int64_t num_measured_iters = 0;
  int num_reports = 0;
  DurationStatistics iteration;
  std::vector<std::string> names;  // in the order of the reports
  std::map<std::string, Entry> measurements;
  std::vector<std::pair<std::string, double>> one_time;

  double PerIteration(const DurationStatistics& statistics) const {
    return statistics.total() / static_cast<double>(num_measured_iters);
  }
  double IterationSeconds() const { return PerIteration(iteration); }
  double WorkSeconds() const {
    double work = IterationSeconds();
    for (const auto& [unused_name, entry] : measurements) {
      if (entry.collective) work -= PerIteration(entry.per_iteration);
    }
    return std::max(work, 0.0);
  }
  std::optional<double> Seconds(const std::string& name) const {
    const auto entry = measurements.find(name);
    if (entry == measurements.end()) return std::nullopt;
    return PerIteration(entry->second.per_iteration);
  }
};

// Names in the order of the first rank that has them.
struct Names {
  std::vector<std::string> in_order;

  void Add(const std::string& name) {
    if (known_.insert({name, true}).second) in_order.push_back(name);
  }

 private:
  std::map<std::string, bool> known_;
};

double Median(std::vector<double> values) {
  OTT_CHECK(!values.empty()) << "median of nothing";
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + middle) + upper) / 2;
}

double MedianAbsoluteDeviation(std::vector<double> values, double median) {
  for (double& value : values) value = std::abs(value - median);
  return Median(std::move(values));
}

absl::Status AddReport(const StopwatchStats& report, Rank& rank) {
  OTT_ASSIGN_OR_RETURN(const DurationStatistics iteration, DurationStatistics::FromProto(report.iteration()));
  if (report.num_measured_iters() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(report.num_measured_iters(), " measured iterations"));
  }
  std::vector<std::pair<std::string, Entry>> entries;
  for (const Measurement& measurement : report.measurements()) {
    auto statistics = DurationStatistics::FromProto(measurement.per_iteration());
    if (!statistics.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(measurement.name(), ": ", statistics.status().message()));
    }
    entries.push_back({measurement.name(), {*statistics, measurement.collective()}});
  }
  rank.host = report.host();
  rank.num_measured_iters += report.num_measured_iters();
  ++rank.num_reports;
  rank.iteration.Merge(iteration);
  for (const auto& [name, entry] : entries) {
    rank.names.push_back(name);
    Entry& merged = rank.measurements[name];
    merged.per_iteration.Merge(entry.per_iteration);
    merged.collective = merged.collective || entry.collective;
  }
  for (const OneTimeMeasurement& one_time : report.one_time()) {
    if (!one_time.running()) rank.one_time.emplace_back(one_time.name(), one_time.seconds());
  }
  return absl::OkStatus();
}

// A value for each of some ranks.
struct Values {
  std::vector<const Rank*> ranks;
  std::vector<double> seconds;
};

TimeOfRank ToProto(const Rank& rank, double seconds) {
  TimeOfRank time;
  time.set_rank(rank.rank);
  time.set_host(rank.host);
  time.set_seconds(seconds);
  return time;
}

ClusterMeasurement Summarize(const std::string& name, const Values& values) {
  ClusterMeasurement summary;
  summary.set_name(name);
  summary.set_num_ranks(static_cast<int32_t>(values.ranks.size()));
  if (values.ranks.empty()) return summary;

  double total = 0;
  double total_of_iterations = 0;
  for (size_t i = 0; i < values.ranks.size(); ++i) {
    total += values.seconds[i];
    total_of_iterations += values.ranks[i]->IterationSeconds();
  }
  const double count = static_cast<double>(values.ranks.size());
  const double mean = total / count;
  double squared_deviations = 0;
  for (const double seconds : values.seconds) squared_deviations += (seconds - mean) * (seconds - mean);

  const auto [min, max] = std::minmax_element(values.seconds.begin(), values.seconds.end());
  *summary.mutable_min() = ToProto(*values.ranks[min - values.seconds.begin()], *min);
  *summary.mutable_max() = ToProto(*values.ranks[max - values.seconds.begin()], *max);
  summary.set_mean(mean);
  summary.set_standard_deviation(std::sqrt(squared_deviations / count));
  summary.set_imbalance(mean > 0 ? *max / mean - 1 : 0);
  summary.set_share_of_iteration(total_of_iterations > 0 ? total / total_of_iterations : 0);
  return summary;
}

// The values of all ranks but one.
std::vector<double> Without(const std::vector<double>& values, size_t index) {
  std::vector<double> others = values;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
  return others;
}

// Adds where `slow` differs most from the others' medians.
void LocateExcess(const std::vector<Rank>& ranks, size_t slow, const Names& names, Straggler& straggler) {
  double unexplained = straggler.work_seconds() - straggler.median_work_seconds();
  for (const std::string& name : names.in_order) {
    const auto mine = ranks[slow].measurements.find(name);
    if (mine == ranks[slow].measurements.end() || mine->second.collective) continue;
    std::vector<double> others;
    for (size_t i = 0; i < ranks.size(); ++i) {
      const std::optional<double> seconds = ranks[i].Seconds(name);
      if (i != slow && seconds) others.push_back(*seconds);
    }
    const double excess =
        ranks[slow].PerIteration(mine->second.per_iteration) - (others.empty() ? 0 : Median(others));
    unexplained -= excess;
    if (excess > straggler.measurement_excess_seconds()) {
      straggler.set_measurement(name);
      straggler.set_measurement_excess_seconds(excess);
    }
  }
  if (unexplained > straggler.measurement_excess_seconds()) {
    straggler.clear_measurement();
    straggler.set_measurement_excess_seconds(unexplained);
  }
}

std::optional<Straggler> FindStraggler(const std::vector<Rank>& ranks, const Names& names) {
  if (ranks.size() < 2) return std::nullopt;
  std::vector<double> work;
  for (const Rank& rank : ranks) work.push_back(rank.WorkSeconds());
  const size_t slowest = std::max_element(work.begin(), work.end()) - work.begin();
  const std::vector<double> others = Without(work, slowest);
  const double median = Median(others);
  const double deviation = kDeviationOverMad * MedianAbsoluteDeviation(others, median);
  const double excess = work[slowest] - median;
  if (excess <= 0 || excess < std::max(kStragglerThreshold * median, kNumDeviations * deviation))
    return std::nullopt;

  Straggler straggler;
  straggler.set_rank(ranks[slowest].rank);
  straggler.set_host(ranks[slowest].host);
  straggler.set_work_seconds(work[slowest]);
  straggler.set_median_work_seconds(median);
  straggler.set_slower_by(median > 0 ? excess / median : 0);
  LocateExcess(ranks, slowest, names, straggler);
  return straggler;
}

void NoteDifferentIterationCounts(const std::vector<Rank>& ranks, ClusterStats& stats) {
  std::map<int64_t, std::vector<int>> ranks_of_count;
  for (const Rank& rank : ranks) ranks_of_count[rank.num_measured_iters].push_back(rank.rank);
  if (ranks_of_count.size() < 2) return;
  std::string note = "ranks measured different numbers of iterations:";
  for (const auto& [count, ranks_with_it] : ranks_of_count) {
    absl::StrAppend(&note, ranks_of_count.begin()->first == count ? " " : "; ", count, " on ",
                    FormatRanks(ranks_with_it));
  }
  stats.add_notes(note);
}

// The reports by rank, those that cannot be used noted and left out.
std::map<int, Rank> MergeByRank(const std::vector<StopwatchStats>& reports, int world_size,
                                ClusterStats& stats) {
  std::map<int, Rank> by_rank;
  for (const StopwatchStats& report : reports) {
    const std::string who = absl::StrCat("rank ", report.rank(), " (", report.host(), "): ");
    if (report.rank() < 0 || report.rank() >= world_size) {
      stats.add_notes(absl::StrCat(who, "left out, the world has ", world_size, " ranks"));
      continue;
    }
    const auto [entry, is_first] = by_rank.try_emplace(report.rank());
    entry->second.rank = report.rank();
    if (const absl::Status status = AddReport(report, entry->second); !status.ok()) {
      stats.add_notes(absl::StrCat(who, "report left out: ", status.message()));
      if (is_first) by_rank.erase(entry);
      continue;
    }
    if (report.world_size() != 0 && report.world_size() != world_size) {
      stats.add_notes(
          absl::StrCat(who, "says the world has ", report.world_size(), " ranks, not ", world_size));
    }
  }
  return by_rank;
}

void SummarizeOneTime(const std::vector<Rank>& ranks, ClusterStats& stats) {
  Names names;
  std::map<std::string, Values> values;
  for (const Rank& rank : ranks) {
    for (const auto& [name, seconds] : rank.one_time) {
      names.Add(name);
      values[name].ranks.push_back(&rank);
      values[name].seconds.push_back(seconds);
    }
  }
  for (const std::string& name : names.in_order) {
    const ClusterMeasurement summary = Summarize(name, values[name]);
    OneTimeOfRanks& one_time = *stats.add_one_time();
    one_time.set_name(name);
    one_time.set_num_ranks(summary.num_ranks());
    one_time.set_mean(summary.mean());
    *one_time.mutable_max() = summary.max();
  }
}

}  // namespace

ClusterStats MergeStats(const std::vector<StopwatchStats>& reports, int world_size) {
  ClusterStats stats;
  stats.set_world_size(world_size);
  std::map<int, Rank> by_rank = MergeByRank(reports, world_size, stats);

  std::vector<Rank> ranks;  // that measured at least one iteration
  for (int rank = 0; rank < world_size; ++rank) {
    const auto found = by_rank.find(rank);
    if (found == by_rank.end()) {
      stats.add_missing_ranks(rank);
      continue;
    }
    RankSummary& summary = *stats.add_ranks();
    summary.set_rank(rank);
    summary.set_host(found->second.host);
    summary.set_num_measured_iters(found->second.num_measured_iters);
    if (found->second.num_reports > 1) {
      stats.add_notes(absl::StrCat("rank ", rank, ": ", found->second.num_reports, " reports added up"));
    }
    if (found->second.num_measured_iters == 0) {
      stats.add_notes(absl::StrCat("rank ", rank, ": no iteration measured yet"));
      continue;
    }
    summary.set_work_seconds(found->second.WorkSeconds());
    ranks.push_back(std::move(found->second));
  }
  NoteDifferentIterationCounts(ranks, stats);

  Names names;
  for (const Rank& rank : ranks) {
    for (const std::string& name : rank.names) names.Add(name);
  }
  Values iterations;
  for (const Rank& rank : ranks) {
    iterations.ranks.push_back(&rank);
    iterations.seconds.push_back(rank.IterationSeconds());
  }
  *stats.mutable_iteration() = Summarize("iteration", iterations);
  for (const std::string& name : names.in_order) {
    Values values;
    std::vector<int> without;
    bool collective = false;
    for (const Rank& rank : ranks) {
      const auto entry = rank.measurements.find(name);
      if (entry == rank.measurements.end()) {
        without.push_back(rank.rank);
        continue;
      }
      values.ranks.push_back(&rank);
      values.seconds.push_back(rank.PerIteration(entry->second.per_iteration));
      collective = collective || entry->second.collective;
    }
    ClusterMeasurement& summary = *stats.add_measurements();
    summary = Summarize(name, values);
    summary.set_collective(collective);
    for (const int rank : without) summary.add_ranks_without(rank);
  }
  SummarizeOneTime(ranks, stats);
  if (std::optional<Straggler> straggler = FindStraggler(ranks, names)) {
    *stats.mutable_straggler() = *std::move(straggler);
  }
  return stats;
}

absl::StatusOr<ClusterStats> GatherStats(Communicator& ranks, const StopwatchStats& mine, Deadline deadline) {
  OTT_ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> reports,
                       ranks.GatherAvailable(0, mine.SerializeAsString(), deadline));
  if (ranks.rank() != 0) return ClusterStats();

  std::vector<StopwatchStats> parsed;
  std::vector<std::string> problems;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const absl::StatusOr<std::string>& bytes = reports[rank];
    StopwatchStats report;
    if (!bytes.ok()) {
      if (!absl::IsDeadlineExceeded(bytes.status()))
        problems.push_back(std::string(bytes.status().message()));
    } else if (!report.ParseFromString(*bytes)) {
      problems.push_back(
          absl::StrCat("rank ", rank, ": ", bytes->size(), " bytes that are no StopwatchStats"));
    } else {
      report.set_rank(rank);
      report.set_world_size(ranks.size());
      report.set_host(ranks.host(rank));
      parsed.push_back(std::move(report));
    }
  }
  ClusterStats stats = MergeStats(parsed, ranks.size());
  for (const std::string& problem : problems) stats.add_notes(problem);
  return stats;
}

}  // namespace ott
