#include "ott/questions/right/compare/compare_runs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/compare/compare_checkpoints.h"
#include "ott/questions/right/compare/dump_piece.h"
#include "ott/questions/right/crosscheck/check_reference.h"

namespace ott::compare {
namespace {

enum class Kind { kDump, kDumps, kRun, kCheckpoint, kCheckpoints };

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kDump:
      return "a dump";
    case Kind::kDumps:
      return "a folder of dumps";
    case Kind::kRun:
      return "a run directory";
    case Kind::kCheckpoint:
      return "a checkpoint";
    case Kind::kCheckpoints:
      return "a folder of checkpoints";
  }
  return "";
}

absl::StatusOr<Kind> KindOf(const std::string& dir) {
  if (IsRegularFile(dir)) return Kind::kCheckpoint;
  if (!IsDirectory(dir)) return absl::NotFoundError(absl::StrCat(dir, ": no such directory"));
  for (const char* const file : {kTensorsFile, kManifestFile}) {
    if (PathExists(absl::StrCat(dir, "/", file))) return Kind::kDump;
  }
  if (IsRunDirectory(dir)) return Kind::kRun;
  OTT_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, ListDumps(dir));
  if (!counts.empty()) return Kind::kDumps;
  if (ListCheckpoints(dir).size() > 1) return Kind::kCheckpoints;
  if (IsCheckpoint(dir)) return Kind::kCheckpoint;
  return absl::NotFoundError(absl::StrCat(dir,
                                          ": neither a run (run.json, rank_*/), nor dumps (0/, 1/, ...), nor "
                                          "a dump (tensors.json), nor a checkpoint"));
}

// "iteration 30", "iterations 0, 10, 20, ..., 190 (20 of them)"
std::string DescribeIterations(const std::vector<int64_t>& iterations) {
  constexpr size_t kShown = 3;
  if (iterations.size() == 1) return absl::StrCat("iteration ", iterations[0]);
  if (iterations.size() <= kShown + 1) return absl::StrCat("iterations ", absl::StrJoin(iterations, ", "));
  const std::vector<int64_t> first(iterations.begin(), iterations.begin() + kShown);
  return absl::StrCat("iterations ", absl::StrJoin(first, ", "), ", ..., ", iterations.back(), " (",
                      iterations.size(), " of them)");
}

// Splits two ascending ranges into what both have, and what one of them lacks.
template <typename Number>
struct Overlap {
  Overlap(const std::vector<Number>& reference, const std::vector<Number>& current) {
    std::set_intersection(reference.begin(), reference.end(), current.begin(), current.end(),
                          std::back_inserter(common));
    std::set_difference(reference.begin(), reference.end(), current.begin(), current.end(),
                        std::back_inserter(only_in_reference));
    std::set_difference(current.begin(), current.end(), reference.begin(), reference.end(),
                        std::back_inserter(only_in_current));
  }

  std::vector<Number> common;
  std::vector<Number> only_in_reference;
  std::vector<Number> only_in_current;
};

constexpr char kOnlyInReference[] = " only in the reference";
constexpr char kOnlyInCurrent[] = " only in the current run";

// Returns the options by which dumps of this iteration are compared.
CompareOptions OptionsAt(int64_t iteration, const CompareRunsOptions& options) {
  CompareOptions at = options.compare;
  if (!options.tolerances) return at;
  for (PathTolerance& tolerance : options.tolerances->At(iteration, at.tensors.tolerance.nan_equal))
    at.path_tolerances.push_back(std::move(tolerance));
  return at;
}

// Takes the manifest's iteration, or else the folder's name.
absl::StatusOr<DumpSummary> CompareTwoDumps(const std::string& reference, const std::string& current,
                                            const CompareRunsOptions& options) {
  int64_t iteration = 0;
  if (options.tolerances && options.tolerances->by_iteration()) {
    const absl::StatusOr<std::optional<Manifest>> manifest = ReadManifest(reference);
    const std::filesystem::path path(reference);
    const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
    if (manifest.ok() && manifest->has_value()) {
      iteration = (*manifest)->iteration;
    } else if (!absl::SimpleAtoi(name, &iteration)) {
      return absl::InvalidArgumentError(
          absl::StrCat(options.tolerances->path(), " has tolerances by iteration, and ", reference,
                       " does not say which it is of: it has no manifest, and its name is no number"));
    }
  }
  return Summarize(CompareDumps(reference, current, OptionsAt(iteration, options)), std::nullopt,
                   std::nullopt, options);
}

// Maps what folders of dumps lack to the ranks that lack it; no rank if single folders are compared.
using MissingIterations = std::map<std::string, std::vector<int>>;

