// Compares what two runs left on disk, and says what first diverged.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_RUNS_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_RUNS_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/checkpoint/state_kind.h"
#include "ott/core/compare/compare.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/questions/right/layout/layout.pb.h"

namespace ott::compare {

// A part of a training's state in two checkpoints.
struct StateSummary {
  StateKind kind = StateKind::kOther;
  int64_t num_values = 0;
  int64_t num_failures = 0;  // with those that are missing on a side, without those that were not compared
  int64_t num_not_compared = 0;
  int64_t num_missing = 0;      // in the current
  int64_t num_extra = 0;        // in the current alone
  std::set<int> failing_ranks;  // those that the failures' paths name
  int64_t num_elements = 0;
};

// One dump of the reference against the same of the current run. Of a tensor that passes nothing is kept but
// counts, unless CompareRunsOptions::keep_results.
struct DumpSummary {
  // Absent if folders of dumps were compared, not runs.
  std::optional<int> rank;
  // Absent if single dumps were compared.
  std::optional<int64_t> iteration;
  Verdict verdict = Verdict::kCouldNotCompare;
  int64_t num_tensors = 0;
  int64_t num_elements = 0;
  int64_t num_bitwise_equal = 0;
  // The place in order of insertion of the first of the failures, counted from 0; -1: all pass.
  int64_t first_failure = -1;
  // The results that do not pass, at most CompareRunsOptions::max_failures of them, in order of insertion:
  // those that differ, and then those that could not be compared.
  std::vector<NamedComparison> failures;
  int64_t num_failures = 0;
  // Counts all tensors, and those that differ.
  google::protobuf::RepeatedPtrField<KindCount> kinds;
  // Among the tensors that pass without being bitwise equal, the one with the largest absolute error.
  std::optional<NamedComparison> largest_difference;
  // keep_results: all of them.
  TreeComparison results;
  // The states of checkpoints alone, by StateKind: the kinds that either side has.
  std::vector<StateSummary> states;
};

struct RunsComparison {
  std::string reference;
  std::string current;
  // By iteration, then by rank.
  std::vector<DumpSummary> dumps;
  // Say what was done to make the names of two checkpoints alike, and what was found of those that differ.
  std::vector<std::string> notes;
  // Lists what one side lacks or cannot be read: ranks, iterations, folders. Any makes a pass impossible.
  std::vector<std::string> problems;

  // Returns true if there are dumps, and all of both sides was compared.
  bool is_complete() const;
  // Returns kDifferent if a dump differs, else kEqual if the comparison is complete, else kCouldNotCompare.
  Verdict verdict() const;
  // Returns, among the dumps that differ in the earliest iteration, the one whose failure comes first in
  // order of insertion, the lowest rank of several; null if none differs.
  const DumpSummary* first_divergence() const;
  // Returns the first dump that could not be compared, or not all of it, and differs in nothing; null: none.
  const DumpSummary* first_not_compared() const;
};

struct CompareRunsOptions {
  CompareOptions compare;
  // Behind those of `compare`, where a path has none there. Of dumps alone.
  std::optional<ToleranceFile> tolerances;
  // Dumps without a number in any of them are equal, where they are; else there was nothing to compare.
  bool allow_empty = false;
  // Its tensor_kinds say of what kind a tensor is, if there are any; else those of the reference's run.json.
  CrossCheckConfig kinds;
  // Kept of each dump, at least one.
  int max_failures = 5;
  bool keep_results = false;
  // For checkpoints alone: see CompareCheckpoints().
  std::optional<Layout> names;
};

// Two run directories, two folders of dumps (<count>/), two dumps, two checkpoints (ReadCheckpoint() in
// core/checkpoint), or two folders of numbered checkpoints (ListCheckpoints()). Of the last, those with the
// same number are compared; a run that was resumed has none of the first numbers. INVALID_ARGUMENT if they
// are not of one kind, NOT_FOUND if one is none of these. Of a run that was started several times, the latest
// start (LatestAttempt() in ott/dist/directory/run_directory.h); RunsComparison says which.
absl::StatusOr<RunsComparison> CompareRuns(const std::string& reference, const std::string& current,
                                           const CompareRunsOptions& options = {});

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_RUNS_H_
