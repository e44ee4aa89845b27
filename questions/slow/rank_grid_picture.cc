#include "ott/questions/slow/rank_grid_picture.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/questions/answer/display_text.h"

namespace ott::slow {
namespace {

// Many numbers: microseconds with four significant digits, null if nothing is known.
constexpr double kShadeUnit = 1e-6;

Json Shades(const std::vector<double>& seconds) {
  Json shades = Json::array();
  for (const double value : seconds) shades.push_back(Rounded(value / kShadeUnit, 4));
  return shades;
}

void AddWhatGridLeavesOut(const RankGrid& grid, std::vector<std::string>* thinned) {
  const size_t num_ranks = static_cast<size_t>(grid.rows.back().last_rank) + 1;
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
  Json columns = Json::array();
  for (const RankGrid::Column& column : grid.columns) {
    columns.push_back({{"first", column.first_iteration},
                       {"last", column.last_iteration},
                       {"shortest", Rounded(column.shortest)},
                       {"mean", Rounded(column.mean)},
                       {"longest", Rounded(column.longest)}});
  }
  Json outliers = Json::array();
  for (const RankGrid::Outlier& outlier : grid.outliers) {
    outliers.push_back({{"iteration", outlier.iteration},
                        {"seconds", Rounded(outlier.seconds)},
                        {"rank", outlier.rank},
                        {"work_seconds", Rounded(outlier.work_seconds)}});
  }
  document->pictures["iterations"] = {{"columns", columns},
                                      {"outlier_limit", Rounded(grid.outlier_limit)},
                                      {"num_outliers", grid.num_outliers},
                                      {"outliers", std::move(outliers)}};
  Json rows = Json::array();
  for (const RankGrid::Row& row : grid.rows) {
    rows.push_back({{"first", row.first_rank}, {"last", row.last_rank}, {"host", DisplayName(row.host)}});
  }
  document->pictures["heat_map"] = {
      {"named", named},     {"rows", std::move(rows)},   {"columns", std::move(columns)},
      {"unit", kShadeUnit}, {"work", Shades(grid.work)}, {"waiting", Shades(grid.waiting)}};
  Json scopes = Json::array();
  for (const RankGrid::Scope& scope : grid.scopes) {
    scopes.push_back({{"name", DisplayName(scope.name)},
                      {"parent", scope.parent},
                      {"collective", scope.collective},
                      {"ranks", scope.num_ranks},
                      {"seconds", Rounded(scope.seconds)},
                      {"own_seconds", Rounded(scope.own_seconds)},
                      {"per_iteration", Rounded(scope.per_iteration)},
                      {"longest", Rounded(scope.longest)},
                      {"longest_rank", scope.longest_rank},
                      {"rows", Shades(scope.rows)}});
  }
  if (!scopes.empty()) {
    double seconds = 0;
    int64_t count = 0;
    for (const RankGrid::Column& column : grid.columns) {
      if (std::isnan(column.mean)) continue;
      seconds += column.mean;
      ++count;
    }
    document->pictures["time_tree"] = {
        {"iteration_seconds", Rounded(count > 0 ? seconds / static_cast<double>(count) : 0)},
        {"unit", kShadeUnit},
        {"scopes", std::move(scopes)}};
  }
  AddWhatGridLeavesOut(grid, &document->thinned);
}

}  // namespace ott::slow