void FindDumps(const std::string& reference, const std::string& current, std::optional<int> rank,
               const CompareRunsOptions& options, MissingIterations* missing, std::vector<DumpPiece>* dumps,
               RunsComparison* result) {
  const absl::StatusOr<std::vector<int64_t>> reference_counts = ListDumps(reference);
  const absl::StatusOr<std::vector<int64_t>> current_counts = ListDumps(current);
  for (const absl::Status& status : {reference_counts.status(), current_counts.status()}) {
    if (!status.ok()) result->problems.push_back(std::string(status.message()));
  }
  if (!reference_counts.ok() || !current_counts.ok()) return;
  const Overlap<int64_t> counts(*reference_counts, *current_counts);
  const auto note_missing = [&](const std::vector<int64_t>& iterations, const char* where) {
    if (iterations.empty()) return;
    std::vector<int>& ranks = (*missing)[DescribeIterations(iterations) + where];
    if (rank.has_value()) ranks.push_back(*rank);
  };
  note_missing(counts.only_in_reference, kOnlyInReference);
  note_missing(counts.only_in_current, kOnlyInCurrent);
  for (const int64_t count : counts.common) {
    dumps->push_back({absl::StrCat(reference, "/", count), absl::StrCat(current, "/", count), rank, count,
                      OptionsAt(count, options)});
  }
}

void CompareFound(const std::vector<DumpPiece>& dumps, const CompareRunsOptions& options,
                  RunsComparison* result) {
  std::vector<absl::StatusOr<DumpSummary>> summaries = CompareDumpPieces(dumps, options);
  for (size_t i = 0; i < dumps.size(); ++i) {
    if (summaries[i].ok()) {
      result->dumps.push_back(*std::move(summaries[i]));
    } else {
      result->problems.push_back(
          absl::StrCat(dumps[i].current, ": not compared: ", summaries[i].status().message()));
    }
  }
}

void AddProblems(const MissingIterations& missing, RunsComparison* result) {
  for (const auto& [what, ranks] : missing) {
    result->problems.push_back(ranks.empty() ? what : absl::StrCat(FormatRanks(ranks), ": ", what));
  }
}

// The ranks that left something, but for those that dump nothing. Says which left nothing.
absl::StatusOr<std::vector<int>> RanksOf(const std::string& run, std::vector<std::string>* problems) {
  OTT_ASSIGN_OR_RETURN(std::vector<int> ranks, ListRanks(run));
  const absl::StatusOr<RunInfo> info = ReadRunInfo(run);
  if (!info.ok()) {
    problems->push_back(std::string(info.status().message()));
    return ranks;
  }
  std::vector<int> missing;
  for (int rank = 0; rank < info->world_size(); ++rank) {
    if (!std::binary_search(ranks.begin(), ranks.end(), rank)) missing.push_back(rank);
  }
  if (!missing.empty()) problems->push_back(absl::StrCat(run, ": nothing from ", FormatRanks(missing)));
  const auto dumps_nothing = [&](int rank) { return crosscheck::DumpsNothing(run, *info, rank); };
  ranks.erase(std::remove_if(ranks.begin(), ranks.end(), dumps_nothing), ranks.end());
  return ranks;
}

// REQUIRES: the results are those of CompareCheckpoints().
std::vector<StateSummary> SummarizeStates(const TreeComparison& comparison) {
  std::vector<StateSummary> states;
  for (const NamedComparison& result : comparison.results) {
    const StateKind kind = StateKindOfResult(result);
    if (states.empty() || states.back().kind != kind) states.emplace_back().kind = kind;
    StateSummary& state = states.back();
    ++state.num_values;
    state.num_elements += result.comparison.num_elements;
    const CompareStatus status = result.comparison.status;
    const bool differs = !Passes(status) && !CouldNotCompare(status);
    state.num_failures += differs;
    state.num_not_compared += CouldNotCompare(status);
    state.num_missing += status == CompareStatus::kMissing;
    state.num_extra += status == CompareStatus::kExtra;
    const std::optional<int> rank = RankOfPath(result.path);
    if (rank.has_value() && differs) state.failing_ranks.insert(*rank);
  }
  return states;
}

