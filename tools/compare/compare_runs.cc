#include "tools/compare/compare_runs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/json_writer.h"
#include "ott/dist/rank_list.h"
#include "ott/dist/run_directory.h"

namespace ott {
namespace {

enum class Kind { kDump, kDumps, kRun };

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kDump:
      return "a dump";
    case Kind::kDumps:
      return "a folder of dumps";
    case Kind::kRun:
      return "a run directory";
  }
  return "";
}

absl::StatusOr<Kind> KindOf(const std::string& dir) {
  if (!std::filesystem::is_directory(dir)) return absl::NotFoundError(absl::StrCat(dir, ": no such directory"));
  if (std::filesystem::exists(dir + "/tensors.json")) return Kind::kDump;
  if (IsRunDirectory(dir)) return Kind::kRun;
  OTT_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, ListDumps(dir));
  if (!counts.empty()) return Kind::kDumps;
  return absl::NotFoundError(absl::StrCat(dir, ": neither a run (run.json, rank_*/), nor dumps (0/, 1/, ...), nor a ",
                                          "dump (tensors.json)"));
}

// Elements of both ascending ranges go to *common; what one lacks is a problem.
template <typename Number, typename Describe>
std::vector<Number> Common(const std::vector<Number>& reference, const std::vector<Number>& current,
                           const Describe& describe, std::vector<std::string>* problems) {
  std::vector<Number> common, missing, extra;
  std::set_intersection(reference.begin(), reference.end(), current.begin(), current.end(),
                        std::back_inserter(common));
  std::set_difference(reference.begin(), reference.end(), current.begin(), current.end(), std::back_inserter(missing));
  std::set_difference(current.begin(), current.end(), reference.begin(), reference.end(), std::back_inserter(extra));
  if (!missing.empty()) problems->push_back(describe(missing) + " only in the reference");
  if (!extra.empty()) problems->push_back(describe(extra) + " only in the current run");
  return common;
}

DumpSummary Summarize(TreeComparison comparison, std::optional<int> rank, std::optional<int64_t> iteration,
                      int max_failures) {
  DumpSummary summary;
  summary.rank = rank;
  summary.iteration = iteration;
  summary.verdict = comparison.verdict();
  summary.num_tensors = static_cast<int64_t>(comparison.results.size());
  const auto abs_error = [](const NamedComparison& named) {
    return named.comparison.max_abs_error.has_value() ? named.comparison.max_abs_error->error : 0;
  };
  for (NamedComparison& result : comparison.results) {
    if (result.comparison.status == CompareStatus::kBitwiseEqual) {
      ++summary.num_bitwise_equal;
    } else if (!Passes(result.comparison.status)) {
      if (summary.num_failures++ < max_failures) summary.failures.push_back(std::move(result));
    } else if (!summary.largest_difference.has_value() || abs_error(result) > abs_error(*summary.largest_difference)) {
      summary.largest_difference = std::move(result);
    }
  }
  return summary;
}

void CompareFolders(const std::string& reference, const std::string& current, std::optional<int> rank,
                    const CompareRunsOptions& options, RunsComparison* result) {
  const std::string of_rank = rank.has_value() ? absl::StrCat(" of rank ", *rank) : "";
  const absl::StatusOr<std::vector<int64_t>> reference_counts = ListDumps(reference);
  const absl::StatusOr<std::vector<int64_t>> current_counts = ListDumps(current);
  for (const absl::Status& status : {reference_counts.status(), current_counts.status()}) {
    if (!status.ok()) result->problems.push_back(std::string(status.message()));
  }
  if (!reference_counts.ok() || !current_counts.ok()) return;
  const auto describe = [&](const std::vector<int64_t>& counts) {
    return absl::StrCat("iteration", counts.size() == 1 ? " " : "s ", absl::StrJoin(counts, ", "), of_rank);
  };
  for (const int64_t count : Common(*reference_counts, *current_counts, describe, &result->problems)) {
    result->dumps.push_back(Summarize(CompareDumps(absl::StrCat(reference, "/", count),
                                                   absl::StrCat(current, "/", count), options.compare),
                                      rank, count, options.max_failures));
  }
}

// The ranks that the run had, whether or not they left anything.
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
  return ranks;
}

absl::Status CompareRunDirectories(const CompareRunsOptions& options, RunsComparison* result) {
  OTT_ASSIGN_OR_RETURN(const std::vector<int> reference, RanksOf(result->reference, &result->problems));
  OTT_ASSIGN_OR_RETURN(const std::vector<int> current, RanksOf(result->current, &result->problems));
  for (const int rank : Common(reference, current, FormatRanks, &result->problems)) {
    CompareFolders(DumpsDirectory(result->reference, rank), DumpsDirectory(result->current, rank), rank, options,
                   result);
  }
  std::stable_sort(result->dumps.begin(), result->dumps.end(),
                   [](const DumpSummary& a, const DumpSummary& b) { return a.iteration < b.iteration; });
  return absl::OkStatus();
}

