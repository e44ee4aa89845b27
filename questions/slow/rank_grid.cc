#include "ott/questions/slow/rank_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/statistics/policy.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::slow {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// Limits measurements, each counted once for each one that it lies in: no program has more.
constexpr size_t kMaxNodes = 4000;
// No run has so many iterations.
constexpr int64_t kMaxStride = int64_t{1} << 31;
// A measurement's rows are kept for so many cells in all, those of the longest measurements.
constexpr size_t kMaxScopeCells = 20'000;

double Longer(double a, double b) { return std::isnan(a) || b > a ? b : a; }

// Returns the median of what is known; 0 if nothing is.
double Median(std::vector<float> values) {
  values.erase(std::remove_if(values.begin(), values.end(), [](float value) { return std::isnan(value); }),
               values.end());
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void FindOutermostCollectives(const google::protobuf::RepeatedPtrField<ScopeStats>& scopes,
                              const std::set<std::string>& collective, std::set<std::string>* found) {
  for (const ScopeStats& scope : scopes) {
    if (collective.count(scope.name()) > 0) {
      found->insert(scope.name());
    } else {
      FindOutermostCollectives(scope.inner(), collective, found);
    }
  }
}

// Empty if there are none, or another rank's, or if their iterations are damaged.
StopwatchStats ReadStats(const std::string& run_dir, int rank) {
  StopwatchStats stats;
  const absl::StatusOr<std::string> bytes = ReadFile(RankDirectory(run_dir, rank) + "/stopwatch.pb");
  if (!bytes.ok() || !stats.ParseFromString(*bytes) || stats.rank() != rank ||
      stats.iteration_series().stride() > kMaxStride) {
    stats.Clear();
  }
  return stats;
}

// Counts the iterations that the series spans.
int64_t Span(const StopwatchStats& stats) {
  return stats.iteration_series().seconds_size() * stats.iteration_series().stride();
}

}  // namespace

RankGridBuilder::RankGridBuilder(int world_size, const StopwatchStats& first, int64_t first_iteration)
    : world_size_(std::max(world_size, 1)), first_iteration_(first_iteration), span_(Span(first)) {
  OTT_CHECK(span_ > 0) << "no series of iterations";
  const size_t num_rows = std::min<size_t>(world_size_, kMaxRows);
  grid_.rows.resize(num_rows);
  for (size_t row = 0; row < num_rows; ++row) {
    grid_.rows[row].set_first(static_cast<int>(row * world_size_ / num_rows));
    grid_.rows[row].set_last(static_cast<int>((row + 1) * world_size_ / num_rows) - 1);
  }
  const size_t num_values = first.iteration_series().seconds_size();
  grid_.stride = span_ / static_cast<int64_t>(num_values);
  grid_.num_iterations = std::max<int64_t>(0, first.num_measured_iters());
  const size_t num_columns = std::min({kMaxColumns, num_values, std::max<size_t>(16, kMaxCells / num_rows)});
  grid_.columns.resize(num_columns);
  for (size_t column = 0; column < num_columns; ++column) {
    // In values, so that no column is empty.
    const auto begin = [&](size_t of) {
      return first_iteration_ +
             static_cast<int64_t>((of * num_values + num_columns - 1) / num_columns) * grid_.stride;
    };
    GridColumn& made = grid_.columns[column];
    made.set_first(begin(column));
    made.set_last(begin(column + 1) - 1);
    made.set_shortest(kUnknown);
    made.set_longest(kUnknown);
  }
  // Behind the last iteration that was kept there are others, but none that were not measured.
  GridColumn& last = grid_.columns.back();
  last.set_last(std::clamp(first_iteration_ + grid_.num_iterations - 1, last.first(), last.last()));
  grid_.work.assign(num_rows * num_columns, kUnknown);
  grid_.waiting.assign(num_rows * num_columns, kUnknown);
  longest_.assign(num_values, kUnknown);
  most_work_.assign(num_values, kUnknown);
  most_work_rank_.assign(num_values, -1);
  sums_.assign(num_columns, 0);
  counts_.assign(num_columns, 0);
}

size_t RankGridBuilder::ColumnOf(int64_t iteration) const {
  return static_cast<size_t>(iteration / grid_.stride) * grid_.columns.size() / longest_.size();
}

