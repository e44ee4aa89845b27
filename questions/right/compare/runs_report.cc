#include "ott/questions/right/compare/runs_report.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/rank_list.h"

namespace ott::compare {
namespace {

// "iteration 30, rank 2, "
std::string PlaceOf(const DumpSummary& dump) {
  return absl::StrCat(dump.iteration.has_value() ? absl::StrCat("iteration ", *dump.iteration, ", ") : "",
                      dump.rank.has_value() ? absl::StrCat("rank ", *dump.rank, ", ") : "");
}

std::string DescribeBits(const BitDifference& bits) {
  const std::string flipped = FlippedBitsText(bits.flipped_bits);
  return absl::StrCat("element ", bits.element.position, " ", ShapeToString(bits.element.index),
                      ": reference ", bits.element.reference_text, ", current ", bits.element.current_text,
                      flipped.empty() ? "" : ", ", flipped,
                      bits.ulp_distance.has_value() ? absl::StrCat(", ", *bits.ulp_distance, " ULP") : "");
}

// A result of a tensor on one line.
std::string Describe(const NamedComparison& named) {
  const TensorComparison& comparison = named.comparison;
  std::string text = absl::StrCat(Printable(named.path), named.path.empty() ? "" : ": ",
                                  std::string(Name(comparison.status)));
  if (!comparison.detail.empty()) absl::StrAppend(&text, ": ", Printable(comparison.detail));
  if (comparison.first_bit_difference.has_value()) {
    absl::StrAppend(&text, ", first at ", DescribeBits(*comparison.first_bit_difference));
  }
  return text;
}

std::string DescribeFigures(const TensorComparison& comparison) {
  if (!comparison.max_abs_error.has_value()) return "";
  const Tolerance& tolerance = comparison.tolerance;
  const std::string applied = tolerance.atol > 0 || tolerance.rtol > 0
                                  ? absl::StrFormat(" (atol %.3g, rtol %.3g)", tolerance.atol, tolerance.rtol)
                                  : "";
  return absl::StrCat(
      comparison.num_mismatched, " of ", comparison.num_elements, " elements beyond tolerance", applied, ", ",
      comparison.num_bits_differ, " differ in bits; max abs error ", comparison.max_abs_error->error,
      IsTolerance(comparison.passing_atol) ? absl::StrCat("; atol ", comparison.passing_atol, " would pass")
                                           : "; no tolerance would pass");
}

// Says on which ranks this is the first difference; which ranks differ in their dump of this iteration, which
// agree with the reference, and of which that is not known.
std::string DescribeRanks(const RunsComparison& comparison, const DumpSummary& first) {
  std::vector<int> failing, passing, unknown, same;
  for (const DumpSummary& dump : comparison.dumps) {
    if (dump.iteration != first.iteration || !dump.rank.has_value()) continue;
    const bool differs = dump.verdict == Verdict::kDifferent;
    (differs ? failing : dump.verdict == Verdict::kEqual ? passing : unknown).push_back(*dump.rank);
    if (differs && dump.failures.front().path == first.failures.front().path) same.push_back(*dump.rank);
  }
  const auto num_same = static_cast<int>(same.size());
  const auto num_ranks = static_cast<int>(failing.size() + passing.size() + unknown.size());
  // Other ranks may differ, too, first in something else.
  const char* const first_of_several = failing.size() > same.size() ? "first " : "";
  return absl::StrCat(
      num_ranks < 2 ? "" : first_of_several + FormatRanksAmong(same, num_same, num_ranks) + "; ",
      "at this iteration: fails on ", FormatRanks(failing), "; passes on ", FormatRanks(passing),
      unknown.empty() ? "" : "; not compared on " + FormatRanks(unknown));
}

// "dumps 30-199" is more than anyone wants to read: later divergences are counted.
std::string DescribeLater(const RunsComparison& comparison, const DumpSummary& first) {
  int64_t later = 0, failing = 0, unknown = 0;
  for (const DumpSummary& dump : comparison.dumps) {
    // A checkpoint beside a series is of no iteration.
    if (first.iteration.has_value() && dump.iteration > first.iteration) {
      ++later;
      failing += dump.verdict == Verdict::kDifferent;
      unknown += dump.verdict == Verdict::kCouldNotCompare;
    }
  }
  if (later == 0) return "";
  return absl::StrCat("  later: ", failing, " of ", later, " dumps differ",
                      unknown > 0 ? absl::StrCat(", ", unknown, " could not be compared") : "", "\n");
}

// "weights equal (12), optimizer step DIFFERS (2 of 6), random numbers missing"
std::string DescribeState(const StateSummary& state) {
  const std::string name(Name(state.kind));
  if (state.num_failures == 0) {
    return state.num_not_compared == 0
               ? absl::StrCat(name, " equal (", state.num_values, ")")
               : absl::StrCat(name, " NOT COMPARED (", state.num_not_compared, " of ", state.num_values, ")");
  }
  if (state.num_missing == state.num_values) return absl::StrCat(name, " MISSING in the current");
  if (state.num_extra == state.num_values) return absl::StrCat(name, " only in the current");
  return absl::StrCat(
      name, " DIFFER (", state.num_failures, " of ", state.num_values,
      state.num_missing > 0 ? absl::StrCat(", ", state.num_missing, " missing") : "",
      state.num_extra > 0 ? absl::StrCat(", ", state.num_extra, " only in the current") : "",
      state.num_not_compared > 0 ? absl::StrCat(", ", state.num_not_compared, " not compared") : "",
      state.failing_ranks.empty()
          ? ""
          : absl::StrCat("; of ", FormatRanks({state.failing_ranks.begin(), state.failing_ranks.end()})),
      ")");
}

std::string StatesText(const std::vector<StateSummary>& states) {
  if (states.empty()) return "";
  std::vector<std::string> texts;
  for (const StateSummary& state : states) texts.push_back(DescribeState(state));
  return absl::StrCat("state     ", absl::StrJoin(texts, ", "), "\n");
}

// "random numbers from iteration 200 on, weights from iteration 300 on"
std::string FirstStepsText(const RunsComparison& comparison) {
  std::map<StateKind, int64_t> first;
  for (const DumpSummary& dump : comparison.dumps) {
    for (const StateSummary& state : dump.states) {
      if (state.num_failures > 0 && dump.iteration.has_value()) first.emplace(state.kind, *dump.iteration);
    }
  }
  std::vector<std::pair<int64_t, StateKind>> by_step;
  for (const auto& [kind, step] : first) by_step.emplace_back(step, kind);
  std::sort(by_step.begin(), by_step.end());
  std::vector<std::string> texts;
  for (const auto& [step, kind] : by_step) {
    texts.push_back(absl::StrCat(std::string(Name(kind)), " from iteration ", step, " on"));
  }
  return texts.empty() ? "" : absl::StrCat("differ    ", absl::StrJoin(texts, ", "), "\n");
}

Value StatesValue(const std::vector<StateSummary>& states) {
  Value::List list;
  for (const StateSummary& state : states) {
    list.push_back(ValueMap{{"kind", std::string(Name(state.kind))},
                            {"num_values", state.num_values},
                            {"num_failures", state.num_failures},
                            {"num_not_compared", state.num_not_compared},
                            {"num_missing", state.num_missing},
                            {"num_extra", state.num_extra}});
  }
  return list;
}

Value KindsValue(const DumpSummary& dump) {
  Value::List kinds;
  for (const KindCount& count : dump.kinds) {
    kinds.push_back(ValueMap{{"kind", TensorKind_Name(count.kind())},
                             {"num_tensors", count.num_tensors()},
                             {"num_failures", count.num_different()}});
  }
  return kinds;
}

Value ToValue(const DumpSummary& dump) {
  Value::List failures;
  for (const NamedComparison& failure : dump.failures) failures.push_back(ToValue(failure));
  return ValueMap{{"iteration", dump.iteration.has_value() ? Value(*dump.iteration) : Value()},
                  {"rank", dump.rank.has_value() ? Value(*dump.rank) : Value()},
                  {"verdict", std::string(Name(dump.verdict))},
                  {"num_tensors", dump.num_tensors},
                  {"num_bitwise_equal", dump.num_bitwise_equal},
                  {"num_failures", dump.num_failures},
                  {"kinds", KindsValue(dump)},
                  {"states", StatesValue(dump.states)},
                  {"failures", std::move(failures)},
                  {"largest_difference",
                   dump.largest_difference.has_value() ? ToValue(*dump.largest_difference) : Value()}};
}

// Returns what one side lacks, as results.
TreeComparison ProblemsOf(const RunsComparison& comparison) {
  TreeComparison problems;
  for (const std::string& problem : comparison.problems) {
    TensorComparison result;
    result.detail = problem;
    problems.results.push_back({"", std::move(result)});
  }
  return problems;
}

// Describes what fails in a dump, but for the first failure itself.
std::string FailuresText(const DumpSummary& dump) {
  if (dump.failures.empty()) return "";
  std::string text;
  const std::string figures = DescribeFigures(dump.failures.front().comparison);
  if (!figures.empty()) absl::StrAppend(&text, "  ", figures, "\n");
  text += WorstLines(dump.failures.front());
  for (size_t i = 1; i < dump.failures.size(); ++i) {
    absl::StrAppend(&text, "  also ", Describe(dump.failures[i]), "\n");
  }
  const std::string kinds = FormatKinds(dump.kinds);
  if (!kinds.empty() && dump.states.empty()) absl::StrAppend(&text, "  differ: ", kinds, "\n");
  const int64_t unnamed = dump.num_failures - static_cast<int64_t>(dump.failures.size());
  if (unnamed > 0)
    absl::StrAppend(&text, "  and ", unnamed,
                    dump.states.empty() ? " more tensors of this dump\n" : " more\n");
  return text;
}

template <typename Number>
std::string TextOf(const std::optional<Number>& number) {
  return number.has_value() ? std::to_string(*number) : "";
}

}  // namespace

std::string DescribeFirstDivergence(const RunsComparison& comparison) {
  const DumpSummary* const first = comparison.first_divergence();
  return first == nullptr ? "" : PlaceOf(*first) + Describe(first->failures.front());
}

std::string DescribeNotCompared(const RunsComparison& comparison) {
  const DumpSummary* const first = comparison.first_not_compared();
  if (first == nullptr) return "";
  const auto num =
      std::count_if(comparison.dumps.begin(), comparison.dumps.end(),
                    [](const DumpSummary& dump) { return dump.verdict == Verdict::kCouldNotCompare; });
  return absl::StrCat(
      PlaceOf(*first),
      first->failures.empty() ? "no number on either side" : Describe(first->failures.front()),
      num > 1 ? absl::StrCat("; and ", num - 1, " more") : "");
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
    if (dump.largest_difference.has_value() && (largest == nullptr || error(&dump) > error(largest)))
      largest = &dump;
  }
  const bool checkpoints = !comparison.dumps.empty() && !comparison.dumps[0].states.empty();
  std::string text = absl::StrCat(
      "reference ", Printable(comparison.reference), "\ncurrent   ", Printable(comparison.current),
      "\ncompared  ", num_tensors, " tensors in ", comparison.dumps.size(),
      !checkpoints                   ? " dumps: "
      : comparison.dumps.size() == 1 ? " checkpoint: "
                                     : " checkpoints: ",
      num_bitwise_equal, " bitwise equal, ", num_tensors - num_bitwise_equal - num_failures,
      " within tolerance, ", num_failures, " not\n");
  for (const std::string& note : comparison.notes) absl::StrAppend(&text, "note: ", Printable(note), "\n");
  if (comparison.dumps.size() == 1) text += StatesText(comparison.dumps[0].states);
  text += FirstStepsText(comparison);
  constexpr size_t kMaxProblems = 20;
  const size_t num_problems = comparison.problems.size();
  for (size_t i = 0; i < std::min(num_problems, kMaxProblems); ++i)
    absl::StrAppend(&text, "problem: ", Printable(comparison.problems[i]), "\n");
  if (num_problems > kMaxProblems)
    absl::StrAppend(&text, "problem: and ", num_problems - kMaxProblems,
                    " more, which --format json lists\n");
  if (largest != nullptr) {
    absl::StrAppend(&text, "largest difference within tolerance: ", PlaceOf(*largest),
                    Printable(largest->largest_difference->path), ": ",
                    DescribeFigures(largest->largest_difference->comparison), "\n");
  }
  if (const std::string unknown = DescribeNotCompared(comparison); !unknown.empty())
    absl::StrAppend(&text, "not compared: ", unknown, "\n");
  const DumpSummary* const first = comparison.first_divergence();
  if (first != nullptr)
    absl::StrAppend(&text, "first divergence: ", DescribeFirstDivergence(comparison), "\n");
  if (const DumpSummary* const shown = first != nullptr ? first : comparison.first_not_compared())
    text += FailuresText(*shown);
  if (first != nullptr) {
    if (first->rank.has_value()) absl::StrAppend(&text, "  ", DescribeRanks(comparison, *first), "\n");
    text += DescribeLater(comparison, *first);
  }
  absl::StrAppend(&text, "verdict: ", std::string(Name(comparison.verdict())), "\n");
  return text;
}

