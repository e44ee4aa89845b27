#include "ott/questions/slow/rank_grid_picture.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/questions/answer/display_text.h"
#include "ott/questions/answer/picture.h"

namespace ott::slow {
namespace {

// Many numbers: microseconds with four significant digits.
constexpr double kShadeUnit = 1e-6;

template <typename Numbers>
google::protobuf::RepeatedField<double> Shades(const Numbers& seconds) {
  google::protobuf::RepeatedField<double> shades;
  for (const double value : seconds) shades.Add(Rounded(value / kShadeUnit, 4));
  return shades;
}

void AddWhatGridLeavesOut(const RankGrid& grid, std::vector<std::string>* thinned) {
  const size_t num_ranks = static_cast<size_t>(grid.rows.back().last()) + 1;
  if (num_ranks > grid.rows.size()) {
    thinned->push_back(absl::StrFormat(
        "%d ranks share %d rows of the heat map: a row shows the longest mean of a rank in it", num_ranks,
        grid.rows.size()));
  }
  if (grid.num_iterations > static_cast<int64_t>(grid.columns.size())) {
    thinned->push_back(absl::StrFormat("%d iterations share %d columns, which show means",
                                       grid.num_iterations, grid.columns.size()));
  }
  if (grid.stride > 1) {
    thinned->push_back(absl::StrFormat("the ranks kept the times of every %dth iteration", grid.stride));
  }
  if (grid.num_outliers > static_cast<int64_t>(grid.outliers.size())) {
    thinned->push_back(
        absl::StrFormat("of %d outliers the %d longest are listed", grid.num_outliers, grid.outliers.size()));
  }
  if (grid.num_scopes_left_out > 0) {
    thinned->push_back(
        absl::StrCat(grid.num_scopes_left_out, " shorter measurements are left out of the tree"));
  }
}

}  // namespace

void AddRankGrid(const RankGrid& grid, const std::vector<int>& named, Document* document) {
  IterationsPicture iterations;
  *iterations.mutable_columns() = {grid.columns.begin(), grid.columns.end()};
  iterations.set_outlier_limit(grid.outlier_limit);
  iterations.set_num_outliers(grid.num_outliers);
  *iterations.mutable_outliers() = {grid.outliers.begin(), grid.outliers.end()};
  document->pictures["iterations"] = DrawMessage(iterations);
  HeatMap heat_map;
  *heat_map.mutable_rows() = {grid.rows.begin(), grid.rows.end()};
  *heat_map.mutable_columns() = iterations.columns();
  *heat_map.mutable_named() = {named.begin(), named.end()};
  heat_map.set_unit(kShadeUnit);
  *heat_map.mutable_work() = Shades(grid.work);
  *heat_map.mutable_waiting() = Shades(grid.waiting);
  document->pictures["heat_map"] = DrawMessage(heat_map);
  TimeTree tree;
  for (const GridScope& scope : grid.scopes) {
    GridScope& drawn = *tree.add_scopes() = scope;
    *drawn.mutable_rows() = Shades(scope.rows());
  }
  if (!grid.scopes.empty()) {
    double seconds = 0;
    int64_t count = 0;
    for (const GridColumn& column : grid.columns) {
      if (std::isnan(column.mean())) continue;
      seconds += column.mean();
      ++count;
    }
    tree.set_iteration_seconds(count > 0 ? seconds / static_cast<double>(count) : 0);
    tree.set_unit(kShadeUnit);
    document->pictures["time_tree"] = DrawMessage(tree);
  }
  AddWhatGridLeavesOut(grid, &document->thinned);
}

}  // namespace ott::slow
