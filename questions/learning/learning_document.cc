#include "ott/questions/learning/learning_document.h"

#include "ott/core/base/text_table.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/learning/learning_answer.h"

namespace ott::learning {
namespace {

constexpr int kMostMetrics = 16;

}  // namespace

Document DocumentOf(const LearningVerdict& verdict, const std::string& subject) {
  Document document;
  document.title = "ott curves";
  document.subject = EscapeControlCharacters(subject);
  document.answers = {AnswerLearning(verdict)};
  document.details = {{"All metrics", ToText(verdict)}};
  LearningVerdict drawn = verdict;
  drawn.clear_notes();
  KeepFirst(kMostMetrics, drawn.mutable_metrics());
  document.pictures["learning"] = DrawMessage(drawn);
  return document;
}

}  // namespace ott::learning
