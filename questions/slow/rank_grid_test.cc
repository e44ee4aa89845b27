// Grids of random ranks by their definition, and what is told to a monitor.

#include "ott/questions/slow/rank_grid.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stats_for_test.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/command_for_test.h"
#include "ott/questions/answer/display_text.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/slow/rank_grid_picture.h"
#include "ott/questions/slow/slow_question.h"
#include "ott/questions/slow/stats_command.h"
#include "ott/questions/waiting/waiting_question.h"

namespace ott::slow {
namespace {

void WriteStats(const std::string& run_dir, int rank, const StopwatchStats& stats) {
  const std::string dir = RankDirectory(run_dir, rank);
  ASSERT_TRUE(MakeDirectories(dir).ok());
  ASSERT_TRUE(WriteFileAtomically(dir + "/stopwatch.pb", stats.SerializeAsString()).ok());
}

std::string EmptyDir(const std::string& name) {
  const std::string dir = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  return dir;
}

// Quarters, so that sums have no rounding.
double Seconds(std::mt19937& random) { return static_cast<double>(random() % 40) / 4; }

void AddScopes(std::mt19937& random, int depth, double longest,
               google::protobuf::RepeatedPtrField<ScopeStats>* scopes) {
  for (const char* const name : {"step", "loss", "sync"}) {
    if (random() % 2 == 0) continue;
    ScopeStats& scope = *scopes->Add();
    scope.set_name(name);
    scope.set_count(8 * static_cast<int64_t>(random() % 3));
    scope.set_inclusive(random() % 16 == 0 ? std::nan("") : std::min(Seconds(random), longest));
    scope.set_exclusive(Seconds(random));
    if (depth > 0) AddScopes(random, depth - 1, scope.inclusive(), scope.mutable_inner());
  }
}

StopwatchStats RandomStats(std::mt19937& random, int rank, int64_t stride) {
  StopwatchStats stats;
  stats.set_rank(rank);
  stats.set_num_warmup_iters(static_cast<int64_t>(random() % 3));
  stats.set_num_measured_iters(random() % 10 == 0 ? -8 : 8);
  Series& iterations = *stats.mutable_iteration_series();
  iterations.set_stride(random() % 4 == 0 ? 2 * stride : stride);
  for (size_t left = random() % 9; left > 0; --left) {
    const double none = random() % 2 == 0 ? -5 : std::nan("");
    iterations.add_seconds(static_cast<float>(random() % 16 == 0 ? none : Seconds(random)));
  }
  for (const char* const name : {"step", "loss", "sync"}) {
    if (random() % 4 == 0) continue;
    Measurement& measurement = *stats.add_measurements();
    measurement.set_name(name);
    measurement.set_collective(random() % 2 == 0);
    measurement.mutable_per_iteration()->set_total(Seconds(random));
    measurement.mutable_per_interval()->set_count(16);
    measurement.mutable_series()->set_stride(random() % 4 == 0 ? 5 : iterations.stride());
    for (size_t left = random() % 9; left > 0; --left)
      measurement.mutable_series()->add_seconds(
          static_cast<float>(random() % 16 == 0 ? -1 : Seconds(random) / 4));
  }
  if (random() % 2 == 0) AddScopes(random, 2, 100, stats.mutable_scopes());
  return stats;
}

bool IsCollective(const StopwatchStats& stats, const std::string& name) {
  return std::any_of(stats.measurements().begin(), stats.measurements().end(),
                     [&](const Measurement& of) { return of.name() == name && of.collective(); });
}

// A collective measurement counts where it lies in no other, if it is known what lies in what.
bool LiesOutermost(const StopwatchStats& stats, const google::protobuf::RepeatedPtrField<ScopeStats>& scopes,
                   const std::string& name) {
  return std::any_of(scopes.begin(), scopes.end(), [&](const ScopeStats& scope) {
    if (IsCollective(stats, scope.name())) return scope.name() == name;
    return LiesOutermost(stats, scope.inner(), name);
  });
}

double Waiting(const StopwatchStats& stats, int k) {
  double waiting = 0;
  for (const Measurement& of : stats.measurements()) {
    const bool counts =
        of.collective() && (stats.scopes().empty() || LiesOutermost(stats, stats.scopes(), of.name()));
    if (counts && of.series().stride() == stats.iteration_series().stride() && k < of.series().seconds_size())
      waiting += std::max(0.0f, of.series().seconds(k));
  }
  return std::min<double>(waiting, stats.iteration_series().seconds(k));
}

double UpperMedian(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Compares a grid with what ranks did. base: of a rank, by whose iterations the columns were chosen; first:
// the first one's number.
void ExpectCellsAndOutliers(const RankGrid& grid, const std::map<int, StopwatchStats>& ranks,
                            const StopwatchStats& base, int64_t first) {
  const int64_t kept = base.iteration_series().stride(), num_values = base.iteration_series().seconds_size();
  const size_t num_columns = grid.columns.size();
  EXPECT_EQ(grid.stride, kept);
  EXPECT_EQ(grid.num_iterations, std::max<int64_t>(0, base.num_measured_iters()));
  std::vector<size_t> column_of;  // of each iteration that was kept
  for (size_t column = 0; column < num_columns; ++column) {
    const GridColumn& of = grid.columns[column];
    const auto next = [&] { return first + static_cast<int64_t>(column_of.size()) * kept; };
    EXPECT_EQ(of.first(), next());
    while (next() <= of.last() || column_of.empty() || column_of.back() != column)
      column_of.push_back(column);
    // The last one ends with the iterations that were measured.
    const int64_t measured = column + 1 < num_columns ? next() : first + grid.num_iterations;
    EXPECT_EQ(of.last(), std::clamp(measured - 1, of.first(), next() - 1));
  }
  ASSERT_EQ(column_of.size(), num_values);
  struct Value {
    double longest = -1, work = -1;
    int rank = -1;
  };
  std::vector<Value> values(num_values);
  std::vector<std::vector<double>> of_columns(num_columns);
  std::vector<double> work(grid.rows.size() * num_columns, std::nan("")), waiting = work;
  int next_rank = 0;
  for (size_t row = 0; row < grid.rows.size(); ++row) {
    EXPECT_EQ(grid.rows[row].first(), next_rank);
    std::string host;
    for (; next_rank <= grid.rows[row].last(); ++next_rank) {
      const auto known = ranks.find(next_rank);
      if (known == ranks.end()) continue;
      const Series& series = known->second.iteration_series();
      if (host.empty()) host = known->second.host();
      struct Sum {
        double work = 0, waiting = 0, count = 0;
      };
      std::vector<Sum> sums(num_columns);
      for (int k = 0; k < series.seconds_size(); ++k) {
        const int64_t place = k * series.stride() / kept;
        if (place >= num_values || !(series.seconds(k) >= 0)) continue;
        const double of_wait = Waiting(known->second, k), of_work = series.seconds(k) - of_wait;
        Sum& sum = sums[column_of[place]];
        sum.work += of_work;
        sum.waiting += of_wait;
        ++sum.count;
        of_columns[column_of[place]].push_back(series.seconds(k));
        Value& value = values[place];
        value.longest = std::max<double>(value.longest, series.seconds(k));
        if (of_work > value.work) std::tie(value.work, value.rank) = std::pair(of_work, next_rank);
      }
      for (size_t column = 0; column < num_columns; ++column) {
        const size_t cell = row * num_columns + column;
        if (sums[column].count == 0) continue;
        work[cell] = std::fmax(work[cell], sums[column].work / sums[column].count);
        waiting[cell] = std::fmax(waiting[cell], sums[column].waiting / sums[column].count);
      }
    }
    EXPECT_EQ(grid.rows[row].host(), host);
  }
  EXPECT_THAT(grid.work, testing::Pointwise(testing::NanSensitiveDoubleEq(), work));
  EXPECT_THAT(grid.waiting, testing::Pointwise(testing::NanSensitiveDoubleEq(), waiting));
  for (size_t column = 0; column < num_columns; ++column) {
    const GridColumn& of = grid.columns[column];
    const std::vector<double>& all = of_columns[column];
    ASSERT_EQ(std::isnan(of.mean()), all.empty());
    if (all.empty()) continue;
    EXPECT_EQ(of.shortest(), *std::min_element(all.begin(), all.end()));
    EXPECT_EQ(of.longest(), *std::max_element(all.begin(), all.end()));
    EXPECT_DOUBLE_EQ(of.mean(),
                     std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size()));
  }
  std::vector<double> longest, distances;
  for (const Value& value : values) {
    if (value.longest >= 0) longest.push_back(value.longest);
  }
  const double median = UpperMedian(longest);
  for (const double seconds : longest) distances.push_back(std::abs(seconds - median));
  EXPECT_EQ(grid.outlier_limit, std::max(median + 8 * UpperMedian(distances), 1.5 * median));
  std::vector<std::pair<double, int64_t>> outliers;  // the longest first
  for (int64_t place = 0; place < num_values; ++place) {
    if (values[place].longest > grid.outlier_limit) outliers.emplace_back(-values[place].longest, place);
  }
  std::sort(outliers.begin(), outliers.end());
  EXPECT_EQ(grid.num_outliers, outliers.size());
  ASSERT_EQ(grid.outliers.size(), std::min<size_t>(50, outliers.size()));
  for (size_t i = 0; i < grid.outliers.size(); ++i) {
    const auto& [seconds, place] = outliers[i];
    EXPECT_EQ(grid.outliers[i].seconds(), -seconds);
    EXPECT_EQ(grid.outliers[i].iteration(), first + place * kept);
    EXPECT_EQ(grid.outliers[i].rank(), values[place].rank);
    EXPECT_EQ(grid.outliers[i].work_seconds(), values[place].work);
  }
}

struct ScopeOfRanks {
  GridScope scope;
  std::map<int, double> rows;
};

void AddTo(const StopwatchStats& stats, const google::protobuf::RepeatedPtrField<ScopeStats>& scopes,
           const std::string& path, std::map<std::string, ScopeOfRanks>& all) {
  for (const ScopeStats& of : scopes) {
    if (std::isnan(of.inclusive())) continue;
    ScopeOfRanks& to = all[absl::StrCat(path, "/", of.name())];
    const double seconds = of.inclusive() / 8;
    to.scope.set_collective(to.scope.collective() || IsCollective(stats, of.name()));
    to.scope.set_ranks(to.scope.ranks() + 1);
    to.scope.set_seconds(to.scope.seconds() + seconds);
    to.scope.set_own_seconds(to.scope.own_seconds() + of.exclusive() / 8);
    to.scope.set_per_iteration(to.scope.per_iteration() + static_cast<double>(of.count()) / 8);
    if (to.rows.empty() || seconds > to.scope.longest()) {
      to.scope.set_longest(seconds);
      to.scope.set_longest_rank(stats.rank());
    }
    to.rows[stats.rank()] = seconds;
    AddTo(stats, of.inner(), absl::StrCat(path, "/", of.name()), all);
  }
}

TEST(RankGrid, IsWhatEachRankDidInEachIteration) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const std::string run_dir = EmptyDir("grid");
    const int num_ranks = 1 + static_cast<int>(random() % 4);
    const int64_t stride = 1 + static_cast<int64_t>(random() % 3);
    const auto span = [](const StopwatchStats& stats) {
      return stats.iteration_series().seconds_size() * stats.iteration_series().stride();
    };
    std::map<int, StopwatchStats> known;
    StopwatchStats base;
    // The last rank may be one that the job has not.
    for (int rank = 0; rank <= num_ranks; ++rank) {
      StopwatchStats stats = RandomStats(random, rank, stride);
      if (random() % 5 == 0) {
        std::filesystem::create_directories(RankDirectory(run_dir, static_cast<int>(random() % 2) * rank));
        continue;
      }
      const size_t damage = random() % 16;
      if (damage == 0) stats.set_rank(rank + 1);
      if (damage == 1) stats.mutable_iteration_series()->set_stride(-1);
      if (damage == 2) stats.mutable_iteration_series()->set_stride(std::numeric_limits<int64_t>::max());
      WriteStats(run_dir, rank, stats);
      if (damage < 3 || span(stats) == 0) continue;
      if (rank < num_ranks) known[rank] = stats;
      if (span(stats) > span(base)) base = stats;
    }
    const absl::StatusOr<RankGrid> found = ReadRankGrid(run_dir, num_ranks, 100);
    ASSERT_EQ(found.ok(), span(base) > 0);
    if (span(base) == 0) continue;
    ASSERT_EQ(found->rows.size(), num_ranks);
    ASSERT_EQ(found->columns.size(), base.iteration_series().seconds_size());
    ExpectCellsAndOutliers(*found, known, base, 100 + base.num_warmup_iters());
    std::map<std::string, ScopeOfRanks> scopes;
    for (const auto& [rank, stats] : known) {
      if (stats.num_measured_iters() < 0) continue;
      auto tree = stats.scopes();
      for (int i = 0; stats.scopes().empty() && i < stats.measurements_size(); ++i) {
        ScopeStats& flat = *tree.Add();
        flat.set_name(stats.measurements(i).name());
        flat.set_count(16);
        flat.set_inclusive(stats.measurements(i).per_iteration().total());
        flat.set_exclusive(flat.inclusive());
      }
      AddTo(stats, tree, "", scopes);
    }
    std::vector<std::string> paths;
    EXPECT_EQ(found->num_scopes_left_out, 0);
    ASSERT_EQ(found->scopes.size(), scopes.size());
    for (const GridScope& of : found->scopes) {
      paths.push_back(absl::StrCat(of.parent() < 0 ? "" : paths.at(of.parent()), "/", of.name()));
      ASSERT_EQ(scopes.count(paths.back()), 1) << paths.back();
      const ScopeOfRanks& expected = scopes[paths.back()];
      const auto ranks = static_cast<double>(expected.scope.ranks());
      EXPECT_EQ(of.collective(), expected.scope.collective());
      EXPECT_EQ(of.ranks(), expected.scope.ranks());
      EXPECT_DOUBLE_EQ(of.seconds(), expected.scope.seconds() / ranks);
      EXPECT_DOUBLE_EQ(of.own_seconds(), expected.scope.own_seconds() / ranks);
      EXPECT_DOUBLE_EQ(of.per_iteration(), expected.scope.per_iteration() / ranks);
      EXPECT_EQ(of.longest(), expected.scope.longest());
      EXPECT_EQ(of.longest_rank(), expected.scope.longest_rank());
      for (int rank = 0; rank < num_ranks; ++rank) {
        const auto known_row = expected.rows.find(rank);
        ASSERT_EQ(std::isnan(of.rows(rank)), known_row == expected.rows.end());
        if (known_row == expected.rows.end()) continue;
        EXPECT_EQ(of.rows(rank), known_row->second);
      }
    }
  }
}

