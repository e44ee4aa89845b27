// Statistics of a set of ranks that merge, in a size that depends on the measurements and hardly on the
// ranks.

#ifndef OTT_DIST_STATS_CLUSTER_SUMMARY_H_
#define OTT_DIST_STATS_CLUSTER_SUMMARY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/comm/rank_set.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/dist/stats/rank_times.h"
#include "ott/dist/stats/stats_message.pb.h"

namespace ott {

// The row of what a rank's own threads of the library took, beside the program: CPU time, not time that
// passed.
inline constexpr char kObserverThreads[] = "ott's threads";

// Says how a rank's own work in a mean iteration used the CPU; if that is not known, all of it counts as on a
// CPU. Nullopt if no iteration was measured.
std::optional<CpuShare> CpuShareOfWork(const StopwatchStats& stats);

// Merging is associative, and commutative but for the order of names and notes. A value type.
//
// ClusterStats is its serialised form: between ranks with all that merging takes, for a reader as one table.
class ClusterSummary {
 public:
  // By what is like work.
  using TimesOfGroups = std::map<std::string, RankTimes>;

  // One number of each rank: its seconds in a mean iteration, or once.
  struct Row {
    std::string name;
    bool collective = false;
    // On some rank not only inside of other measurements.
    bool outermost = false;
    bool sampled = false;
    std::string outer;
    RankSet ranks;
    DurationStatistics over_ranks;
    DurationStatistics iterations;  // one sample a rank, too
    DurationStatistics intervals;
    TimeOfRank min;
    TimeOfRank max;
    TimesOfGroups times;

    Row() = default;
    // iteration: the rank's mean one.
    Row(std::string name, const StopwatchStats& rank, double seconds, double iteration);

    void Merge(const Row& other);
    ClusterMeasurement Finish(const RankSet& all) const;
    // all: whose ranks need not be said.
    ClusterMeasurement ToProto(const RankSet& all) const;
    static absl::StatusOr<Row> FromProto(const ClusterMeasurement& proto, const RankSet& all);

   private:
    // Returns what a finished row and one that travels have in common.
    ClusterMeasurement Outline() const;
  };

  // By name, in the order of the first rank that has them.
  class Rows {
   public:
    Row& operator[](const std::string& name);
    void Merge(const Rows& other);
    std::vector<Row>::const_iterator begin() const { return rows_.begin(); }
    std::vector<Row>::const_iterator end() const { return rows_.end(); }

   private:
    std::vector<Row> rows_;
    std::unordered_map<std::string, size_t> positions_;
  };

  ClusterSummary() = default;

  // Summarizes one rank since its start; or since an earlier report, without the distribution of intervals.
  // The whole report where the rank was restarted since. INVALID_ARGUMENT for numbers that no measurement
  // gives.
  static absl::StatusOr<ClusterSummary> OfRank(const internal::RankReport& report,
                                               const StopwatchStats* earlier = nullptr);

  // Returns INVALID_ARGUMENT for what ToProto() does not give.
  static absl::StatusOr<ClusterSummary> FromProto(const ClusterStats& proto);
  // Returns a message for another rank, to be merged there.
  ClusterStats ToProto() const;

  void Merge(const ClusterSummary& other);
  void AddNote(std::string note);
  // Says that all ranks' data are of an earlier gather.
  void SetLate() { late_ranks_ = ranks(); }

  // Returns all that reported.
  RankSet ranks() const;

  // Makes one table, which names nobody. Ranks below world_size that are not in ranks() are missing.
  ClusterStats Finish(int world_size) const;

  // Returns the share for the work of an iteration, of the rank for which it is least certain.
  CpuShare cpu_of_work() const { return cpu_of_work_.value_or(CpuShare()); }

  // Iterations and work are of the ranks that measured some.
  const Row& iteration() const { return iteration_; }
  const Row& work() const { return work_; }
  const Rows& measurements() const { return measurements_; }

  // Returns the rank with the most work; null if there is none.
  const TimeOfRank* slowest() const { return work_.ranks.empty() ? nullptr : &work_.max; }

 private:
  // Work by the value that ranks have in one dimension.
  struct Dimension {
    bool too_many = false;
    std::map<std::string, DurationStatistics> work_of_value;
  };

  struct Misuses {
    int64_t count = 0;
    RankSet ranks;
  };

  absl::Status AddMeasurements(const internal::RankReport& report, const StopwatchStats* earlier,
                               const CpuShare& cpu);
  void FinishGroups(ClusterStats& stats) const;
  void FinishNotes(ClusterStats& stats) const;

  Row iteration_;
  Row work_;
  Rows measurements_;
  Rows one_time_;
  std::map<int64_t, RankSet> ranks_of_iteration_count_;
  RankSet late_ranks_;
  CpuTaken taken_;
  // LeastCertain() of all ranks.
  std::optional<CpuShare> cpu_of_work_;
  std::map<std::string, Dimension> dimensions_;
  // By kind; empty in windows.
  std::map<std::string, Misuses> misuses_;
  std::vector<RankSummary> listed_;
  std::vector<std::string> notes_;
};

}  // namespace ott

#endif  // OTT_DIST_STATS_CLUSTER_SUMMARY_H_
