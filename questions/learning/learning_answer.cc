#include "ott/questions/learning/learning_answer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/questions/learning/examined_runs.h"

namespace ott::learning {
namespace {

using Event = LearningVerdict::Event;
using Metric = LearningVerdict::Metric;

bool IsOneRun(const LearningVerdict& verdict) { return std::min(verdict.num_a(), verdict.num_b()) == 1; }

double ConfidencePercent(const Metric& metric) { return (1 - metric.level()) * 100; }

// "99 %: 2.0 to 8.1 %"
std::string DescribeShare(const LearningVerdict::Interval& share, const Metric& metric, bool as_gain) {
  const double sign = as_gain ? -100 : 100;
  const double one = sign * share.low(), other = sign * share.high();
  return absl::StrFormat("%.1f %% of the steps (%.4g %%: %.1f to %.1f %%)", sign * share.value(),
                         ConfidencePercent(metric), std::min(one, other), std::max(one, other));
}

// The point at which the difference stands out most from its band.
const LearningVerdict::Point& ClearestPoint(const Metric& metric) {
  const auto clearness = [](const LearningVerdict::Point& point) {
    const double half = (point.difference().high() - point.difference().low()) / 2;
    return half > 0 ? std::abs(point.difference().value()) / half : 0;
  };
  return *std::max_element(metric.points().begin(), metric.points().end(),
                           [&](const auto& a, const auto& b) { return clearness(a) < clearness(b); });
}

std::string DescribeWhere(const LearningVerdict& verdict, const Metric& metric) {
  if (!metric.has_differs_from()) return "over the whole curve; no point by itself tells";
  if (metric.differs_to() == metric.points(metric.points_size() - 1).x()) {
    return absl::StrFormat("from %s %g on", verdict.x_name(), metric.differs_from());
  }
  return absl::StrFormat("from %s %g to %g", verdict.x_name(), metric.differs_from(), metric.differs_to());
}

std::string DescribeDifference(const LearningVerdict& verdict, const Metric& metric) {
  const bool is_better = metric.kind() == LearningVerdict::BETTER;
  const LearningVerdict::Interval& share = metric.share_lost();
  const bool is_in_steps = is_better ? share.high() < 0 : share.low() > 0;
  std::string text = absl::StrCat("B is ", NameOf(metric.kind()), " in ", metric.name());
  if (is_in_steps) {
    absl::StrAppend(&text, ": it ", is_better ? "saves " : "loses ", DescribeShare(share, metric, is_better));
  }
  const LearningVerdict::Point& point = ClearestPoint(metric);
  absl::StrAppendFormat(&text, ", %s; at %g by %+.3g (%.3g to %.3g)", DescribeWhere(verdict, metric),
                        point.x(), point.difference().value(), point.difference().low(),
                        point.difference().high());
  return text;
}

std::string DescribeMargin(const LearningVerdict& verdict, const Metric& metric) {
  if (!verdict.margin().empty()) return absl::StrCat("the margin of ", verdict.margin());
  double low = metric.points(0).margin(), high = low;
  for (const LearningVerdict::Point& point : metric.points()) {
    low = std::min(low, point.margin());
    high = std::max(high, point.margin());
  }
  return absl::StrFormat(
      "%s (half of what A's %d runs span)",
      low == high ? absl::StrFormat("%.3g", low) : absl::StrFormat("%.3g to %.3g", low, high),
      verdict.num_a());
}

std::string DescribeCannotTell(const LearningVerdict& verdict, const Metric& metric) {
  std::string text = absl::StrFormat("cannot tell in %s after %d of A and %d of B", metric.name(),
                                     verdict.num_a(), verdict.num_b());
  if (verdict.num_a() + verdict.num_b() < 3)
    return text + ": one run a side says nothing about seeds; 5 runs a side may";
  if (HasFailedRunOfB(verdict)) return text + ": with a run that failed, B is never as good";
  if (IsOneRun(verdict)) {
    absl::StrAppend(&text,
                    metric.level() > 0
                        ? ": the one run lies inside of the band of the others, which excludes no difference"
                        : ": one run can be told from five or more");
  } else if (metric.has_share_lost() && metric.level() > 0) {
    absl::StrAppend(&text, ": B loses ", DescribeShare(metric.share_lost(), metric, false),
                    ", and what lies beyond ", DescribeMargin(verdict, metric), " is not excluded");
  }
  if (metric.runs_needed() > 0) {
    absl::StrAppend(&text, "; some ", metric.runs_needed(), " runs a side would tell");
  } else {
    text += "; more runs than can be had would tell, or a larger --margin";
  }
  return text;
}

std::string DescribeFirst(const LearningVerdict& verdict) {
  const Metric& metric = verdict.metrics(0);
  switch (metric.kind()) {
    case LearningVerdict::WORSE:
    case LearningVerdict::BETTER:
      return DescribeDifference(verdict, metric);
    case LearningVerdict::AS_GOOD:
      if (verdict.num_a() + verdict.num_b() < 3) {
        return absl::StrCat("B is as good in ", metric.name(), ": it is the same to the last bit at all ",
                            metric.points_size(), " points");
      }
      return absl::StrFormat("B is as good in %s: at none of %d points is it off by more than %s (%.4g %%)",
                             metric.name(), metric.points_size(), DescribeMargin(verdict, metric),
                             ConfidencePercent(metric));
    case LearningVerdict::MIXED:
      return absl::StrCat("cannot tell: B's curve of ", metric.name(),
                          " has another shape than A's, and is not better or worse as a whole");
    default:
      return DescribeCannotTell(verdict, metric);
  }
}

std::string DescribeEvent(const Event& event, const std::string& x_name) {
  const std::string run = absl::StrCat(event.is_b() ? "B: " : "A: ", event.run());
  switch (event.kind()) {
    case Event::NOT_FINITE:
      return absl::StrFormat("%s is not finite from %s %g on", run, x_name, event.x());
    case Event::ONCE_NOT_FINITE:
      return absl::StrFormat("%s is not finite at %s %g, and finite again", run, x_name, event.x());
    case Event::DIVERGED:
      return absl::StrCat(run, " ends worse than it began");
    case Event::CUT_SHORT:
      return absl::StrFormat("%s ends at %s %g, before half of what the others do, and is left out", run,
                             x_name, event.x());
    default:
      return run;
  }
}

// Returns true if a run of B is not finite, and no run of A failed. That one ends worse than it began may be
// chance.
bool OnlyBIsNotFinite(const LearningVerdict& verdict) {
  bool b_is_not_finite = false;
  for (const Event& event : verdict.events()) {
    const bool is_not_finite = event.kind() == Event::NOT_FINITE;
    if (!event.is_b() && (is_not_finite || event.kind() == Event::DIVERGED)) return false;
    b_is_not_finite |= is_not_finite;
  }
  return b_is_not_finite;
}

bool AnotherMetricDiffers(const LearningVerdict& verdict) {
  return std::any_of(verdict.metrics().begin(), verdict.metrics().end(),
                     [](const Metric& metric) { return metric.kind() == LearningVerdict::DIFFERENT; });
}

Answer::Finding FindingOfLearning(const LearningVerdict& verdict) {
  const LearningVerdict::Kind kind = verdict.metrics(0).kind();
  if (kind == LearningVerdict::WORSE) return Answer::BAD;
  // A single run can be said to have failed, whatever is to blame.
  if (verdict.num_b() == 1 && OnlyBIsNotFinite(verdict)) return Answer::BAD;
  if (kind == LearningVerdict::BETTER) return Answer::GOOD;
  if (AnotherMetricDiffers(verdict)) return Answer::BAD;
  return kind == LearningVerdict::AS_GOOD ? Answer::GOOD : Answer::CANNOT_TELL;
}

// Returns the sentences that follow the first.
std::vector<std::string> FurtherSentences(const LearningVerdict& verdict) {
  std::vector<std::string> sentences;
  const Metric& first = verdict.metrics(0);
  if ((first.kind() == LearningVerdict::WORSE || first.kind() == LearningVerdict::BETTER) &&
      first.has_stop_ratio()) {
    const LearningVerdict::Interval& ratio = first.stop_ratio();
    sentences.push_back(absl::StrFormat("B reaches the target at %.3f times A's %s (%.3f to %.3f)",
                                        ratio.value(), verdict.x_name(), ratio.low(), ratio.high()));
  }
  for (int i = 1; i < verdict.metrics_size(); ++i) {
    const Metric& metric = verdict.metrics(i);
    if (metric.kind() != LearningVerdict::DIFFERENT) continue;
    sentences.push_back(metric.has_ratio() ? absl::StrFormat("%s differs: it is %.2f times A's",
                                                             metric.name(), metric.ratio())
                                           : absl::StrFormat("%s differs: A's is 0", metric.name()));
  }
  for (const Event& event : verdict.events()) sentences.push_back(DescribeEvent(event, verdict.x_name()));
  if (!verdict.first_difference().empty()) sentences.push_back(verdict.first_difference());
  for (const std::string& note : verdict.notes()) sentences.push_back("note: " + note);
  return sentences;
}

}  // namespace

const char* NameOf(LearningVerdict::Kind kind) {
  switch (kind) {
    case LearningVerdict::AS_GOOD:
      return "as good";
    case LearningVerdict::BETTER:
      return "better";
    case LearningVerdict::WORSE:
      return "worse";
    case LearningVerdict::DIFFERENT:
      return "DIFFERS";
    case LearningVerdict::MIXED:
      return "mixed";
    default:
      return "cannot tell";
  }
}

Answer AnswerLearning(const LearningVerdict& verdict) {
  Answer answer = MakeAnswer(kQuestion);
  answer.set_finding(FindingOfLearning(verdict));
  answer.add_sentences(DescribeFirst(verdict));
  AddSentences(FurtherSentences(verdict), &answer);
  answer.set_how_sure(absl::StrFormat(
      "%d runs of A and %d of B; worse or better is wrong in at most %.2g %% of such comparisons%s",
      verdict.num_a(), verdict.num_b(), verdict.error() * 100,
      IsOneRun(verdict) ? ", if seeds spread as Student's t has it" : ", whatever the curves look like"));
  if (!verdict.next().empty()) answer.add_next(verdict.next());
  SetEvidence(verdict, &answer);
  answer.add_pictures("learning");
  return answer;
}

std::string ToText(const LearningVerdict& verdict) {
  std::string text = absl::StrCat(DescribeFirst(verdict), "\n");
  TextTable table({"metric", "verdict", "last A", "last B", "B / A"});
  for (const Metric& metric : verdict.metrics()) {
    const LearningVerdict::Point& last = metric.points(metric.points_size() - 1);
    table.AddRow({metric.name(), NameOf(metric.kind()), absl::StrFormat("%.5g", last.a().value()),
                  absl::StrFormat("%.5g", last.b().value()),
                  metric.has_ratio() ? absl::StrFormat("%.3f", metric.ratio()) : "na"});
  }
  text += table.ToString();
  for (const std::string& sentence : FurtherSentences(verdict)) absl::StrAppend(&text, sentence, "\n");
  if (!verdict.next().empty()) absl::StrAppend(&text, "next: ", verdict.next(), "\n");
  return text;
}

}  // namespace ott::learning
