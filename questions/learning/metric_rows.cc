#include "questions/learning/metric_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"

namespace ott::learning {

size_t RankOfX(std::string_view name) {
  if (!name.empty() && name.front() == '_') name.remove_prefix(1);
  return static_cast<size_t>(
      std::find_if(std::begin(kXNames), std::end(kXNames),
                   [&](const char* known) {
                     return std::equal(
                         name.begin(), name.end(), known, known + std::string_view(known).size(),
                         [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
                   }) -
      std::begin(kXNames));
}

void MetricRows::Add(std::string_view run, const std::vector<std::pair<std::string_view, double>>& row) {
  if (!x_is_given_) {
    for (const auto& [name, value] : row) {
      if (RankOfX(name) >= RankOfX(x_)) continue;
      x_ = std::string(name);
      // What came before has none of it.
      runs_.clear();
    }
  }
  const auto x = std::find_if(row.begin(), row.end(), [&](const auto& field) { return field.first == x_; });
  if (x == row.end()) return;
  for (const auto& [name, value] : row) {
    if (RankOfX(name) == std::size(kXNames) && name != x_) {
      AddPoint(std::string(run), std::string(name), x->second, value);
    }
  }
}

void MetricRows::AddPoint(const std::string& run, const std::string& metric, double x, double y) {
  if (std::isfinite(x)) runs_[run].curves[metric].push_back({x, y});
}

namespace {

// Makes the times of a run those since its first point, if they are times of day. The earliest is of 2001.
void CountFromFirst(RunCurves* run) {
  constexpr double kEarliest = 1e9;
  double first = std::numeric_limits<double>::infinity();
  for (const auto& [metric, curve] : run->curves) first = std::min(first, curve.front().x);
  if (first < kEarliest) return;
  for (auto& [metric, curve] : run->curves) {
    for (Point& point : curve) point.x -= first;
  }
}

}  // namespace

absl::Status MetricRows::Finish(std::vector<RunCurves>* runs) {
  const auto by_x = [](const Point& a, const Point& b) { return a.x < b.x; };
  for (auto& [name, run] : runs_) {
    const std::string shown = EscapeControlCharacters(source_);
    run.name = name.empty() ? shown : absl::StrCat(shown, ", run ", EscapeControlCharacters(name));
    // Names go to terminals.
    std::map<std::string, Curve> named;
    for (auto& [metric, curve] : run.curves) named[EscapeControlCharacters(metric)] = std::move(curve);
    run.curves = std::move(named);
    for (auto& [metric, curve] : run.curves) {
      if (!std::is_sorted(curve.begin(), curve.end(), by_x))
        std::stable_sort(curve.begin(), curve.end(), by_x);
      // A value that was logged again, after a restart for example, counts.
      const auto kept = std::unique(curve.rbegin(), curve.rend(),
                                    [](const Point& a, const Point& b) { return a.x == b.x; });
      curve.erase(curve.begin(), kept.base());
    }
    if (absl::StrContains(absl::AsciiStrToLower(x_), "time")) CountFromFirst(&run);
    runs->push_back(std::move(run));
  }
  if (!runs_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      source_, ": has no metric over ",
      x_.empty() ? absl::StrCat("any of ", absl::StrJoin(kXNames, ", ")) : EscapeControlCharacters(x_)));
}

}  // namespace ott::learning