// "iteration 30, rank 2, "
std::string PlaceOf(const DumpSummary& dump) {
  return absl::StrCat(dump.iteration.has_value() ? absl::StrCat("iteration ", *dump.iteration, ", ") : "",
                      dump.rank.has_value() ? absl::StrCat("rank ", *dump.rank, ", ") : "");
}

std::string DescribeBits(const BitDifference& bits) {
  return absl::StrCat("element ", bits.element.position, " ", ShapeToString(bits.element.index), ": reference ",
                      bits.element.reference_text, ", current ", bits.element.current_text, ", flipped bit",
                      bits.flipped_bits.size() == 1 ? " " : "s ", absl::StrJoin(bits.flipped_bits, ", "),
                      bits.ulp_distance.has_value() ? absl::StrCat(", ", *bits.ulp_distance, " ULP") : "");
}

// A result of a tensor on one line.
std::string Describe(const NamedComparison& named) {
  const TensorComparison& comparison = named.comparison;
  std::string text = absl::StrCat(named.path, ": ", Name(comparison.status));
  if (!comparison.detail.empty()) absl::StrAppend(&text, ": ", comparison.detail);
  if (comparison.first_bit_difference.has_value()) {
    absl::StrAppend(&text, ", first at ", DescribeBits(*comparison.first_bit_difference));
  }
  return text;
}

std::string DescribeFigures(const TensorComparison& comparison) {
  if (!comparison.max_abs_error.has_value()) return "";
  return absl::StrCat(comparison.num_mismatched, " of ", comparison.num_elements, " elements beyond tolerance, ",
                      comparison.num_bits_differ, " differ in bits; max abs error ", comparison.max_abs_error->error,
                      "; atol ", comparison.passing_atol, " would pass");
}

// The ranks whose dump of this iteration has a failure, and those that agree with the reference.
std::string DescribeRanks(const RunsComparison& comparison, int64_t iteration) {
  std::vector<int> failing, passing;
  for (const DumpSummary& dump : comparison.dumps) {
    if (dump.iteration == iteration && dump.rank.has_value()) {
      (dump.num_failures > 0 ? failing : passing).push_back(*dump.rank);
    }
  }
  return absl::StrCat("at this iteration: ", FormatRanks(failing), " differ, ", FormatRanks(passing), " agree");
}

// "dumps 30-199" is more than anyone wants to read: later divergences are counted.
std::string DescribeLater(const RunsComparison& comparison, const DumpSummary& first) {
  int64_t later = 0, failing = 0;
  for (const DumpSummary& dump : comparison.dumps) {
    if (dump.iteration > first.iteration) {
      ++later;
      failing += dump.num_failures > 0;
    }
  }
  return later == 0 ? "" : absl::StrCat("  later: ", failing, " of ", later, " dumps differ\n");
}

Value ToValue(const std::optional<ErrorAt>& error) {
  if (!error.has_value()) return Value();
  return ValueMap{{"error", error->error}, {"position", error->position}};
}

Value ToValue(const NamedComparison& named) {
  const TensorComparison& comparison = named.comparison;
  ValueMap map{{"path", named.path},
               {"status", Name(comparison.status)},
               {"detail", comparison.detail},
               {"num_elements", comparison.num_elements},
               {"num_mismatched", comparison.num_mismatched},
               {"num_bits_differ", comparison.num_bits_differ},
               {"max_abs_error", ToValue(comparison.max_abs_error)},
               {"max_rel_error", ToValue(comparison.max_rel_error)},
               {"passing_atol", comparison.passing_atol}};
  if (comparison.first_bit_difference.has_value()) {
    const BitDifference& bits = *comparison.first_bit_difference;
    Value::List flipped(bits.flipped_bits.begin(), bits.flipped_bits.end());
    map.Insert("first_bit_difference",
               ValueMap{{"position", bits.element.position},
                        {"index", Value::List(bits.element.index.begin(), bits.element.index.end())},
                        {"reference", bits.element.reference_text},
                        {"current", bits.element.current_text},
                        {"flipped_bits", std::move(flipped)},
                        {"ulp_distance", bits.ulp_distance.has_value()
                                             ? Value(static_cast<int64_t>(*bits.ulp_distance))
                                             : Value()}});
  }
  return map;
}

Value ToValue(const DumpSummary& dump) {
  Value::List failures;
  for (const NamedComparison& failure : dump.failures) failures.push_back(ToValue(failure));
  return ValueMap{{"iteration", dump.iteration.has_value() ? Value(*dump.iteration) : Value()},
                  {"rank", dump.rank.has_value() ? Value(*dump.rank) : Value()},
                  {"verdict", Name(dump.verdict)},
                  {"num_tensors", dump.num_tensors},
                  {"num_bitwise_equal", dump.num_bitwise_equal},
                  {"num_failures", dump.num_failures},
                  {"failures", std::move(failures)},
                  {"largest_difference",
                   dump.largest_difference.has_value() ? ToValue(*dump.largest_difference) : Value()}};
}

}  // namespace

