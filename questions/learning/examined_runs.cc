#include "ott/questions/learning/examined_runs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <utility>

#include "ott/core/statistics/location.h"

namespace ott::learning {
namespace {

using Event = LearningVerdict::Event;

bool EndsWorseThanItBegan(const Curve& curve, bool lower_is_better) {
  const double change = curve.back().y - curve.front().y;
  return lower_is_better ? change > 0 : change < 0;
}

void AddEvent(Event::Kind kind, const RunCurves& run, bool is_b, double x, LearningVerdict* verdict) {
  Event* const event = verdict->add_events();
  event->set_kind(kind);
  event->set_run(run.name);
  event->set_is_b(is_b);
  event->set_x(x);
}

// The curve without single values that are not finite; what it ends with stays.
Curve WithoutSingleNonFinite(const RunCurves& run, const std::string& metric, bool is_b,
                             LearningVerdict* verdict) {
  const Curve& curve = run.curves.at(metric);
  auto end = curve.end();
  while (end != curve.begin() && !std::isfinite((end - 1)->y)) --end;
  Curve kept;
  std::copy_if(curve.begin(), end, std::back_inserter(kept),
               [](const Point& point) { return std::isfinite(point.y); });
  if (kept.size() < static_cast<size_t>(end - curve.begin())) {
    const auto first =
        std::find_if(curve.begin(), end, [](const Point& point) { return !std::isfinite(point.y); });
    AddEvent(Event::ONCE_NOT_FINITE, run, is_b, first->x, verdict);
  }
  if (end != curve.end()) AddEvent(Event::NOT_FINITE, run, is_b, end->x, verdict);
  kept.insert(kept.end(), end, curve.end());
  return kept;
}

// Continues a curve that ended as it was not finite: it is not finite either where others go on.
void ContinueNonFinite(const Curve& longest, Curve* curve) {
  const Point end = curve->back();
  if (std::isfinite(end.y)) return;
  for (const Point& point : longest) {
    if (point.x > end.x) curve->push_back({point.x, end.y});
  }
}

// Says what is wrong with runs, and takes out what was cut short.
std::vector<RunCurves> Examine(const std::vector<RunCurves>& runs, const std::string& metric, bool is_b,
                               double median_end, const Curve* longest, bool diverged_if_worse,
                               bool lower_is_better, LearningVerdict* verdict) {
  std::vector<RunCurves> examined;
  for (const RunCurves& run : runs) {
    RunCurves kept = run;
    Curve& curve = kept.curves[metric] = WithoutSingleNonFinite(run, metric, is_b, verdict);
    if (diverged_if_worse && EndsWorseThanItBegan(curve, lower_is_better)) {
      AddEvent(Event::DIVERGED, run, is_b, curve.back().x, verdict);
    }
    ContinueNonFinite(*longest, &curve);
    if (curve.back().x < median_end / 2) {
      AddEvent(Event::CUT_SHORT, run, is_b, curve.back().x, verdict);
    } else {
      examined.push_back(std::move(kept));
    }
  }
  return examined;
}

double MedianEnd(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                 const std::string& metric) {
  std::vector<double> ends;
  for (const std::vector<RunCurves>* side : {&a, &b}) {
    for (const RunCurves& run : *side) ends.push_back(run.curves.at(metric).back().x);
  }
  return Median(ends);
}

// The curve that ends last; null if there are no runs.
const Curve* Longest(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                     const std::string& metric) {
  const Curve* longest = nullptr;
  for (const std::vector<RunCurves>* side : {&a, &b}) {
    for (const RunCurves& run : *side) {
      const Curve& curve = run.curves.at(metric);
      if (longest == nullptr || curve.back().x > longest->back().x) longest = &curve;
    }
  }
  return longest;
}

}  // namespace

ExaminedRuns ExamineRuns(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                         const std::string& metric, bool lower_is_better, LearningVerdict* verdict) {
  size_t num_worse = 0;
  for (const std::vector<RunCurves>* side : {&a, &b}) {
    for (const RunCurves& run : *side)
      num_worse += EndsWorseThanItBegan(run.curves.at(metric), lower_is_better);
  }
  const bool diverged_if_worse = 2 * num_worse < a.size() + b.size();
  const double median_end = MedianEnd(a, b, metric);
  const Curve* const longest = Longest(a, b, metric);
  return {Examine(a, metric, false, median_end, longest, diverged_if_worse, lower_is_better, verdict),
          Examine(b, metric, true, median_end, longest, diverged_if_worse, lower_is_better, verdict)};
}

bool HasFailedRunOfB(const LearningVerdict& verdict) {
  return std::any_of(verdict.events().begin(), verdict.events().end(), [](const Event& event) {
    return event.is_b() && event.kind() != Event::ONCE_NOT_FINITE;
  });
}

}  // namespace ott::learning
