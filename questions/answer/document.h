// A report before it becomes text, JSON or a page.

#ifndef OTT_QUESTIONS_ANSWER_DOCUMENT_H_
#define OTT_QUESTIONS_ANSWER_DOCUMENT_H_

#include <string>
#include <vector>

#include "ott/questions/answer/answer.h"
#include "ott/questions/answer/answer_json.h"

namespace ott {

// A table, say. Ends with a newline.
struct Details {
  std::string title;
  std::string text;
};

struct Document {
  std::string title;    // what was asked for, a path
  std::string subject;  // one line about it
  std::vector<Answer> answers;
  // Says what is missing or cannot be read.
  std::vector<std::string> problems;
  std::vector<Details> details;
  // By name, see docs/report.md; empty unless asked for.
  Json pictures = Json::object();
  // Says what the pictures leave out, a sentence each.
  std::vector<std::string> thinned;

  // Combines all answers; with problems, an answer that is not bad is one that cannot be told.
  Answer::Finding finding() const;
};

// Removes names of pictures that the document does not have from its answers.
void RemoveLinksToNothing(Document* document);

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_DOCUMENT_H_