Verdict RunsComparison::verdict() const {
  bool could_not_compare = dumps.empty() || !problems.empty();
  for (const DumpSummary& dump : dumps) {
    if (dump.verdict == Verdict::kDifferent) return Verdict::kDifferent;
    if (dump.verdict == Verdict::kCouldNotCompare) could_not_compare = true;
  }
  return could_not_compare ? Verdict::kCouldNotCompare : Verdict::kEqual;
}

const DumpSummary* RunsComparison::first_divergence() const {
  for (const DumpSummary& dump : dumps) {
    if (dump.num_failures > 0) return &dump;
  }
  return nullptr;
}

absl::StatusOr<RunsComparison> CompareRuns(const std::string& reference, const std::string& current,
                                           const CompareRunsOptions& options) {
  OTT_ASSIGN_OR_RETURN(const Kind kind, KindOf(reference));
  OTT_ASSIGN_OR_RETURN(const Kind current_kind, KindOf(current));
  if (kind != current_kind) {
    return absl::InvalidArgumentError(
        absl::StrCat(reference, " is ", Name(kind), ", but ", current, " is ", Name(current_kind)));
  }
  RunsComparison result;
  result.reference = reference;
  result.current = current;
  switch (kind) {
    case Kind::kDump:
      result.dumps.push_back(Summarize(CompareDumps(reference, current, options.compare), std::nullopt, std::nullopt,
                                       options.max_failures));
      break;
    case Kind::kDumps:
      CompareFolders(reference, current, std::nullopt, options, &result);
      break;
    case Kind::kRun:
      OTT_RETURN_IF_ERROR(CompareRunDirectories(options, &result));
      break;
  }
  return result;
}

std::string ToText(const RunsComparison& comparison) {
  int64_t num_tensors = 0, num_bitwise_equal = 0, num_failures = 0;
  const DumpSummary* largest = nullptr;
  for (const DumpSummary& dump : comparison.dumps) {
    num_tensors += dump.num_tensors;
    num_bitwise_equal += dump.num_bitwise_equal;
    num_failures += dump.num_failures;
    const auto error = [](const DumpSummary* of) {
      const auto& at = of->largest_difference->comparison.max_abs_error;
      return at.has_value() ? at->error : 0;
    };
    if (dump.largest_difference.has_value() && (largest == nullptr || error(&dump) > error(largest))) largest = &dump;
  }
  std::string text = absl::StrCat("reference ", comparison.reference, "\ncurrent   ", comparison.current, "\ncompared  ",
                                  num_tensors, " tensors in ", comparison.dumps.size(), " dumps: ", num_bitwise_equal,
                                  " bitwise equal, ", num_tensors - num_bitwise_equal - num_failures,
                                  " within tolerance, ", num_failures, " not\n");
  for (const std::string& problem : comparison.problems) absl::StrAppend(&text, "problem: ", problem, "\n");
  if (largest != nullptr) {
    absl::StrAppend(&text, "largest difference within tolerance: ", PlaceOf(*largest),
                    largest->largest_difference->path, ": ",
                    DescribeFigures(largest->largest_difference->comparison), "\n");
  }
  if (const DumpSummary* first = comparison.first_divergence()) {
    absl::StrAppend(&text, "first divergence: ", PlaceOf(*first), Describe(first->failures.front()), "\n");
    const std::string figures = DescribeFigures(first->failures.front().comparison);
    if (!figures.empty()) absl::StrAppend(&text, "  ", figures, "\n");
    for (size_t i = 1; i < first->failures.size(); ++i) {
      absl::StrAppend(&text, "  also ", Describe(first->failures[i]), "\n");
    }
    const int64_t unnamed = first->num_failures - static_cast<int64_t>(first->failures.size());
    if (unnamed > 0) absl::StrAppend(&text, "  and ", unnamed, " more tensors of this dump\n");
    if (first->rank.has_value()) absl::StrAppend(&text, "  ", DescribeRanks(comparison, *first->iteration), "\n");
    absl::StrAppend(&text, DescribeLater(comparison, *first));
  }
  absl::StrAppend(&text, "verdict: ", Name(comparison.verdict()), "\n");
  return text;
}

std::string ToJson(const RunsComparison& comparison) {
  Value::List dumps;
  for (const DumpSummary& dump : comparison.dumps) dumps.push_back(ToValue(dump));
  const DumpSummary* first = comparison.first_divergence();
  const ValueMap map{{"reference", comparison.reference},
                     {"current", comparison.current},
                     {"verdict", Name(comparison.verdict())},
                     {"problems", Value::List(comparison.problems.begin(), comparison.problems.end())},
                     {"first_divergence", first == nullptr ? Value() : ToValue(*first)},
                     {"dumps", std::move(dumps)}};
  // Paths that are not UTF-8 have no JSON.
  const absl::StatusOr<std::string> json = ToJson(Value(map));
  return json.ok() ? *json + "\n" : absl::StrCat("{\"error\": \"", json.status().message(), "\"}\n");
}

}  // namespace ott
