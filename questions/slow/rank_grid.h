// Shows what all ranks did in all measured iterations, thinned to a size that does not grow with the run.

#ifndef OTT_QUESTIONS_SLOW_RANK_GRID_H_
#define OTT_QUESTIONS_SLOW_RANK_GRID_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/questions/slow/rank_grid.pb.h"

namespace ott::slow {

// Times are seconds; NaN: nothing is known.
struct RankGrid {
  std::vector<GridRow> rows;
  std::vector<GridColumn> columns;
  // [row * columns.size() + column]: the longest mean of a rank in the row. Waiting: in collective
  // measurements.
  std::vector<double> work;
  std::vector<double> waiting;
  // Iterations longer than this are outliers; the longest ones are listed.
  double outlier_limit = 0;
  int64_t num_outliers = 0;
  std::vector<OutlierIteration> outliers;
  // Parents first; their rows in seconds.
  std::vector<GridScope> scopes;
  int64_t num_scopes_left_out = 0;
  int64_t num_iterations = 0;
  // Every how many-th iteration the ranks kept.
  int64_t stride = 1;
};

// Takes one rank after the other. Not thread-safe.
class RankGridBuilder {
 public:
  static constexpr size_t kMaxRows = 256;
  static constexpr size_t kMaxColumns = 400;
  static constexpr size_t kMaxCells = 40'000;
  static constexpr size_t kMaxOutliers = 50;
  static constexpr size_t kMaxScopes = 200;

  // first: of a rank, by whose iterations the columns are chosen; it has some in its series. first_iteration:
  // the first one's number.
  RankGridBuilder(int world_size, const StopwatchStats& first, int64_t first_iteration);

  // Adds a rank; ranks outside of the world are ignored. REQUIRES: its series has a stride.
  void Add(const StopwatchStats& stats);
  RankGrid Finish();

 private:
  struct Node {
    GridScope scope;
    double seconds = 0;  // of all ranks
    double own_seconds = 0;
    double count = 0;
  };

  size_t ColumnOf(int64_t iteration) const;
  void AddSeries(const StopwatchStats& stats, size_t row);
  void AddScopes(const StopwatchStats& stats, size_t row);
  void AddScope(const ScopeStats& scope, int parent, const StopwatchStats& stats, size_t row);
  void FindOutliers();
  void FinishScopes();

  RankGrid grid_;
  int world_size_;
  int64_t first_iteration_;
  int64_t span_;  // of iterations
  // For each iteration that was kept: the longest of any rank, the most work, and whose.
  std::vector<float> longest_;
  std::vector<float> most_work_;
  std::vector<int> most_work_rank_;
  std::vector<double> sums_;  // of columns
  std::vector<int64_t> counts_;
  std::vector<Node> nodes_;
  std::map<std::pair<int, std::string>, int> node_of_;  // -1: left out
  std::set<std::string> collective_;                    // measurements of the rank that is added
};

// Reads RUN/rank_*/stopwatch.pb, one in memory at a time. Ranks whose file cannot be read have no numbers.
// start_iteration: at which the process began to count. NOT_FOUND if no rank kept times of iterations.
absl::StatusOr<RankGrid> ReadRankGrid(const std::string& run_dir, int world_size, int64_t start_iteration);

}  // namespace ott::slow

#endif  // OTT_QUESTIONS_SLOW_RANK_GRID_H_
