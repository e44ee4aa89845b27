// An answer as JSON.

#ifndef OTT_QUESTIONS_ANSWER_ANSWER_JSON_H_
#define OTT_QUESTIONS_ANSWER_ANSWER_JSON_H_

#include <string>

#include "nlohmann/json.hpp"
#include "ott/questions/answer/answer.pb.h"

namespace ott {

using Json = nlohmann::ordered_json;

// The fields by their names in answer.proto. The evidence is the message by the names of its own file.
Json AnswerToJson(const Answer& answer);

// The same as text, indented; ends with a newline.
std::string AnswerToJsonText(const Answer& answer);

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_ANSWER_JSON_H_
