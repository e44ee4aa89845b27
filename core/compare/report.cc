#include "ott/core/compare/report.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ott/core/base/csv.h"
#include "ott/core/base/text_table.h"
#include "ott/core/dump/json_writer.h"

namespace ott {
namespace {

std::string Number(double value) { return absl::StrFormat("%.6g", value); }

std::string BitsText(const BitDifference& difference) {
  std::string text =
      absl::StrCat("first difference in bits at ", ShapeToString(difference.element.index), ": reference ",
                   difference.element.reference_text, ", current ", difference.element.current_text);
  const std::string flipped = FlippedBitsText(difference.flipped_bits);
  if (!flipped.empty()) absl::StrAppend(&text, ", ", flipped);
  if (difference.ulp_distance.has_value())
    absl::StrAppend(&text, ", ", *difference.ulp_distance, " ULP apart");
  return text;
}

// Writes a path like the Python dumper: "a.b[1,7]".
std::string ElementPath(const std::string& path, const Dims& index) {
  return index.empty() ? path : absl::StrCat(path, "[", absl::StrJoin(index, ","), "]");
}

void AppendFigures(const NamedComparison& result, std::string& text) {
  const TensorComparison& comparison = result.comparison;
  absl::StrAppendFormat(&text, "  %d of %d elements (%.3g %%) are out of tolerance\n",
                        comparison.num_mismatched, comparison.num_elements,
                        100 * comparison.mismatched_fraction());
  if (comparison.max_abs_error.has_value()) {
    absl::StrAppendFormat(
        &text, "  max abs error %s at %s, max rel error %s at %s\n", Number(comparison.max_abs_error->error),
        ShapeToString(comparison.max_abs_error->index), Number(comparison.max_rel_error->error),
        ShapeToString(comparison.max_rel_error->index));
    absl::StrAppendFormat(&text, "  mean abs error %s, RMSE %s, cosine similarity %.9g\n",
                          Number(comparison.mean_abs_error), Number(comparison.root_mean_square_error),
                          comparison.cosine_similarity);
  }
  if (comparison.num_nan_reference + comparison.num_nan_current + comparison.num_inf_reference +
          comparison.num_inf_current >
      0) {
    absl::StrAppendFormat(&text, "  NaN: reference %d, current %d; infinite: reference %d, current %d\n",
                          comparison.num_nan_reference, comparison.num_nan_current,
                          comparison.num_inf_reference, comparison.num_inf_current);
  }
  text += WorstLines(result);
  if (comparison.first_bit_difference.has_value()) {
    absl::StrAppend(&text, "  ", BitsText(*comparison.first_bit_difference), "\n");
  }
  if (!IsTolerance(comparison.passing_atol)) {
    text += "  no tolerance passes\n";
    return;
  }
  // All digits: the figures are to be used.
  absl::StrAppendFormat(&text, "  smallest tolerance that passes: atol %.17g", comparison.passing_atol);
  if (IsTolerance(comparison.passing_rtol))
    absl::StrAppendFormat(&text, ", or rtol %.17g", comparison.passing_rtol);
  text += "\n";
}

std::string PathText(const std::string& path) { return path.empty() ? "(root)" : Printable(path); }

void AppendFailure(const NamedComparison& result, std::string& text) {
  const TensorComparison& comparison = result.comparison;
  absl::StrAppend(&text, PathText(result.path), ": ", std::string(Name(comparison.status)));
  if (!comparison.detail.empty()) absl::StrAppend(&text, ": ", Printable(comparison.detail));
  text += '\n';
  if (comparison.has_figures()) AppendFigures(result, text);
}

// "12 bitwise equal, 1 mismatch"
std::string CountsText(const TreeComparison& comparison) {
  std::array<int, static_cast<size_t>(CompareStatus::kCouldNotCompare) + 1> counts = {};
  for (const NamedComparison& result : comparison.results)
    ++counts[static_cast<size_t>(result.comparison.status)];
  std::vector<std::string> parts;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0)
      parts.push_back(absl::StrCat(counts[i], " ", std::string(Name(static_cast<CompareStatus>(i)))));
  }
  return absl::StrJoin(parts, ", ");
}

// The tensor that needs most of the tolerance among those that pass; null if all are equal.
const NamedComparison* LargestPassingError(const TreeComparison& comparison) {
  const NamedComparison* largest = nullptr;
  for (const NamedComparison& result : comparison.results) {
    if (result.comparison.status != CompareStatus::kWithinTolerance) continue;
    // Rounded tensors without finite numbers have none.
    if (!result.comparison.max_abs_error.has_value()) continue;
    if (largest == nullptr ||
        result.comparison.max_abs_error->error > largest->comparison.max_abs_error->error) {
      largest = &result;
    }
  }
  return largest;
}

// Reads back as the same double.
std::string Exact(double value) {
  std::string text;
  AppendPythonFloat(value, text);
  return text;
}

