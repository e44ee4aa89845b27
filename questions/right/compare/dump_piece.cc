#include "ott/questions/right/compare/dump_piece.h"

#include <algorithm>
#include <utility>

#include "ott/core/compare/report.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/share/archive.h"
#include "ott/questions/right/compare/comparison_fields.h"

namespace ott::compare {
namespace {

struct DumpTask {
  DumpPiece piece;
  CrossCheckConfig kinds;
  int max_failures = 0;
  bool keep_results = false;
};

template <typename Archive>
void Fields(Archive& archive, DumpTask& task) {
  archive(task.piece.reference, task.piece.current, task.piece.rank, task.piece.iteration, task.piece.options,
          task.kinds, task.max_failures, task.keep_results);
}

}  // namespace

// States are of checkpoints.
template <typename Archive>
void Fields(Archive& archive, DumpSummary& summary) {
  archive(summary.rank, summary.iteration, summary.verdict, summary.num_tensors, summary.num_elements,
          summary.num_bitwise_equal, summary.first_failure, summary.failures, summary.num_failures,
          summary.kinds, summary.largest_difference, summary.results);
}

namespace {

absl::StatusOr<std::string> CompareDumpTask(const std::string& argument, int num_threads) {
  DumpTask task;
  if (!FromBytes(argument, &task)) return absl::InternalError("no DumpTask");
  CompareRunsOptions options;
  options.kinds = task.kinds;
  options.max_failures = task.max_failures;
  options.keep_results = task.keep_results;
  task.piece.options.tensors.num_threads = num_threads;
  return ToBytes(Summarize(CompareDumps(task.piece.reference, task.piece.current, task.piece.options),
                           task.piece.rank, task.piece.iteration, options));
}

}  // namespace

const ShareTask kCompareDumps = {"compare_dumps", &CompareDumpTask};

DumpSummary Summarize(TreeComparison comparison, std::optional<int> rank, std::optional<int64_t> iteration,
                      const CompareRunsOptions& options) {
  DumpSummary summary;
  summary.rank = rank;
  summary.iteration = iteration;
  summary.verdict = comparison.verdict();
  summary.num_tensors = static_cast<int64_t>(comparison.results.size());
  if (options.keep_results) summary.results = comparison;
  const auto abs_error = [](const NamedComparison& named) {
    return named.comparison.max_abs_error.has_value() ? named.comparison.max_abs_error->error : 0;
  };
  for (NamedComparison& result : comparison.results) {
    summary.num_elements += result.comparison.num_elements;
    const CompareStatus status = result.comparison.status;
    CountKind(KindOfTensor(options.kinds, result.path), !Passes(status) && !CouldNotCompare(status),
              summary.kinds);
    if (status == CompareStatus::kBitwiseEqual) {
      ++summary.num_bitwise_equal;
    } else if (Passes(status) && (!summary.largest_difference.has_value() ||
                                  abs_error(result) > abs_error(*summary.largest_difference))) {
      summary.largest_difference = std::move(result);
    }
  }
  for (const bool differs : {true, false}) {
    for (size_t i = 0; i < comparison.results.size(); ++i) {
      NamedComparison& result = comparison.results[i];
      const CompareStatus status = result.comparison.status;
      if (Passes(status) || CouldNotCompare(status) == differs) continue;
      if (summary.num_failures == 0) summary.first_failure = static_cast<int64_t>(i);
      if (summary.num_failures++ < std::max(options.max_failures, 1))
        summary.failures.push_back(std::move(result));
    }
  }
  return summary;
}

std::vector<absl::StatusOr<DumpSummary>> CompareDumpPieces(const std::vector<DumpPiece>& pieces,
                                                           const CompareRunsOptions& options) {
  std::vector<SharePiece> work;
  for (const DumpPiece& piece : pieces) {
    const DumpTask task = {piece, options.kinds, options.max_failures, options.keep_results};
    work.push_back({ToBytes(task), {piece.reference, piece.current}, 0});
  }
  std::vector<absl::StatusOr<DumpSummary>> summaries;
  for (const absl::StatusOr<std::string>& bytes : RunShared(kCompareDumps, work)) {
    if (!bytes.ok()) {
      summaries.emplace_back(bytes.status());
    } else if (DumpSummary summary; FromBytes(*bytes, &summary)) {
      summaries.emplace_back(std::move(summary));
    } else {
      summaries.emplace_back(absl::InternalError("no DumpSummary"));
    }
  }
  return summaries;
}

}  // namespace ott::compare