// Beyond so many ranks or iterations, neighbours share a row or a column, of the ranks the longest mean. Of
// many outliers and measurements the longest are kept, and of fewer measurements what each row took.
TEST(RankGrid, OfManyRanksAndIterationsNeighboursShareACellAndTheLongestAreKept) {
  std::mt19937 random(1);
  // Each measurement has one inside of it, which is much shorter, or longer and on few ranks alone.
  constexpr int kScopes = 150;
  const auto seconds_of = [](int scope) { return (scope * 7 + 24) % kScopes + 1.0; };
  std::vector<std::pair<double, int>> by_size;
  for (int i = 0; i < kScopes; ++i) {
    by_size.emplace_back(-seconds_of(i), 2 * i);
    by_size.emplace_back(-seconds_of(i) * (i % 2 == 1 ? 0.2501 : 1), 2 * i + 1);
  }
  std::sort(by_size.begin(), by_size.end());
  std::vector<int> place_of(by_size.size());
  for (size_t place = 0; place < by_size.size(); ++place)
    place_of[by_size[place].second] = static_cast<int>(place);
  for (const auto& [world_size, num_values] :
       {std::pair(16, 157), {16, 900}, {250, 401}, {257, 157}, {1000, 401}, {1000, 900}}) {
    const int64_t stride = 1 + static_cast<int64_t>(random() % 3), first = 50;
    std::map<int, StopwatchStats> ranks;
    // The first and the last are none of the job's.
    for (int rank = -1; rank <= world_size; ++rank) {
      ranks[rank].set_rank(rank);
      ranks[rank].set_host(absl::StrCat("n", rank));
      ranks[rank].set_num_measured_iters(stride * num_values);
      ranks[rank].mutable_iteration_series()->set_stride(stride);
      for (int i = 0; i < num_values; ++i) {
        const double seconds = Seconds(random) + (i % 7 == 0 ? 1000 + i : 0);
        ranks[rank].mutable_iteration_series()->add_seconds(static_cast<float>(seconds));
      }
      for (int i = 0; i < kScopes; ++i) {
        ScopeStats& scope = *ranks[rank].add_scopes();
        scope.set_name(absl::StrCat(i));
        scope.set_inclusive(seconds_of(i) * static_cast<double>(stride * num_values));
        if (i % 2 == 0 && rank % 8 > 0) continue;
        const ScopeStats outer = scope;
        *scope.add_inner() = outer;
        scope.mutable_inner(0)->set_inclusive((i % 2 == 1 ? 0.2501 : 1.5) * outer.inclusive());
      }
    }
    const StopwatchStats base = ranks[0];
    RankGridBuilder builder(world_size, base, first);
    // More iterations than the first rank has do not count.
    for (int i = 0; i < 3; ++i) ranks[world_size - 1].mutable_iteration_series()->add_seconds(1e6);
    for (const auto& [rank, stats] : ranks) builder.Add(stats);
    const RankGrid grid = builder.Finish();
    ASSERT_EQ(grid.rows.size(), std::min(world_size, 256));
    ASSERT_EQ(grid.columns.size(), std::min({num_values, 400, 40000 / std::min(world_size, 256)}));
    EXPECT_EQ(grid.rows.back().last(), world_size - 1);
    EXPECT_EQ(grid.num_outliers, (num_values + 6) / 7);
    ExpectCellsAndOutliers(grid, ranks, base, first);
    ASSERT_EQ(grid.scopes.size(), 200);
    EXPECT_EQ(grid.num_scopes_left_out, 2 * kScopes - 200);
    for (const GridScope& scope : grid.scopes) {
      const bool is_outer = scope.parent() < 0;
      const int place = place_of[2 * std::stoi(scope.name()) + (is_outer ? 0 : 1)];
      EXPECT_EQ(is_outer ? scope.name() : grid.scopes[scope.parent()].name(), scope.name());
      EXPECT_LT(place, 200);
      EXPECT_TRUE(!is_outer || scope.ranks() == world_size);
      EXPECT_EQ(scope.rows().empty(), (place + 1) * std::min(world_size, 256) > 20000) << place;
    }
  }
}

