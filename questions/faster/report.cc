#include "ott/questions/faster/report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/csv.h"
#include "ott/core/base/text_table.h"
#include "questions/faster/markup.h"

namespace ott::faster {
namespace {

// So many measurements are named that account for the change.
constexpr size_t kNamed = 3;

double Percent(double ratio) { return (ratio - 1) * 100; }

// "99 %", "99.5 %"
std::string Confidence(const Result& result) { return absl::StrCat(100 * (1 - result.error), " %"); }

std::string Margin(const Comparison& comparison) { return absl::StrFormat("%g %%", comparison.margin * 100); }

std::string Interval(const Result& result) {
  if (!result.low.has_value()) return "";
  return absl::StrFormat("%+.1f to %+.1f %%", Percent(*result.low), Percent(*result.high));
}

std::string Runs(const Comparison& comparison) {
  if (comparison.num_a != comparison.num_b) {
    return absl::StrCat(comparison.num_a, " and ", comparison.num_b, " runs");
  }
  return absl::StrCat(comparison.num_a, comparison.num_a == 1 ? " run a side" : " runs a side");
}

std::string DescribeNoVerdict(const Comparison& comparison) {
  const Result& answer = comparison.answer;
  if (!comparison.voids.empty()) return absl::StrCat("cannot tell: ", comparison.voids.front());
  const bool alike = !answer.ratio.has_value();  // no primary measurement
  std::string text;
  if (alike) {
    text = absl::StrCat("cannot tell of all measurements after ", Runs(comparison));
  } else if (answer.low.has_value()) {
    text = absl::StrFormat("cannot tell: between %+.1f %% and %+.1f %% after %s", Percent(*answer.low),
                           Percent(*answer.high), Runs(comparison));
  } else {
    text = absl::StrFormat("cannot tell: %s (B / A %+.1f %%) are too few for %s", Runs(comparison),
                           Percent(*answer.ratio), Confidence(answer));
  }
  if (!answer.runs_needed.has_value()) return text;
  if (std::min(comparison.num_a, comparison.num_b) < 2) {
    return absl::StrCat(text, "; at least ", *answer.runs_needed, " a side are needed");
  }
  return absl::StrCat(text, "; some ", *answer.runs_needed, " a side would tell ", Margin(comparison));
}

std::string DescribeVerdict(const Comparison& comparison) {
  const Result& result = comparison.answer;
  switch (result.verdict) {
    case AbResult::FASTER:
      return absl::StrFormat("faster by %.1f %% (%s: %.1f to %.1f %%)", -Percent(*result.ratio),
                             Confidence(result), -Percent(*result.high), -Percent(*result.low));
    case AbResult::SLOWER:
      return absl::StrFormat("slower by %.1f %% (%s: %.1f to %.1f %%)", Percent(*result.ratio),
                             Confidence(result), Percent(*result.low), Percent(*result.high));
    case AbResult::SAME:
      return absl::StrFormat("the same within %s (%s: %s)", Margin(comparison), Confidence(result),
                             Interval(result));
    default:
      break;
  }
  return DescribeNoVerdict(comparison);
}

// Describes the answer if there is no primary measurement.
std::string DescribeAllAlike(const Comparison& comparison) {
  const auto names_of = [&](AbResult::Verdict verdict) {
    std::vector<std::string> names;
    for (const Result& result : comparison.measurements) {
      if (result.verdict == verdict) names.push_back(EscapeControlCharacters(result.name));
    }
    if (names.size() > kNamed) {
      const size_t more = names.size() - kNamed;
      names.resize(kNamed);
      names.push_back(absl::StrCat(more, " more"));
    }
    return absl::StrJoin(names, ", ");
  };
  switch (comparison.answer.verdict) {
    case AbResult::FASTER:
      return absl::StrCat("B is faster in ", names_of(AbResult::FASTER), ", and slower in none");
    case AbResult::SLOWER:
      return absl::StrCat("B is slower in ", names_of(AbResult::SLOWER));
    case AbResult::SAME:
      return absl::StrCat("B is the same within ", Margin(comparison), " in all ",
                          comparison.measurements.size(), " measurements");
    default:
      break;
  }
  return DescribeNoVerdict(comparison);
}

std::vector<const Result*> AllResults(const Comparison& comparison) {
  std::vector<const Result*> results;
  if (!comparison.answer.name.empty()) results.push_back(&comparison.answer);
  for (const Result& result : comparison.measurements) results.push_back(&result);
  return results;
}

// "+1.23 ms"
std::string SignedSeconds(double seconds) {
  return absl::StrCat(seconds < 0 ? "-" : "+", FormatSeconds(std::abs(seconds)));
}

// "what changed: backward -12 ms, of -11 ms in all". Where the runs are too few to be sure of single
// measurements, that with the largest difference, as an estimate.
std::string DescribeWhatAccounts(const Comparison& comparison) {
  const AbResult::Verdict verdict = comparison.answer.verdict;
  const auto changed = [](AbResult::Verdict v) { return v == AbResult::FASTER || v == AbResult::SLOWER; };
  if (comparison.answer.name.empty() || comparison.measurements.empty()) return "";
  std::vector<const Result*> by_size;
  for (const Result& result : comparison.measurements) by_size.push_back(&result);
  std::sort(by_size.begin(), by_size.end(), [](const Result* a, const Result* b) {
    return std::abs(a->seconds_added) > std::abs(b->seconds_added);
  });
  std::vector<std::string> parts;
  for (const Result* result : by_size) {
    if (!changed(result->verdict) || parts.size() == kNamed) continue;
    parts.push_back(
        absl::StrCat(EscapeControlCharacters(result->name), " ", SignedSeconds(result->seconds_added)));
  }
  if (parts.empty() && changed(verdict)) {
    parts.push_back(absl::StrCat("as an estimate, ", EscapeControlCharacters(by_size[0]->name), " ",
                                 SignedSeconds(by_size[0]->seconds_added)));
  }
  if (parts.empty()) return "";
  return absl::StrCat("what changed: ", absl::StrJoin(parts, ", "), ", of ",
                      SignedSeconds(comparison.answer.seconds_added), " in all\n");
}

std::string Table(const Comparison& comparison) {
  TextTable table({"measurement", "A", "B", "change", "interval", "verdict"}, TextTable::LastColumn::kLeft);
  for (const Result* result : AllResults(comparison)) {
    table.AddRow({result->name, FormatSecondsCell(result->seconds_a), FormatSecondsCell(result->seconds_b),
                  absl::StrFormat("%+.1f %%", Percent(*result->ratio)), Interval(*result),
                  Name(result->verdict)});
  }
  return table.ToString();
}

}  // namespace

std::string DescribeAnswer(const Comparison& comparison) {
  const Result& answer = comparison.answer;
  if (answer.name.empty()) return DescribeAllAlike(comparison);
  const bool told = answer.verdict != AbResult::CANNOT_TELL;
  return absl::StrCat(told ? "B is " : "", DescribeVerdict(comparison));
}

std::string DescribeProgress(const Comparison& comparison) {
  const Result& answer = comparison.answer;
  if (!answer.ratio.has_value()) return absl::StrCat(Runs(comparison), ": ", Name(answer.verdict));
  return absl::StrFormat("%s: B / A %+.1f %% (%s)", Runs(comparison), Percent(*answer.ratio),
                         answer.low.has_value() ? Interval(answer) : "too few to tell");
}

std::string ToText(const Comparison& comparison) {
  std::string text = absl::StrCat(DescribeAnswer(comparison), "\n");
  for (size_t i = 1; i < comparison.voids.size(); ++i)
    absl::StrAppend(&text, "also: ", comparison.voids[i], "\n");
  absl::StrAppend(&text, DescribeWhatAccounts(comparison), Table(comparison), "A is ", comparison.num_a,
                  " and B ", comparison.num_b, " processes; intervals hold with ",
                  Confidence(comparison.answer),
                  comparison.measurements.size() > 1 ? ", those of all measurements together\n" : "\n");
  for (const std::string& note : comparison.notes) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string ToCsv(const Comparison& comparison) {
  const auto number = [](const std::optional<double>& value) {
    return value.has_value() ? absl::StrFormat("%.9g", *value) : "";
  };
  std::string csv = "measurement,verdict,ratio,low,high,runs_needed,seconds_a,seconds_b,runs_a,runs_b\n";
  for (const Result* result : AllResults(comparison)) {
    absl::StrAppend(&csv,
                    absl::StrJoin({CsvField(result->name), std::string(Name(result->verdict)),
                                   number(result->ratio), number(result->low), number(result->high),
                                   result->runs_needed.has_value() ? absl::StrCat(*result->runs_needed) : "",
                                   number(result->seconds_a), number(result->seconds_b),
                                   absl::StrCat(comparison.num_a), absl::StrCat(comparison.num_b)},
                                  ","),
                    "\n");
  }
  return csv;
}

std::string ToJUnitXml(const Comparison& comparison) {
  size_t failures = 0, errors = 0;
  std::string cases;
  for (const Result* result : AllResults(comparison)) {
    std::string outcome;
    const std::string message = EscapeMarkup(absl::StrCat(
        result->name == comparison.answer.name ? DescribeAnswer(comparison) : Name(result->verdict),
        result->ratio.has_value()
            ? absl::StrFormat("; B / A %+.1f %% (%s)", Percent(*result->ratio), Interval(*result))
            : ""));
    if (result->verdict == AbResult::SLOWER) {
      ++failures;
      outcome = absl::StrCat("<failure message=\"", message, "\"/>");
    } else if (result->verdict == AbResult::CANNOT_TELL) {
      ++errors;
      outcome = absl::StrCat("<error message=\"", message, "\"/>");
    }
    absl::StrAppend(&cases, "  <testcase classname=\"ott.ab\" name=\"", EscapeMarkup(result->name),
                    "\" time=\"", absl::StrFormat("%.9g", result->seconds_b), "\">", outcome,
                    "</testcase>\n");
  }
  return absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"ott ab\" tests=\"",
                      AllResults(comparison).size(), "\" failures=\"", failures, "\" errors=\"", errors,
                      "\">\n", cases, "</testsuite>\n");
}

}  // namespace ott::faster
