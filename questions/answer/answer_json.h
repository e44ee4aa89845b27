// An answer as JSON.

#ifndef OTT_QUESTIONS_ANSWER_ANSWER_JSON_H_
#define OTT_QUESTIONS_ANSWER_ANSWER_JSON_H_

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "ott/questions/answer/answer.pb.h"

namespace ott {

using Json = nlohmann::ordered_json;

// Returns the fields by their names in answer.proto. The evidence is the message by the names of its own
// file.
Json AnswerToJson(const Answer& answer);

// Returns {"answers": [...]}.
Json AnswersToJson(const std::vector<Answer>& answers);

// Returns what each command prints with `--format json`: the same as text, indented; ends with a newline.
std::string AnswersToJsonText(const std::vector<Answer>& answers);

// Adds "answers" to the JSON object that a command prints besides. REQUIRES: it has members, and ends with
// "}\n".
std::string WithAnswers(std::string object, const std::vector<Answer>& answers);

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_ANSWER_JSON_H_