void RankGridBuilder::AddSeries(const StopwatchStats& stats, size_t row) {
  const Series& iterations = stats.iteration_series();
  std::set<std::string> outermost;
  FindOutermostCollectives(stats.scopes(), collective_, &outermost);
  std::vector<const Series*> waits;
  for (const Measurement& measurement : stats.measurements()) {
    // Nobody knows what a measurement outside of all scopes lies in.
    const bool counts =
        measurement.collective() && (outermost.count(measurement.name()) > 0 || stats.scopes().empty());
    if (counts && measurement.series().stride() == iterations.stride())
      waits.push_back(&measurement.series());
  }
  struct Sum {
    double work = 0, waiting = 0;
    int64_t count = 0;
  };
  std::vector<Sum> sums(grid_.columns.size());
  for (int k = 0; k < iterations.seconds_size(); ++k) {
    const int64_t iteration = k * iterations.stride();
    const float seconds = iterations.seconds(k);
    if (iteration >= span_) break;
    if (!std::isfinite(seconds) || seconds < 0) continue;
    double waiting = 0;
    for (const Series* wait : waits) {
      if (k < wait->seconds_size() && wait->seconds(k) > 0) waiting += wait->seconds(k);
    }
    waiting = std::min<double>(waiting, seconds);
    const double work = seconds - waiting;
    const size_t column = ColumnOf(iteration);
    sums[column].work += work;
    sums[column].waiting += waiting;
    ++sums[column].count;
    GridColumn& of_all = grid_.columns[column];
    of_all.set_longest(Longer(of_all.longest(), seconds));
    if (!(of_all.shortest() <= seconds)) of_all.set_shortest(seconds);
    sums_[column] += seconds;
    ++counts_[column];
    const size_t value = static_cast<size_t>(iteration / grid_.stride);
    if (!(longest_[value] >= seconds)) longest_[value] = seconds;
    if (!(most_work_[value] >= work)) {
      most_work_[value] = static_cast<float>(work);
      most_work_rank_[value] = stats.rank();
    }
  }
  for (size_t column = 0; column < sums.size(); ++column) {
    const size_t cell = row * sums.size() + column;
    grid_.work[cell] = Longer(grid_.work[cell], sums[column].work / static_cast<double>(sums[column].count));
    grid_.waiting[cell] =
        Longer(grid_.waiting[cell], sums[column].waiting / static_cast<double>(sums[column].count));
  }
}

void RankGridBuilder::AddScope(const ScopeStats& scope, int parent, const StopwatchStats& stats, size_t row) {
  const double iterations = static_cast<double>(stats.num_measured_iters());
  const double seconds = scope.inclusive() / iterations;
  if (!std::isfinite(seconds)) return;
  constexpr int kLeftOut = -1;
  const auto [known, is_new] = node_of_.try_emplace(
      {parent, scope.name()}, nodes_.size() < kMaxNodes ? static_cast<int>(nodes_.size()) : kLeftOut);
  const int index = known->second;
  if (index == kLeftOut) {
    grid_.num_scopes_left_out += is_new;
    return;
  }
  if (is_new) {
    nodes_.emplace_back();
    GridScope& made = nodes_.back().scope;
    made.set_name(scope.name());
    made.set_parent(parent);
    made.set_longest_rank(-1);
    made.mutable_rows()->Resize(static_cast<int>(grid_.rows.size()), kUnknown);
  }
  Node& node = nodes_[index];
  if (collective_.count(scope.name()) > 0) node.scope.set_collective(true);
  node.scope.set_ranks(node.scope.ranks() + 1);
  node.seconds += seconds;
  node.own_seconds += scope.exclusive() / iterations;
  node.count += static_cast<double>(scope.count()) / iterations;
  double& of_row = *node.scope.mutable_rows()->Mutable(static_cast<int>(row));
  of_row = Longer(of_row, seconds);
  if (node.scope.longest_rank() < 0 || seconds > node.scope.longest()) {
    node.scope.set_longest(seconds);
    node.scope.set_longest_rank(stats.rank());
  }
  for (const ScopeStats& inner : scope.inner()) AddScope(inner, index, stats, row);
}

void RankGridBuilder::AddScopes(const StopwatchStats& stats, size_t row) {
  if (!stats.scopes().empty()) {
    for (const ScopeStats& scope : stats.scopes()) AddScope(scope, -1, stats, row);
    return;
  }
  for (const Measurement& measurement : stats.measurements()) {
    ScopeStats scope;
    scope.set_name(measurement.name());
    scope.set_count(measurement.per_interval().count());
    scope.set_inclusive(measurement.per_iteration().total());
    scope.set_exclusive(scope.inclusive());
    AddScope(scope, -1, stats, row);
  }
}

