#include "ott/questions/answer/document.h"

namespace ott {

Answer::Finding Document::finding() const {
  const Answer::Finding of_answers = FindingOf(answers);
  return problems.empty() || of_answers == Answer::BAD ? of_answers : Answer::CANNOT_TELL;
}

void RemoveLinksToNothing(Document* document) {
  for (Answer& answer : document->answers) {
    const std::vector<std::string> pictures(answer.pictures().begin(), answer.pictures().end());
    answer.clear_pictures();
    for (const std::string& picture : pictures) {
      if (document->pictures.contains(picture)) answer.add_pictures(picture);
    }
  }
}

}  // namespace ott