// step: of a series. name: that of a checkpoint beside the series, in front of its values' paths; or empty.
absl::Status CompareTwoCheckpoints(const std::string& reference, const std::string& current,
                                   std::optional<int64_t> step, const std::string& name,
                                   const CompareRunsOptions& options, RunsComparison* result) {
  OTT_ASSIGN_OR_RETURN(CheckpointComparison comparison,
                       CompareCheckpoints(reference, current, options.compare,
                                          options.names.has_value() ? &*options.names : nullptr));
  std::vector<StateSummary> states = SummarizeStates(comparison.results);
  const bool lack_weights = std::any_of(states.begin(), states.end(), [](const StateSummary& state) {
    return state.kind == StateKind::kWeights && state.num_elements == 0 && state.num_failures == 0 &&
           state.num_not_compared == 0;
  });
  if (lack_weights && !options.allow_empty) {
    comparison.problems.push_back(
        "the weights have no element on either side, as those of ZeRO's stage 3 if nothing gathers them "
        "before they are saved");
  }
  for (NamedComparison& named : comparison.results.results) named.path = ConcatenatePaths(name, named.path);
  result->dumps.push_back(Summarize(std::move(comparison.results), std::nullopt, step, options));
  result->dumps.back().states = std::move(states);
  for (auto [from, to] :
       {std::pair(&comparison.notes, &result->notes), {&comparison.problems, &result->problems}}) {
    for (const std::string& text : *from) {
      // Each step says the same.
      if (std::find(to->begin(), to->end(), text) == to->end()) to->push_back(text);
    }
  }
  return absl::OkStatus();
}

absl::Status CompareSeries(const CompareRunsOptions& options, RunsComparison* result) {
  const std::map<int64_t, std::string> reference = ListCheckpoints(result->reference);
  const std::map<int64_t, std::string> current = ListCheckpoints(result->current);
  std::vector<int64_t> reference_steps, current_steps;
  for (const auto& [step, path] : reference) reference_steps.push_back(step);
  for (const auto& [step, path] : current) current_steps.push_back(step);
  Overlap<int64_t> steps(reference_steps, current_steps);
  const auto resumed = std::find_if(steps.only_in_reference.begin(), steps.only_in_reference.end(),
                                    [&](int64_t step) { return step > current_steps[0]; });
  const std::vector<int64_t> before(steps.only_in_reference.begin(), resumed);
  steps.only_in_reference.erase(steps.only_in_reference.begin(), resumed);
  if (!before.empty()) {
    result->notes.push_back(
        absl::StrCat(DescribeIterations(before), " only in the reference: the current begins later"));
  }
  for (const auto& [only, where] :
       {std::pair(&steps.only_in_reference, kOnlyInReference), {&steps.only_in_current, kOnlyInCurrent}}) {
    if (!only->empty()) result->problems.push_back(DescribeIterations(*only) + where);
  }
  for (const int64_t step : steps.common) {
    if (IsSameRun(reference.at(step), current.at(step))) {
      result->problems.push_back(absl::StrCat("the checkpoints of iteration ", step, " are one file"));
    }
    OTT_RETURN_IF_ERROR(
        CompareTwoCheckpoints(reference.at(step), current.at(step), step, "", options, result));
  }
  const Overlap<std::string> others(ListOtherCheckpoints(result->reference),
                                    ListOtherCheckpoints(result->current));
  for (const auto& [only, where] :
       {std::pair(&others.only_in_reference, kOnlyInReference), {&others.only_in_current, kOnlyInCurrent}}) {
    for (const std::string& name : *only) result->problems.push_back(name + where);
  }
  for (const std::string& name : others.common) {
    OTT_RETURN_IF_ERROR(CompareTwoCheckpoints(absl::StrCat(result->reference, "/", name),
                                              absl::StrCat(result->current, "/", name), std::nullopt, name,
                                              options, result));
  }
  return absl::OkStatus();
}

absl::Status CompareRunDirectories(const CompareRunsOptions& options, RunsComparison* result) {
  OTT_ASSIGN_OR_RETURN(const std::vector<int> reference, RanksOf(result->reference, &result->problems));
  OTT_ASSIGN_OR_RETURN(const std::vector<int> current, RanksOf(result->current, &result->problems));
  const Overlap<int> ranks(reference, current);
  if (!ranks.only_in_reference.empty()) {
    result->problems.push_back(FormatRanks(ranks.only_in_reference) + kOnlyInReference);
  }
  if (!ranks.only_in_current.empty()) {
    result->problems.push_back(FormatRanks(ranks.only_in_current) + kOnlyInCurrent);
  }
  MissingIterations missing;
  std::vector<DumpPiece> dumps;
  for (const int rank : ranks.common) {
    FindDumps(DumpsDirectory(result->reference, rank), DumpsDirectory(result->current, rank), rank, options,
              &missing, &dumps, result);
  }
  AddProblems(missing, result);
  CompareFound(dumps, options, result);
  std::stable_sort(result->dumps.begin(), result->dumps.end(),
                   [](const DumpSummary& a, const DumpSummary& b) { return a.iteration < b.iteration; });
  return absl::OkStatus();
}

}  // namespace

