// Statistics of a set of ranks that merge, in a size that depends on the measurements and hardly on the
// ranks.

#ifndef OTT_DIST_STATS_CLUSTER_SUMMARY_H_
#define OTT_DIST_STATS_CLUSTER_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/comm/rank_set.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/dist/stats/cluster_summary.pb.h"
#include "ott/dist/stats/rank_times.h"

namespace ott {

// How often a gather of ranks that are alike names one for its work, and how often it names one for any
// measurement, over all ranks and measurements.
inline constexpr double kWorkError = 0.0025;
inline constexpr double kMeasurementError = 0.005;
// Of these, what a window between two gathers has, of which there are many in a run.
inline constexpr double kWindowErrorShare = 0.05;

// An excess that is smaller is worth no name, however sure it is: than this share of the others' median, and
// of a mean iteration where it is of the work or of one measurement.
inline constexpr double kMinExcess = 0.05;
inline constexpr double kMinWorkShare = 0.01;
inline constexpr double kMinMeasurementShare = 0.001;

// A rank's CPU was taken where others had it for this share of the time of its own work.
inline constexpr double kTakenShare = 0.1;

// What a rank is part of: {"host", "node7"}, {"pipeline", "3"}.
struct GroupLabel {
  std::string dimension;
  std::string value;
};

// One rank's totals.
struct RankReport {
  struct Entry {
    bool collective = false;
    double total_seconds = 0;
    DurationStatistics intervals;
    // Seconds a measured iteration, by this rank itself; since the start, and in the last window.
    std::optional<SteadyTime> own;
    std::optional<SteadyTime> own_in_window;
  };

  int rank = 0;
  std::string host;
  int64_t num_measured_iters = 0;
  double total_seconds = 0;  // of all measured iterations
  DurationStatistics iterations;
  // Outside of collective measurements; nullopt where only these can tell. The rest as in StopwatchStats.
  std::optional<double> work_seconds;
  int64_t num_watched_iters = 0;
  double cpu_seconds = 0;
  double taken_seconds = 0;
  std::optional<SteadyTime> own_work;
  std::optional<SteadyTime> own_work_in_window;
  std::vector<std::string> names;  // in the order of the report
  std::unordered_map<std::string, Entry> measurements;
  std::vector<std::pair<std::string, double>> one_time;
  std::vector<GroupLabel> groups;
  // Only ranks of which this is equal are compared.
  std::string like_work;

  // INVALID_ARGUMENT for numbers that no measurement gives.
  static absl::StatusOr<RankReport> FromStats(const StopwatchStats& stats);

  // Another report of the same rank, which was restarted.
  void Add(const RankReport& other);
  // What came after `earlier`, without the distribution of intervals. The whole report where the rank was
  // restarted since.
  RankReport Since(const RankReport& earlier) const;

  // REQUIRES: num_measured_iters > 0
  double PerIteration(double total) const { return total / static_cast<double>(num_measured_iters); }
  double WorkSeconds() const;
  // Of own work; all of it on a CPU where that is not known.
  CpuShare CpuOfWork() const;
};

// Merging is associative, and commutative but for the order of names and notes. A value type.
class ClusterSummary {
 public:
  ClusterSummary() = default;
  explicit ClusterSummary(const RankReport& report);

  // INVALID_ARGUMENT for what no summary is.
  static absl::StatusOr<ClusterSummary> FromProto(const internal::ClusterSummary& proto);
  internal::ClusterSummary ToProto() const;

  void Merge(const ClusterSummary& other);
  void AddNote(std::string note);
  // Says that all ranks' data are of an earlier gather.
  void SetLate() { late_ranks_ = ranks(); }

  // All that reported.
  RankSet ranks() const;

  // As one table. Ranks below world_size that are not in ranks() are missing.
  // error_share: of the errors above, as they are meant where one gather is judged.
  ClusterStats Finish(int world_size, double error_share = 1) const;

  // For the work of an iteration, of the rank for which it is least certain.
  CpuShare cpu_of_work() const { return cpu_of_work_.value_or(CpuShare()); }

  // The rank with the most work; null where there is none.
  const RankSummary* slowest() const { return slowest_ ? &*slowest_ : nullptr; }

 private:
  // By what is like work.
  using TimesOfGroups = std::map<std::string, RankTimes>;

  struct Measurement {
    std::string name;
    bool collective = false;
    RankSet ranks;
    DurationStatistics over_ranks;
    DurationStatistics intervals;
    TimeOfRank min;
    TimeOfRank max;
    DurationStatistics iterations;  // one sample a rank, too
    TimesOfGroups times;

    void AddRank(const RankReport& report, double seconds);
    void Merge(const Measurement& other);
  };
  struct OneTime {
    DurationStatistics over_ranks;
    TimeOfRank max;
  };
  struct Taken {
    int64_t num_watched = 0;
    int64_t num_taken = 0;
    std::vector<std::pair<double, int>> ranks;  // share and rank, most first

    void Add(double share, int rank);
    void Merge(const Taken& other);
  };
  // Work by the value that ranks have in one dimension.
  struct Dimension {
    bool too_many = false;
    std::map<std::string, DurationStatistics> work_of_value;
  };

  Measurement& Named(const std::string& name);
  OneTime& NamedOneTime(const std::string& name);
  void AddCpuOfWork(const CpuShare& cpu);
  void FindStraggler(double error, ClusterStats& stats) const;
  void LocateExcess(const std::string& group, Straggler& straggler) const;
  void FindSlowMeasurements(double error, ClusterStats& stats) const;
  void FinishTaken(ClusterStats& stats) const;
  void FinishGroups(ClusterStats& stats) const;
  void FinishNotes(ClusterStats& stats) const;
  static ClusterMeasurement FinishMeasurement(const Measurement& measurement, const RankSet& all);
  static internal::MeasurementSummary ToProto(const Measurement& measurement, const RankSet& all);
  static absl::StatusOr<Measurement> MeasurementFromProto(const internal::MeasurementSummary& proto,
                                                          const RankSet& all);

  RankSet ranks_;  // with measured iterations
  RankSet ranks_without_iterations_;
  RankSet late_ranks_;
  Measurement iteration_;
  std::vector<Measurement> measurements_;
  std::unordered_map<std::string, size_t> positions_;  // in measurements_
  DurationStatistics work_;
  std::optional<RankSummary> slowest_;
  TimesOfGroups work_times_;
  Taken taken_;
  // Of each number that of the rank by which ranks that are alike may differ most.
  std::optional<CpuShare> cpu_of_work_;
  std::vector<RankSummary> listed_;
  std::map<int64_t, RankSet> ranks_of_iteration_count_;
  std::map<std::string, Dimension> dimensions_;
  std::vector<std::pair<std::string, OneTime>> one_time_;
  std::vector<std::string> notes_;
};

// Says in the verdicts where their ranks run.
template <typename HostOf>
void AddHosts(ClusterStats& stats, const HostOf& host_of) {
  const auto add = [&](auto& verdict) { verdict.set_host(host_of(verdict.rank())); };
  if (stats.has_straggler()) add(*stats.mutable_straggler());
  if (stats.history().has_straggler()) add(*stats.mutable_history()->mutable_straggler());
  for (SlowMeasurement& slow : *stats.mutable_slow_measurements()) add(slow);
  if (!stats.has_cpu_taken()) return;
  for (TakenFromRank& taken : *stats.mutable_cpu_taken()->mutable_ranks()) add(taken);
}

}  // namespace ott

#endif  // OTT_DIST_STATS_CLUSTER_SUMMARY_H_