std::string ToJson(const RunsComparison& comparison) {
  Value::List dumps;
  for (const DumpSummary& dump : comparison.dumps) dumps.push_back(ToValue(dump));
  const DumpSummary* first = comparison.first_divergence();
  Value::List problems;
  for (const std::string& problem : comparison.problems) problems.push_back(AsUtf8(problem));
  Value::List notes;
  for (const std::string& note : comparison.notes) notes.push_back(AsUtf8(note));
  const ValueMap map{{"reference", AsUtf8(comparison.reference)},
                     {"current", AsUtf8(comparison.current)},
                     {"verdict", std::string(Name(comparison.verdict()))},
                     {"notes", std::move(notes)},
                     {"problems", std::move(problems)},
                     {"first_divergence", first == nullptr ? Value() : ToValue(*first)},
                     {"dumps", std::move(dumps)}};
  return ToJson(Value(map)).value() + "\n";
}

std::string ToCsv(const RunsComparison& comparison) {
  std::string text = absl::StrCat("iteration,rank,", kCsvColumns, "\n");
  for (const DumpSummary& dump : comparison.dumps) {
    absl::StrAppend(
        &text, CsvLines(dump.results, absl::StrCat(TextOf(dump.iteration), ",", TextOf(dump.rank), ",")));
  }
  return text + CsvLines(ProblemsOf(comparison), ",,");
}

std::string ToJUnitXml(const RunsComparison& comparison) {
  std::string suites;
  for (const DumpSummary& dump : comparison.dumps) {
    std::string place = PlaceOf(dump);
    // Without the last comma.
    place.resize(place.empty() ? 0 : place.size() - 2);
    absl::StrAppend(&suites, JUnitSuite(dump.results, place.empty() ? "dump" : place));
  }
  if (comparison.dumps.empty() || !comparison.problems.empty()) {
    absl::StrAppend(&suites, JUnitSuite(ProblemsOf(comparison), "missing"));
  }
  return JUnitDocument(suites);
}

}  // namespace ott::compare
