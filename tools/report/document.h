// A report before it becomes text, JSON or a page.

#ifndef OTT_TOOLS_REPORT_DOCUMENT_H_
#define OTT_TOOLS_REPORT_DOCUMENT_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace ott::report {

using Json = nlohmann::ordered_json;

enum class Grade { kGood, kBad, kUnknown };

struct Answer {
  // A word that stays the same: "slow", "saved", "waiting", "hang", "replicas", "reference", "distinct",
  // "origin", "faster".
  std::string id;
  std::string question;
  Grade grade = Grade::kUnknown;
  // A line or some, without a newline at the end.
  std::string text;
  // How sure that is, and what it rests on: one line; empty where there is no answer.
  std::string certainty;
  // The picture that shows it; empty if there is none.
  std::string picture;
};

// A table, say. Ends with a newline.
struct Details {
  std::string title;
  std::string text;
};

struct Document {
  std::string title;    // what was asked for, a path
  std::string subject;  // one line about it
  std::vector<Answer> answers;
  // What is missing or cannot be read.
  std::vector<std::string> problems;
  std::vector<Details> details;
  // By name, see docs/report.md; empty unless asked for.
  Json pictures = Json::object();
  // What the pictures leave out, a sentence each.
  std::vector<std::string> thinned;
};

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_DOCUMENT_H_
