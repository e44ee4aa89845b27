#include "tools/crosscheck/check_reference.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/reference_check.h"
#include "ott/dist/run_directory.h"
#include "ott/dist/verdict.h"

namespace ott {
namespace {

constexpr size_t kMaxColumns = 6;
constexpr size_t kMaxRows = 20;

void AddDumps(const std::string& run_dir, int num_ranks, std::set<int64_t>* iterations) {
  for (int rank = 0; rank < num_ranks; ++rank) {
    const absl::StatusOr<std::vector<int64_t>> dumps = ListDumps(DumpsDirectory(run_dir, rank));
    if (dumps.ok()) iterations->insert(dumps->begin(), dumps->end());
  }
}

// Of all ranks; empty where the tensor was not compared.
struct Trend {
  std::map<int64_t, double> max_abs_error;
  std::map<int64_t, std::string> problem;

  int64_t first_iteration() const {
    int64_t first = INT64_MAX;
    if (!max_abs_error.empty()) first = max_abs_error.begin()->first;
    return problem.empty() ? first : std::min(first, problem.begin()->first);
  }
};

// Evenly spread, with the first and the last.
std::vector<int64_t> ChooseColumns(const std::set<int64_t>& iterations) {
  const std::vector<int64_t> all(iterations.begin(), iterations.end());
  if (all.size() <= kMaxColumns) return all;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < kMaxColumns; ++i) chosen.push_back(all[i * (all.size() - 1) / (kMaxColumns - 1)]);
  return chosen;
}

std::string Cell(const Trend& trend, int64_t iteration) {
  if (trend.problem.count(iteration) != 0) return "not compared";
  const auto found = trend.max_abs_error.find(iteration);
  return found == trend.max_abs_error.end() ? "0" : absl::StrFormat("%.3g", found->second);
}

}  // namespace

absl::StatusOr<std::vector<CrossCheckVerdict>> CheckRunAgainstReference(const std::string& run_dir,
                                                                        const CrossCheckConfig& config) {
  OTT_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(run_dir));
  OTT_ASSIGN_OR_RETURN(const RunInfo reference, ReadRunInfo(config.reference_run()));
  OTT_ASSIGN_OR_RETURN(const ReferenceCheck check, ReferenceCheck::Create(config, info.world_size()));
  std::set<int64_t> iterations;
  AddDumps(run_dir, info.world_size(), &iterations);
  AddDumps(config.reference_run(), reference.world_size(), &iterations);
  if (iterations.empty()) {
    return absl::NotFoundError(absl::StrCat(run_dir, ", ", config.reference_run(), ": no rank has dumps"));
  }
  std::vector<CrossCheckVerdict> verdicts;
  for (const int64_t iteration : iterations) {
    for (int rank = 0; rank < info.world_size(); ++rank) {
      CrossCheckVerdict& verdict = verdicts.emplace_back(
          check.CheckDump(iteration, rank, absl::StrCat(DumpsDirectory(run_dir, rank), "/", iteration)));
      verdict.set_host(rank < info.hosts_size() ? info.hosts(rank) : "host unknown");
      for (FirstDifference& difference : *verdict.mutable_differences()) {
        difference.set_hosts(0, verdict.host());
      }
    }
  }
  return verdicts;
}

std::string FormatErrorTrend(const std::vector<CrossCheckVerdict>& verdicts) {
  std::set<int64_t> iterations;
  std::vector<std::string> names;  // in the order in which they come
  std::map<std::string, Trend> trends;
  for (const CrossCheckVerdict& verdict : verdicts) {
    iterations.insert(verdict.iteration());
    for (const TensorError& error : verdict.tensor_errors()) {
      const auto [trend, is_new] = trends.try_emplace(error.tensor());
      if (is_new) names.push_back(error.tensor());
      if (!error.problem().empty()) {
        trend->second.problem[verdict.iteration()] = error.problem();
      } else {
        double& largest = trend->second.max_abs_error[verdict.iteration()];
        largest = std::max(largest, error.max_abs_error());
      }
    }
  }
  std::string text;
  const auto first = std::find_if(verdicts.begin(), verdicts.end(), [](const CrossCheckVerdict& verdict) {
    return verdict.outcome() == DIFFERENT;
  });
  if (first != verdicts.end()) text = absl::StrCat("first divergence: ", FormatVerdict(*first));
  if (names.empty()) return text;

  std::vector<std::string> header = {"max abs error, of all ranks", "from iteration"};
  const std::vector<int64_t> columns = ChooseColumns(iterations);
  for (const int64_t iteration : columns) header.push_back(absl::StrCat("at ", iteration));
  TextTable table(std::move(header));
  for (size_t i = 0; i < std::min(names.size(), kMaxRows); ++i) {
    const Trend& trend = trends.at(names[i]);
    std::vector<std::string> cells = {names[i], absl::StrCat(trend.first_iteration())};
    for (const int64_t iteration : columns) cells.push_back(Cell(trend, iteration));
    table.AddRow(std::move(cells));
  }
  absl::StrAppend(&text, table.ToString());
  if (names.size() > kMaxRows) absl::StrAppend(&text, "and ", names.size() - kMaxRows, " more tensors\n");
  return text;
}

}  // namespace ott
