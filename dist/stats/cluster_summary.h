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
#include "ott/core/stopwatch/statistics.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/comm/rank_set.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/dist/stats/cluster_summary.pb.h"

namespace ott {

// A rank is a straggler when its work exceeds the median of the other ranks' by the first fraction of it, by
// three standard deviations of theirs as estimated by the median absolute deviation, and by the second
// fraction of the mean iteration: less costs nobody anything worth a name.
inline constexpr double kStragglerThreshold = 0.10;
inline constexpr double kStragglerIterationShare = 0.01;

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
  };

  int rank = 0;
  std::string host;
  int64_t num_measured_iters = 0;
  double total_seconds = 0;  // of all measured iterations
  DurationStatistics iterations;
  std::vector<std::string> names;  // in the order of the report
  std::unordered_map<std::string, Entry> measurements;
  std::vector<std::pair<std::string, double>> one_time;
  std::vector<GroupLabel> groups;

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
  ClusterStats Finish(int world_size) const;

  // The rank with the most work; null where there is none.
  const RankSummary* slowest() const { return slowest_ ? &slowest_->rank : nullptr; }

 private:
  struct Measurement {
    std::string name;
    bool collective = false;
    RankSet ranks;
    DurationStatistics over_ranks;
    DurationStatistics intervals;
    TimeOfRank min;
    TimeOfRank max;
    DurationStatistics iterations;  // one sample a rank, too

    void AddRank(const RankReport& report, double seconds);
    void Merge(const Measurement& other);
  };
  struct OneTime {
    DurationStatistics over_ranks;
    TimeOfRank max;
  };
  struct SlowRank {
    RankSummary rank;
    std::vector<std::pair<std::string, double>> measurements;
  };
  // Work by the value that ranks have in one dimension.
  struct Dimension {
    bool too_many = false;
    std::map<std::string, DurationStatistics> work_of_value;
  };

  Measurement& Named(const std::string& name);
  OneTime& NamedOneTime(const std::string& name);
  std::optional<Straggler> FindStraggler() const;
  void LocateExcess(Straggler& straggler) const;
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
  std::optional<SlowRank> slowest_;
  std::vector<RankSummary> listed_;
  std::map<int64_t, RankSet> ranks_of_iteration_count_;
  std::map<std::string, Dimension> dimensions_;
  std::vector<std::pair<std::string, OneTime>> one_time_;
  std::vector<std::string> notes_;
};

}  // namespace ott

#endif  // OTT_DIST_STATS_CLUSTER_SUMMARY_H_
