#include "ott/questions/slow/slow_question.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/slow/cluster_table.h"
#include "ott/questions/slow/rank_grid_picture.h"
#include "ott/questions/slow/read_cluster_stats.h"
#include "ott/questions/slow/slow_answer.h"
#include "ott/questions/slow/stats_command.h"

namespace ott::slow {
namespace {

std::optional<ClusterStats> ReadStats(const AskedRun& run, std::vector<std::string>* problems) {
  const bool wants_stats = !run.info || run.info->config().has_stopwatch();
  std::vector<std::string> unread;
  absl::StatusOr<ClusterStats> stats = ReadClusterStats(run.run_dir, &unread);
  if (!stats.ok()) {
    if (wants_stats) problems->push_back(std::string(stats.status().message()));
    return std::nullopt;
  }
  if (!stats->missing_ranks().empty()) {
    problems->push_back(absl::StrCat(
        "no statistics of ", FormatRanks({stats->missing_ranks().begin(), stats->missing_ranks().end()})));
  }
  if (stats->min_measured_iters() != stats->max_measured_iters()) {
    problems->push_back(absl::StrCat("the statistics of some ranks end after ", stats->min_measured_iters(),
                                     " of ", stats->max_measured_iters(), " iterations"));
  }
  // If a rank is missing, what it left has been said.
  if (stats->missing_ranks().empty() && run.info) {
    problems->insert(problems->end(), unread.begin(), unread.end());
  }
  return *std::move(stats);
}

std::vector<Metric> MetricsOf(const ClusterStats& stats) {
  Metric excess = {
      "ott_slowest_rank_excess_ratio",
      "Work of the rank that stands out, over the others' median, minus 1; 0 where none stands out.",
      {}};
  if (stats.has_straggler()) {
    const Straggler& slow = stats.straggler();
    excess.samples = {{slow.slower_by(), {{"rank", absl::StrCat(slow.rank())}, {"host", slow.host()}}}};
  } else if (stats.missing_ranks().empty() && (stats.has_detectable() || stats.num_ranks() == 1)) {
    excess.samples = {{0, {{"rank", ""}, {"host", ""}}}};
  }
  return {
      {"ott_ranks_missing",
       "Ranks without statistics.",
       {{static_cast<double>(stats.missing_ranks_size()), {}}}},
      {"ott_iterations_measured",
       "Of the rank with the most.",
       {{static_cast<double>(stats.max_measured_iters()), {}}}},
      {"ott_iteration_seconds", "Mean over ranks and iterations.", {{stats.iteration().mean(), {}}}},
      std::move(excess),
  };
}

void AddMeasurementTable(const ClusterStats& stats, Document* document) {
  constexpr int kMaxRows = 200;
  MeasurementTable table;
  *table.add_rows() = stats.iteration();
  table.mutable_rows()->MergeFrom(stats.measurements());
  if (table.rows_size() > kMaxRows) {
    document->thinned.push_back(
        absl::StrCat("of ", table.rows_size(), " measurements ", kMaxRows, " are listed"));
    KeepFirst(kMaxRows, table.mutable_rows());
  }
  document->pictures["measurements"] = DrawMessage(table);
}

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  Findings findings;
  const std::optional<ClusterStats> stats = ReadStats(run, &findings.problems);
  findings.answers = {AnswerSlow(stats)};
  if (!stats) return findings;
  findings.is_news = true;
  AddNextOf(run.run_dir, &findings.answers[0]);
  findings.details = {{"Where the time goes", FormatClusterTable(*stats)}};
  findings.metrics = MetricsOf(*stats);
  findings.draw = [run_dir = run.run_dir, stats = *stats, start = run.start_iteration()](
                      const std::vector<int>& named, Document* document) {
    AddMeasurementTable(stats, document);
    if (const auto grid = ReadRankGrid(run_dir, stats.world_size(), start); grid.ok())
      AddRankGrid(*grid, named, document);
  };
  return findings;
}

}  // namespace

Question SlowQuestion() {
  Question question = {kQuestion.title, AddStatsCommand, Ask};
  question.reads = {"stopwatch.pb"};
  return question;
}

}  // namespace ott::slow