bool RunsComparison::is_complete() const {
  return !dumps.empty() && problems.empty() && first_not_compared() == nullptr;
}

Verdict RunsComparison::verdict() const {
  if (first_divergence() != nullptr) return Verdict::kDifferent;
  return is_complete() ? Verdict::kEqual : Verdict::kCouldNotCompare;
}

const DumpSummary* RunsComparison::first_divergence() const {
  const DumpSummary* first = nullptr;
  for (const DumpSummary& dump : dumps) {
    if (dump.verdict != Verdict::kDifferent) continue;
    if (first != nullptr && first->iteration != dump.iteration) break;
    if (first == nullptr || dump.first_failure < first->first_failure) first = &dump;
  }
  return first;
}

const DumpSummary* RunsComparison::first_not_compared() const {
  const auto first = std::find_if(dumps.begin(), dumps.end(), [](const DumpSummary& dump) {
    return dump.verdict == Verdict::kCouldNotCompare;
  });
  return first == dumps.end() ? nullptr : &*first;
}

absl::StatusOr<RunsComparison> CompareRuns(const std::string& reference_given,
                                           const std::string& current_given,
                                           const CompareRunsOptions& options_given) {
  const std::string reference = LatestAttempt(reference_given);
  const std::string current = LatestAttempt(current_given);
  OTT_ASSIGN_OR_RETURN(Kind kind, KindOf(reference));
  OTT_ASSIGN_OR_RETURN(Kind current_kind, KindOf(current));
  // A single checkpoint of a series is one by itself, too.
  for (const auto& [of, dir, other] :
       {std::tuple(&kind, &reference, current_kind), {&current_kind, &current, kind}}) {
    if (*of == Kind::kCheckpoint && other == Kind::kCheckpoints && !ListCheckpoints(*dir).empty())
      *of = other;
  }
  if (kind != current_kind) {
    return absl::InvalidArgumentError(absl::StrCat(reference, " is ", std::string(Name(kind)), ", but ",
                                                   current, " is ", std::string(Name(current_kind))));
  }
  const bool are_checkpoints = kind == Kind::kCheckpoint || kind == Kind::kCheckpoints;
  if (options_given.names.has_value() && !are_checkpoints) {
    return absl::InvalidArgumentError("names are of checkpoints; `ott crosscheck --layout` compares runs");
  }
  if (options_given.tolerances.has_value() && are_checkpoints) {
    return absl::InvalidArgumentError(absl::StrCat(
        options_given.tolerances->path(),
        ": tolerances of `ott calibrate` are of dumps; checkpoints take --tolerance GLOB=ATOL,RTOL"));
  }
  CompareRunsOptions options = options_given;
  const absl::StatusOr<RunInfo> info = ReadRunInfo(reference);
  const CrossCheckConfig& kinds =
      info.ok() && options.kinds.tensor_kinds().empty() ? info->config().cross_check() : options_given.kinds;
  options.kinds.Clear();
  *options.kinds.mutable_tensor_kinds() = kinds.tensor_kinds();
  RunsComparison result;
  result.reference = reference;
  result.current = current;
  switch (kind) {
    case Kind::kDump: {
      OTT_ASSIGN_OR_RETURN(DumpSummary dump, CompareTwoDumps(reference, current, options));
      result.dumps.push_back(std::move(dump));
      break;
    }
    case Kind::kDumps: {
      MissingIterations missing;
      std::vector<DumpPiece> dumps;
      FindDumps(reference, current, std::nullopt, options, &missing, &dumps, &result);
      AddProblems(missing, &result);
      CompareFound(dumps, options, &result);
      break;
    }
    case Kind::kRun:
      OTT_RETURN_IF_ERROR(CompareRunDirectories(options, &result));
      break;
    case Kind::kCheckpoint:
      OTT_RETURN_IF_ERROR(CompareTwoCheckpoints(reference, current, std::nullopt, "", options, &result));
      break;
    case Kind::kCheckpoints:
      OTT_RETURN_IF_ERROR(CompareSeries(options, &result));
      break;
  }
  if (IsSameRun(reference, current)) {
    result.problems.push_back(
        "both are the same folder, or one links to the other: nothing was compared with anything else");
  }
  const bool is_empty = std::all_of(result.dumps.begin(), result.dumps.end(), [](const DumpSummary& dump) {
    return dump.num_elements == 0 && dump.num_failures == 0;
  });
  if (is_empty && !result.dumps.empty() && !options.allow_empty) {
    result.problems.push_back("nothing to compare: there is no number on either side");
  }
  return result;
}

}  // namespace ott::compare