TEST(RankGrid, OfThousandsOfMeasurementsTheFirstAreLookedAtAndTheOthersCountOnce) {
  StopwatchStats stats;
  stats.set_num_measured_iters(1);
  stats.mutable_iteration_series()->set_stride(1);
  stats.mutable_iteration_series()->add_seconds(1);
  for (int i = 0; i < 4002; ++i) {
    stats.add_scopes()->set_name(absl::StrCat(i));
    stats.mutable_scopes(i)->set_inclusive(i);
  }
  RankGridBuilder builder(2, stats, 0);
  for (const int rank : {0, 1}) {
    stats.set_rank(rank);
    builder.Add(stats);
  }
  const RankGrid grid = builder.Finish();
  EXPECT_EQ(grid.num_scopes_left_out, 4002 - 200);
  EXPECT_EQ(grid.scopes.back().name(), "3999");
}

TEST(RankGridPicture, ShowsTheGridAndSaysWhatItLeavesOut) {
  std::mt19937 random(1);
  const auto below = [&](int bound) { return static_cast<int>(random() % static_cast<uint32_t>(bound)); };
  // Microseconds, or not known.
  const auto time = [&] { return below(4) == 0 ? std::nan("") : 1e-6 * below(9000); };
  const auto shade = [](double seconds) {
    return std::isnan(seconds) ? Json() : Json(std::round(1e6 * seconds));
  };
  const auto draw = [](const auto& messages) {
    Json drawn = Json::array();
    for (const auto& message : messages) drawn.push_back(DrawMessage(message));
    return drawn;
  };
  for (int trial = 0; trial < 200; ++trial) {
    RankGrid grid;
    const std::vector<int> named(below(3), below(4));
    Json work = Json::array(), waiting = Json::array(), scopes = Json::array();
    std::vector<double> means;
    int num_ranks = 0;
    for (int rows = 1 + below(3); rows > 0; --rows) {
      GridRow& row = grid.rows.emplace_back();
      row.set_first(num_ranks);
      row.set_last(num_ranks + below(2));
      row.set_host(absl::StrCat("n", num_ranks));
      num_ranks = row.last() + 1;
    }
    for (int columns = 1 + below(3); columns > 0; --columns) {
      grid.columns.emplace_back().set_mean(time());
      grid.columns.back().set_longest(time());
      grid.columns.back().set_last(below(9));
      if (!std::isnan(grid.columns.back().mean())) means.push_back(grid.columns.back().mean());
      for (size_t row = 0; row < grid.rows.size(); ++row) {
        work.push_back(shade(grid.work.emplace_back(time())));
        waiting.push_back(shade(grid.waiting.emplace_back(time())));
      }
    }
    for (int outliers = below(3); outliers > 0; --outliers) grid.outliers.emplace_back().set_rank(below(9));
    for (int left = below(3); left > 0; --left) {
      GridScope& scope = grid.scopes.emplace_back();
      scope.set_seconds(time());
      scope.set_ranks(below(9));
      Json drawn = DrawMessage(scope);
      for (int row = below(3); row > 0; --row) {
        scope.add_rows(time());
        drawn["rows"].push_back(shade(scope.rows().at(scope.rows_size() - 1)));
      }
      scopes.push_back(drawn);
    }
    grid.outlier_limit = time();
    grid.num_outliers = static_cast<int64_t>(grid.outliers.size()) + below(2);
    grid.num_scopes_left_out = below(3);
    grid.num_iterations = static_cast<int64_t>(grid.columns.size()) - 1 + below(3);
    grid.stride = 1 + below(2);
    Document document;
    AddRankGrid(grid, named, &document);
    const Json columns = draw(grid.columns);
    EXPECT_EQ(
        document.pictures["iterations"].dump(),
        Json({{"columns", columns},
              {"outlier_limit", std::isnan(grid.outlier_limit) ? Json() : Json(Rounded(grid.outlier_limit))},
              {"num_outliers", grid.num_outliers},
              {"outliers", draw(grid.outliers)}})
            .dump());
    EXPECT_EQ(document.pictures["heat_map"].dump(), Json({{"rows", draw(grid.rows)},
                                                          {"columns", columns},
                                                          {"named", named},
                                                          {"unit", 1e-6},
                                                          {"work", work},
                                                          {"waiting", waiting}})
                                                        .dump());
    const double sum = std::accumulate(means.begin(), means.end(), 0.0);
    const double mean = means.empty() ? 0 : Rounded(sum / static_cast<double>(means.size()));
    const Json tree = {{"iteration_seconds", mean}, {"unit", 1e-6}, {"scopes", scopes}};
    EXPECT_EQ(document.pictures["time_tree"].dump(), grid.scopes.empty() ? "null" : tree.dump());
    std::vector<std::string> thinned;
    const auto expect = [&](bool is_so, const std::string& text) {
      if (is_so) thinned.push_back(text);
    };
    const size_t num_rows = grid.rows.size(), num_columns = grid.columns.size();
    expect(num_ranks > static_cast<int>(num_rows),
           absl::StrCat(num_ranks, " ranks share ", num_rows,
                        " rows of the heat map: a row shows the longest mean of a rank in it"));
    expect(
        grid.num_iterations > static_cast<int64_t>(num_columns),
        absl::StrCat(grid.num_iterations, " iterations share ", num_columns, " columns, which show means"));
    expect(grid.stride > 1, "the ranks kept the times of every 2th iteration");
    expect(grid.num_outliers > static_cast<int64_t>(grid.outliers.size()),
           absl::StrCat("of ", grid.num_outliers, " outliers the ", grid.outliers.size(),
                        " longest are listed"));
    expect(grid.num_scopes_left_out > 0,
           absl::StrCat(grid.num_scopes_left_out, " shorter measurements are left out of the tree"));
    EXPECT_EQ(document.thinned, thinned);
  }
}