std::string XmlText(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// failure: empty if the case passed. Names are printable (XML has no way to write a NUL).
void AppendTestCase(std::string_view suite, const std::string& name, std::string_view failure,
                    const std::string& report, std::string& text) {
  absl::StrAppend(&text, "    <testcase classname=\"", XmlText(std::string(suite)), "\" name=\"",
                  XmlText(name), "\"");
  if (failure.empty()) {
    text += "/>\n";
  } else {
    absl::StrAppend(&text, ">\n      <failure message=\"", std::string(failure), "\">", XmlText(report),
                    "</failure>\n    </testcase>\n");
  }
}

Value IndexValue(const Dims& index) { return Value::List(index.begin(), index.end()); }

// Gives a number the form of protobuf's JSON: a text where JSON has no number.
Value FigureValue(double figure) {
  if (std::isnan(figure)) return "NaN";
  if (std::isinf(figure)) return figure > 0 ? "Infinity" : "-Infinity";
  return figure;
}

Value ToValue(const std::optional<ErrorAt>& error) {
  if (!error.has_value()) return Value();
  return ValueMap{{"error", FigureValue(error->error)}, {"index", IndexValue(error->index)}};
}

Value ToValue(const ElementDifference& difference) {
  return ValueMap{
      {"position", difference.position},
      {"index", IndexValue(difference.index)},
      {"reference", difference.reference_text},
      {"current", difference.current_text},
      {"difference", FigureValue(difference.difference)},
  };
}

Value UlpValue(const std::optional<uint64_t>& distance) {
  if (!distance.has_value()) return Value();
  if (*distance <= std::numeric_limits<int64_t>::max()) return Value(static_cast<int64_t>(*distance));
  const auto number = std::make_shared<const uint64_t>(*distance);
  return Value(Tensor{TensorView(number.get(), {}), number});
}

Value ToValue(const BitDifference& difference) {
  return ValueMap{
      {"position", difference.element.position},
      {"index", IndexValue(difference.element.index)},
      {"reference", difference.element.reference_text},
      {"current", difference.element.current_text},
      {"flipped_bits", Value::List(difference.flipped_bits.begin(), difference.flipped_bits.end())},
      {"ulp_distance", UlpValue(difference.ulp_distance)},
  };
}

}  // namespace

std::string Printable(const std::string& text) {
  return CheckUtf8(text).ok() ? EscapeDirections(absl::Utf8SafeCHexEscape(text)) : absl::CHexEscape(text);
}

std::string AsUtf8(const std::string& text) { return CheckUtf8(text).ok() ? text : absl::CHexEscape(text); }

std::string ToText(const TreeComparison& comparison, int max_failures) {
  std::string text;
  int num_failures = 0;
  for (const NamedComparison& result : comparison.results) {
    if (Passes(result.comparison.status)) continue;
    if (++num_failures <= max_failures) AppendFailure(result, text);
  }
  if (num_failures > max_failures) absl::StrAppend(&text, "... and ", num_failures - max_failures, " more\n");
  if (const NamedComparison* largest = LargestPassingError(comparison)) {
    absl::StrAppendFormat(&text, "largest error within tolerance: %s in %s\n",
                          Number(largest->comparison.max_abs_error->error), PathText(largest->path));
  }
  return absl::StrCat(text, SummaryText(comparison), "\n");
}

std::string SummaryText(const TreeComparison& comparison) {
  const Verdict verdict = comparison.verdict();
  const absl::string_view bits = verdict != Verdict::kEqual   ? ""
                                 : comparison.bitwise_equal() ? " (bit for bit)"
                                                              : " (not bit for bit)";
  const std::string counts =
      comparison.results.empty() ? "no numbers on either side" : CountsText(comparison);
  return absl::StrCat(std::string(Name(verdict)), bits, ": ", counts);
}

bool CouldNotCompare(CompareStatus status) {
  return status == CompareStatus::kCouldNotCompare || status == CompareStatus::kEmpty;
}

std::string FlippedBitsText(absl::Span<const int> bits) {
  constexpr size_t kFewBits = 2;
  if (bits.empty() || bits.size() > kFewBits) return "";
  return absl::StrCat("flipped bit", bits.size() == 1 ? " " : "s ", absl::StrJoin(bits, ", "));
}

std::string WorstLines(const NamedComparison& result) {
  std::string text;
  for (const ElementDifference& worst : result.comparison.worst) {
    absl::StrAppendFormat(&text, "  %s: current %s, dumped %s, difference (current - dumped) %s\n",
                          ElementPath(PathText(result.path), worst.index), worst.current_text,
                          worst.reference_text, Number(worst.difference));
  }
  return text;
}

