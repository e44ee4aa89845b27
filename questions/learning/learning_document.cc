#include "ott/questions/learning/learning_document.h"

#include <utility>

#include "ott/core/base/text_table.h"
#include "ott/questions/answer/display_text.h"
#include "ott/questions/learning/learning_answer.h"

namespace ott::learning {
namespace {

constexpr int kMostMetrics = 16;

Json Draw(const LearningVerdict::Interval& interval) {
  return {Rounded(interval.value()), Rounded(interval.low()), Rounded(interval.high())};
}

Json Draw(const LearningVerdict::Metric& metric) {
  Json points = Json::array();
  for (const LearningVerdict::Point& point : metric.points()) {
    points.push_back({{"x", Rounded(point.x())},
                      {"a", Draw(point.a())},
                      {"b", Draw(point.b())},
                      {"difference", Draw(point.difference())},
                      {"margin", Rounded(point.margin())}});
  }
  return {{"name", DisplayName(metric.name())},
          {"verdict", NameOf(metric.kind())},
          {"level", metric.level()},
          {"differs_from", metric.has_differs_from() ? Json(metric.differs_from()) : Json()},
          {"differs_to", metric.has_differs_to() ? Json(metric.differs_to()) : Json()},
          {"points", std::move(points)}};
}

}  // namespace

Document DocumentOf(const LearningVerdict& verdict, const std::string& subject) {
  Document document;
  document.title = "ott curves";
  document.subject = EscapeControlCharacters(subject);
  document.answers = {AnswerLearning(verdict)};
  document.details = {{"All metrics", ToText(verdict)}};
  Json metrics = Json::array();
  for (int i = 0; i < verdict.metrics_size() && i < kMostMetrics; ++i) {
    metrics.push_back(Draw(verdict.metrics(i)));
  }
  document.pictures["learning"] = {{"x_name", DisplayName(verdict.x_name())},
                                   {"metrics", std::move(metrics)}};
  return document;
}

}  // namespace ott::learning