// Some ranks left nothing, measured fewer iterations, or take twice as long. `ott stats` says of waiting what
// a report says.
TEST(SlowQuestion, AMonitorIsToldWhatIsMissingAndOfNoExcessWhereThatIsNotKnown) {
  EXPECT_THAT(SlowQuestion().reads, testing::ElementsAre(testing::StrEq("stopwatch.pb")));
  std::mt19937 random(1);
  for (int trial = 0; trial < 120; ++trial) {
    AskedRun run;
    run.run_dir = EmptyDir("asked");
    const int num_ranks = 1 + static_cast<int>(random() % 3), slow = static_cast<int>(random() % 4);
    const int num_measurements = std::vector<int>{1, 1, 1, 1, 199, 200}[random() % 6];
    run.info.emplace().set_world_size(num_ranks);
    const bool wants_stats = random() % 2 == 0, has_series = random() % 4 > 0;
    if (wants_stats) run.info->mutable_config()->mutable_stopwatch();
    if (wants_stats && random() % 2 == 0)
      run.info->mutable_config()->mutable_stopwatch()->add_collective_measurements("m0");
    ASSERT_TRUE(WriteRunInfo(run.run_dir, *run.info).ok());
    // The report itself says that run.json is damaged, so the answer does not.
    const bool is_gathered = random() % 2 == 0, is_gathered_damaged = is_gathered && random() % 2 == 0;
    if (is_gathered) std::ofstream(ClusterStatsPath(run.run_dir)) << (is_gathered_damaged ? "{" : "{}");
    if (random() % 3 == 0) {
      run.info.reset();
      std::ofstream(run.run_dir + "/run.json") << "{";
    }
    const bool is_work_known = random() % 2 == 0;
    std::vector<int> missing;
    std::set<int64_t> counts;
    for (int rank = 0; rank < num_ranks; ++rank) {
      StopwatchStats stats;
      stats.set_rank(rank);
      stats.set_host("node");
      stats.set_world_size(num_ranks);
      stats.set_num_measured_iters(10 + static_cast<int64_t>(random() % 2));
      if (has_series) stats.mutable_iteration_series()->set_stride(1);
      if (has_series) stats.mutable_iteration_series()->add_seconds(1);
      for (int i = 0; i < num_measurements; ++i) stats.add_measurements()->set_name(absl::StrCat("m", i));
      stats.mutable_measurements(0)->set_collective(true);
      if (is_work_known)
        *stats.mutable_own_work()->mutable_time()->mutable_all() = SteadyForTest(rank == slow ? 2 : 1, 1e-6);
      if (random() % 3 == 0) {
        missing.push_back(rank);
      } else {
        counts.insert(stats.num_measured_iters());
        WriteStats(run.run_dir, rank, stats);
      }
    }
    const Findings findings = SlowQuestion().ask(run).value();
    std::vector<testing::Matcher<std::string>> problems;
    if (!missing.empty()) problems.emplace_back("no statistics of " + FormatRanks(missing));
    if (counts.size() > 1)
      problems.emplace_back("the statistics of some ranks end after 10 of 11 iterations");
    if (missing.empty() && run.info && is_gathered_damaged)
      problems.emplace_back(testing::HasSubstr(ClusterStatsPath(run.run_dir)));
    EXPECT_EQ(findings.is_news, !counts.empty());
    if (counts.empty()) {
      EXPECT_EQ(findings.problems.size(), wants_stats || !run.info ? 1 : 0);
      continue;
    }
    EXPECT_THAT(findings.problems, testing::ElementsAreArray(problems));
    const bool is_here = slow < num_ranks && std::count(missing.begin(), missing.end(), slow) == 0;
    const bool is_named = is_here && is_work_known && run.info && num_ranks - missing.size() > 1;
    const bool is_known = num_ranks == 1 || (is_work_known && run.info && missing.empty());
    const std::string next = "ott whatif " + run.run_dir;
    EXPECT_THAT(findings.answers.at(0).next(), testing::ElementsAreArray(&next, is_named ? 1 : 0));
    EXPECT_THAT(findings.details.at(0).text, testing::HasSubstr(absl::StrCat(" of ", num_ranks, " ranks, ")));
    Document document;
    findings.draw({}, &document);
    EXPECT_EQ(document.pictures.contains("iterations"), has_series);
    const Json& rows = document.pictures.at("measurements").at("rows");
    EXPECT_EQ(rows.size(), std::min(num_measurements + 1, 200));
    EXPECT_EQ(rows.at(0).at("name"), "iteration");
    EXPECT_THAT(
        document.thinned,
        testing::Contains("of 201 measurements 200 are listed").Times(num_measurements == 200 ? 1 : 0));
    EXPECT_EQ(document.pictures["heat_map"]["rows"].size(), has_series ? num_ranks : 0);
    std::map<std::string, std::vector<Metric::Sample>> metrics;
    for (const Metric& metric : findings.metrics) metrics[metric.name] = metric.samples;
    const auto& excess = metrics["ott_slowest_rank_excess_ratio"];
    ASSERT_EQ(excess.size(), is_named || is_known ? 1 : 0) << trial;
    if (!excess.empty()) {
      EXPECT_NEAR(excess[0].value, is_named ? 1 : 0, 1e-9);
      EXPECT_EQ(excess[0].labels.at(0).second, is_named ? absl::StrCat(slow) : "");
      EXPECT_EQ(excess[0].labels.at(1).second, is_named ? "node" : "");
    }
    EXPECT_EQ(metrics["ott_ranks_missing"].at(0).value, missing.size());
    EXPECT_EQ(metrics["ott_iterations_measured"].at(0).value, *counts.rbegin());
    const Answer waits = waiting::WaitingQuestion().ask(run)->answers.at(0);
    const auto [exit_code, printed] =
        RunForTest(&AddStatsCommand, {"stats", run.run_dir, "--format", "json"});
    const bool is_told = waits.finding() != Answer::CANNOT_TELL && run.info && !is_gathered_damaged;
    EXPECT_EQ(exit_code, is_named ? 1 : is_known && is_told ? 0 : 2) << trial;
    EXPECT_THAT(printed, testing::Not(testing::HasSubstr("\"evidence\": {")));
    if (is_gathered_damaged) continue;
    EXPECT_THAT(printed, testing::HasSubstr(waits.sentences(0)));
    EXPECT_THAT(printed, testing::HasSubstr(absl::StrCat("\"", Answer::Finding_Name(waits.finding()), "\"")));
  }
}

}  // namespace
}  // namespace ott::slow