std::string CsvLines(const TreeComparison& comparison, std::string_view prefix) {
  std::string text;
  for (const NamedComparison& result : comparison.results) {
    const TensorComparison& c = result.comparison;
    std::vector<std::string> fields = {CsvField(AsUtf8(result.path)), std::string(Name(c.status))};
    if (c.has_figures()) {
      const auto error = [](const std::optional<ErrorAt>& e) { return e.has_value() ? Exact(e->error) : ""; };
      for (const std::string& field :
           {std::string(Name(c.dtype)), CsvField(ShapeToString(c.shape)), absl::StrCat(c.num_elements),
            absl::StrCat(c.num_mismatched), absl::StrCat(c.num_bits_differ), error(c.max_abs_error),
            error(c.max_rel_error), Exact(c.mean_abs_error), Exact(c.root_mean_square_error),
            Exact(c.cosine_similarity),
            c.max_ulp_distance.has_value() ? absl::StrCat(*c.max_ulp_distance) : "",
            absl::StrCat(c.num_nan_reference), absl::StrCat(c.num_nan_current),
            absl::StrCat(c.num_inf_reference), absl::StrCat(c.num_inf_current), Exact(c.passing_atol),
            Exact(c.passing_rtol)}) {
        fields.push_back(field);
      }
    } else {
      fields.resize(fields.size() + 17);
    }
    fields.push_back(CsvField(AsUtf8(c.detail)));
    absl::StrAppend(&text, std::string(prefix), absl::StrJoin(fields, ","), "\n");
  }
  return text;
}

std::string ToCsv(const TreeComparison& comparison) {
  return absl::StrCat(kCsvColumns, "\n", CsvLines(comparison));
}

std::string JUnitSuite(const TreeComparison& comparison, std::string_view name) {
  int num_failures = comparison.verdict() == Verdict::kEqual ? 0 : 1;
  std::string cases;
  for (const NamedComparison& result : comparison.results) {
    const bool passes = Passes(result.comparison.status);
    num_failures += passes ? 0 : 1;
    std::string report;
    AppendFailure(result, report);
    AppendTestCase(name, PathText(result.path), passes ? "" : Name(result.comparison.status), report, cases);
  }
  const Verdict verdict = comparison.verdict();
  AppendTestCase(name, "(verdict)", verdict == Verdict::kEqual ? "" : Name(verdict), CountsText(comparison),
                 cases);
  return absl::StrFormat("  <testsuite name=\"%s\" tests=\"%d\" failures=\"%d\">\n%s  </testsuite>\n",
                         XmlText(std::string(name)), comparison.results.size() + 1, num_failures, cases);
}

std::string JUnitDocument(std::string_view suites) {
  return absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", std::string(suites),
                      "</testsuites>\n");
}

std::string ToJUnitXml(const TreeComparison& comparison) {
  return JUnitDocument(JUnitSuite(comparison, "ott.compare"));
}

Value ToValue(const NamedComparison& result) {
  const TensorComparison& comparison = result.comparison;
  ValueMap map{{"path", AsUtf8(result.path)}, {"status", Name(comparison.status)}};
  if (!comparison.detail.empty()) map.Insert("detail", AsUtf8(comparison.detail));
  if (!comparison.has_figures()) return map;
  map.Insert("dtype", Name(comparison.dtype));
  map.Insert("shape", IndexValue(comparison.shape));
  map.Insert("num_elements", comparison.num_elements);
  map.Insert("num_mismatched", comparison.num_mismatched);
  map.Insert("num_bits_differ", comparison.num_bits_differ);
  map.Insert("max_abs_error", ToValue(comparison.max_abs_error));
  map.Insert("max_rel_error", ToValue(comparison.max_rel_error));
  map.Insert("mean_abs_error", FigureValue(comparison.mean_abs_error));
  map.Insert("root_mean_square_error", FigureValue(comparison.root_mean_square_error));
  map.Insert("cosine_similarity", FigureValue(comparison.cosine_similarity));
  map.Insert("max_ulp_distance", UlpValue(comparison.max_ulp_distance));
  map.Insert("num_nan_reference", comparison.num_nan_reference);
  map.Insert("num_nan_current", comparison.num_nan_current);
  map.Insert("num_inf_reference", comparison.num_inf_reference);
  map.Insert("num_inf_current", comparison.num_inf_current);
  map.Insert("passing_atol", FigureValue(comparison.passing_atol));
  map.Insert("passing_rtol", FigureValue(comparison.passing_rtol));
  Value::List worst;
  for (const ElementDifference& difference : comparison.worst) worst.push_back(ToValue(difference));
  map.Insert("worst", std::move(worst));
  map.Insert("first_bit_difference", comparison.first_bit_difference.has_value()
                                         ? ToValue(*comparison.first_bit_difference)
                                         : Value());
  return map;
}

Value ToValue(const TreeComparison& comparison) {
  Value::List results;
  for (const NamedComparison& result : comparison.results) results.push_back(ToValue(result));
  return ValueMap{
      {"verdict", Name(comparison.verdict())},
      {"bitwise_equal", comparison.bitwise_equal()},
      {"results", std::move(results)},
  };
}

std::string ToJson(const TreeComparison& comparison) {
  // Paths and texts come from trees that were JSON or were checked, so they are UTF-8.
  absl::StatusOr<std::string> json = ToJson(ToValue(comparison));
  return json.ok() ? *std::move(json)
                   : ToJson(ValueMap{{"verdict", Name(Verdict::kCouldNotCompare)}}).value();
}

}  // namespace ott