void RankGridBuilder::Add(const StopwatchStats& stats) {
  if (stats.rank() < 0 || stats.rank() >= world_size_) return;
  size_t row = static_cast<size_t>(stats.rank()) * grid_.rows.size() / world_size_;
  // Rounding may have put the rank into the row before.
  while (stats.rank() > grid_.rows[row].last()) ++row;
  if (grid_.rows[row].host().empty()) grid_.rows[row].set_host(stats.host());
  collective_.clear();
  for (const Measurement& measurement : stats.measurements()) {
    if (measurement.collective()) collective_.insert(measurement.name());
  }
  AddSeries(stats, row);
  if (stats.num_measured_iters() > 0) AddScopes(stats, row);
}

void RankGridBuilder::FindOutliers() {
  const double median = Median(longest_);
  std::vector<float> distances = longest_;
  for (float& distance : distances) distance = std::abs(distance - static_cast<float>(median));
  grid_.outlier_limit =
      std::max(median + kOutlierDistances * Median(std::move(distances)), kOutlierMedians * median);
  for (size_t value = 0; value < longest_.size(); ++value) {
    if (!(longest_[value] > grid_.outlier_limit)) continue;
    OutlierIteration& outlier = grid_.outliers.emplace_back();
    outlier.set_iteration(first_iteration_ + static_cast<int64_t>(value) * grid_.stride);
    outlier.set_seconds(longest_[value]);
    outlier.set_rank(most_work_rank_[value]);
    outlier.set_work_seconds(most_work_[value]);
  }
  grid_.num_outliers = static_cast<int64_t>(grid_.outliers.size());
  std::stable_sort(
      grid_.outliers.begin(), grid_.outliers.end(),
      [](const OutlierIteration& a, const OutlierIteration& b) { return a.seconds() > b.seconds(); });
  if (grid_.outliers.size() > kMaxOutliers) grid_.outliers.resize(kMaxOutliers);
}

void RankGridBuilder::FinishScopes() {
  for (Node& node : nodes_) {
    const double num_ranks = static_cast<double>(node.scope.ranks());
    node.scope.set_seconds(node.seconds / num_ranks);
    node.scope.set_own_seconds(node.own_seconds / num_ranks);
    node.scope.set_per_iteration(node.count / num_ranks);
  }
  std::vector<size_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // A measurement comes after the one that it lies in, of whose ranks those that have it may be the slowest.
  // So it is kept only where that one is.
  std::vector<double> size;
  for (const Node& node : nodes_) {
    const int parent = node.scope.parent();
    size.push_back(parent < 0 ? node.scope.seconds() : std::min(node.scope.seconds(), size[parent]));
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return size[a] > size[b]; });
  std::set<int> kept;
  for (const size_t index : order) {
    if (kept.size() == kMaxScopes) {
      ++grid_.num_scopes_left_out;
      continue;
    }
    if ((kept.size() + 1) * grid_.rows.size() > kMaxScopeCells) nodes_[index].scope.clear_rows();
    kept.insert(static_cast<int>(index));
  }
  std::map<int, int> place;
  for (const int index : kept) {
    GridScope scope = std::move(nodes_[index].scope);
    if (scope.parent() >= 0) scope.set_parent(place.at(scope.parent()));
    place[index] = static_cast<int>(grid_.scopes.size());
    grid_.scopes.push_back(std::move(scope));
  }
}

RankGrid RankGridBuilder::Finish() {
  for (size_t column = 0; column < grid_.columns.size(); ++column) {
    // No number if none counts.
    grid_.columns[column].set_mean(sums_[column] / static_cast<double>(counts_[column]));
  }
  FindOutliers();
  FinishScopes();
  return std::move(grid_);
}

absl::StatusOr<RankGrid> ReadRankGrid(const std::string& run_dir, int world_size, int64_t start_iteration) {
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  // By the longest of the first ranks: one of them may have been cut short.
  constexpr size_t kMaxTried = 16;
  StopwatchStats longest;
  for (size_t i = 0; i < std::min(ranks.size(), kMaxTried); ++i) {
    StopwatchStats stats = ReadStats(run_dir, ranks[i]);
    if (Span(stats) > Span(longest)) longest.Swap(&stats);
  }
  if (Span(longest) == 0)
    return absl::NotFoundError(absl::StrCat(run_dir, ": no rank kept times of single iterations"));
  const int64_t num_warmup = std::clamp<int64_t>(longest.num_warmup_iters(), 0, int64_t{1} << 50);
  RankGridBuilder builder(world_size, longest, start_iteration + num_warmup);
  for (const int rank : ranks) {
    if (const StopwatchStats stats = ReadStats(run_dir, rank); Span(stats) > 0) builder.Add(stats);
  }
  return builder.Finish();
}

}  // namespace ott::slow
