#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "tools/ab/markup.h"
#include "tools/ab/report.h"

namespace ott::ab {
namespace {

constexpr char kStyle[] = R"(
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.answer { border-left: 6px solid; padding: .3rem 1rem; background: #f6f8fa; font-weight: 600; }
.good { border-color: #1a7f37; } .bad { border-color: #cf222e; } .unknown { border-color: #9a6700; }
pre { overflow-x: auto; font: 13px/1.45 ui-monospace, monospace; }
svg { width: 100%; } svg text { font: 12px system-ui, sans-serif; fill: #1b1f24; }
)";

constexpr int kWidth = 1000, kLeft = 180, kRight = 980;

// Values to places from left to right.
struct Axis {
  double low, high;

  double At(double value) const { return kLeft + (value - low) / (high - low) * (kRight - kLeft); }
};

// With a tenth of room on either side.
Axis AxisOf(double low, double high) {
  const double room = std::max((high - low) / 10, std::abs(high) * 1e-6 + 1e-12);
  return {low - room, high + room};
}

void AppendText(std::string* svg, double x, int y, const char* anchor, const std::string& text) {
  absl::StrAppendFormat(svg, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                        EscapeMarkup(text));
}

// A point for each process, from the first at the top to the last.
void AppendSide(const char* name, const char* color, const std::vector<ProcessLocation>& locations,
                double seconds, int top, const Axis& axis, std::string* svg) {
  constexpr int kHeight = 80;
  AppendText(svg, kLeft - 10, top + kHeight / 2, "end", absl::StrCat(name, ": ", FormatSeconds(seconds)));
  for (size_t i = 0; i < locations.size(); ++i) {
    const double y = top + kHeight * (static_cast<double>(i) + 0.5) / static_cast<double>(locations.size());
    absl::StrAppendFormat(
        svg,
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" fill-opacity=\"0.7\"><title>%s, run %d: "
        "%s</title></circle>\n",
        axis.At(locations[i].seconds), y, color, name, i + 1, FormatSeconds(locations[i].seconds));
  }
  absl::StrAppendFormat(
      svg, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"2\"/>\n",
      axis.At(seconds), axis.At(seconds), top, top + kHeight, color);
}

// The processes of both sides in the plotted measurement.
std::string DrawProcesses(const Comparison& comparison, const Result& result) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const auto* side : {&comparison.locations_a, &comparison.locations_b}) {
    for (const ProcessLocation& location : *side) {
      low = std::min(low, location.seconds);
      high = std::max(high, location.seconds);
    }
  }
  const Axis axis = AxisOf(low, high);
  std::string svg = absl::StrFormat("<svg viewBox=\"0 0 %d 210\" role=\"img\">\n", kWidth);
  AppendSide("A", "#57606a", comparison.locations_a, result.seconds_a, 5, axis, &svg);
  AppendSide("B", "#0969da", comparison.locations_b, result.seconds_b, 95, axis, &svg);
  AppendText(&svg, axis.At(low), 200, "start", FormatSeconds(low));
  AppendText(&svg, axis.At(high), 200, "end", FormatSeconds(high));
  return svg + "</svg>\n";
}

// The interval of each measurement against "the same".
std::string DrawIntervals(const Comparison& comparison, const std::vector<const Result*>& results) {
  double low = 1 / (1 + comparison.margin), high = 1 + comparison.margin;
  for (const Result* result : results) {
    if (!result->low.has_value()) continue;
    low = std::min(low, *result->low);
    high = std::max(high, *result->high);
  }
  const Axis axis = AxisOf(low, high);
  constexpr int kRow = 26;
  const int bottom = static_cast<int>(results.size()) * kRow;
  const double same_left = axis.At(1 / (1 + comparison.margin)), same_right = axis.At(1 + comparison.margin);
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %d %d\" role=\"img\">\n<rect x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\" "
      "fill=\"#eaeef2\"><title>the same</title></rect>\n<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\" "
      "stroke=\"#57606a\"/>\n",
      kWidth, bottom + 24, same_left, same_right - same_left, bottom, axis.At(1), axis.At(1), bottom);
  int y = kRow / 2;
  for (const Result* result : results) {
    const char* const color = result->verdict == Verdict::kSlower       ? "#cf222e"
                              : result->verdict == Verdict::kCannotTell ? "#9a6700"
                                                                        : "#1a7f37";
    AppendText(&svg, kLeft - 10, y + 4, "end", result->name);
    if (result->low.has_value()) {
      absl::StrAppendFormat(
          &svg, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"%s\" stroke-width=\"4\"/>\n",
          axis.At(*result->low), axis.At(*result->high), y, y, color);
    }
    if (result->ratio.has_value()) {
      absl::StrAppendFormat(
          &svg, "<circle cx=\"%.1f\" cy=\"%d\" r=\"6\" fill=\"%s\"><title>%+.2f %%</title></circle>\n",
          axis.At(std::clamp(*result->ratio, axis.low, axis.high)), y, color, (*result->ratio - 1) * 100);
    }
    y += kRow;
  }
  AppendText(&svg, axis.At(low), bottom + 16, "start", absl::StrFormat("%+.1f %%", (low - 1) * 100));
  AppendText(&svg, axis.At(high), bottom + 16, "end", absl::StrFormat("%+.1f %%", (high - 1) * 100));
  return svg + "</svg>\n";
}

}  // namespace

std::string ToHtml(const Comparison& comparison) {
  std::vector<const Result*> results;
  if (!comparison.answer.name.empty()) results.push_back(&comparison.answer);
  for (const Result& result : comparison.measurements) results.push_back(&result);
  const Verdict verdict = comparison.answer.verdict;
  const char* const grade = verdict == Verdict::kSlower       ? "bad"
                            : verdict == Verdict::kCannotTell ? "unknown"
                                                              : "good";
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>ott ab: ", Name(verdict),
      "</title>\n<style>", kStyle,
      "</style></head><body>\n<h1>Did it become faster?</h1>\n<div class=\"answer ", grade, "\">",
      EscapeMarkup(DescribeAnswer(comparison)), "</div>\n<h2>", EscapeMarkup(comparison.plotted),
      " of each run, the first at the top</h2>\n", DrawProcesses(comparison, *results.front()),
      "<h2>B / A with its interval; in the grey band it is the same</h2>\n",
      DrawIntervals(comparison, results), "<h2>In figures</h2>\n<pre>", EscapeLines(ToText(comparison)),
      "</pre>\n</body></html>\n");
}

}  // namespace ott::ab
