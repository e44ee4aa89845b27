#include "ott/questions/faster/comparison_picture.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ott/questions/answer/display_text.h"
#include "ott/questions/faster/report.h"

namespace ott::faster {
namespace {

constexpr size_t kMaxResults = 32;
constexpr size_t kMaxProcesses = 200;

Json OrNull(const std::optional<double>& value) { return value ? Json(Rounded(*value)) : Json(); }

Json DrawResult(const Result& result) {
  return {{"name", DisplayName(result.name)},
          {"verdict", Name(result.verdict)},
          {"ratio", OrNull(result.ratio)},
          {"low", OrNull(result.low)},
          {"high", OrNull(result.high)},
          {"seconds_before", Rounded(result.seconds_a)},
          {"seconds_after", Rounded(result.seconds_b)}};
}

Json DrawProcesses(const std::vector<ProcessLocation>& locations) {
  Json seconds = Json::array();
  for (size_t i = 0; i < std::min(locations.size(), kMaxProcesses); ++i)
    seconds.push_back(Rounded(locations[i].seconds));
  return seconds;
}

}  // namespace

Json DrawComparison(const Comparison& comparison, const SideNames& names) {
  Json results = Json::array();
  if (!comparison.answer.name.empty()) results.push_back(DrawResult(comparison.answer));
  for (const Result& result : comparison.measurements) {
    if (results.size() == kMaxResults) break;
    results.push_back(DrawResult(result));
  }
  return {{"sides", {names.a, names.b}},
          {"measurement", DisplayName(comparison.plotted)},
          {"margin", comparison.margin},
          {"confidence", 1 - comparison.answer.error},
          {"before", DrawProcesses(comparison.locations_a)},
          {"after", DrawProcesses(comparison.locations_b)},
          {"results", std::move(results)}};
}

Document DocumentOf(const Comparison& comparison, const std::string& subject) {
  constexpr SideNames names = {"A", "B"};
  Document document;
  document.title = "ott ab";
  document.subject = subject;
  document.answers = {AnswerFaster(comparison, names)};
  document.problems = comparison.voids;
  document.details = {{"All measurements", ToText(comparison)}};
  document.pictures["comparison"] = DrawComparison(comparison, names);
  if (comparison.measurements.size() > kMaxResults) {
    document.thinned.push_back(
        absl::StrFormat("%d of %d measurements are drawn", kMaxResults, comparison.measurements.size()));
  }
  return document;
}

}  // namespace ott::faster
