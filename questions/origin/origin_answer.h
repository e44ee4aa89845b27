// Answers "Which operation made it?" from where two runs parted.

#ifndef OTT_QUESTIONS_ORIGIN_ORIGIN_ANSWER_H_
#define OTT_QUESTIONS_ORIGIN_ORIGIN_ANSWER_H_

#include "absl/status/statusor.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/origin/origin.pb.h"

namespace ott::origin {

inline constexpr QuestionId kQuestion = {"origin", "Which operation made it?", "origin"};

Answer AnswerOrigin(const absl::StatusOr<OriginVerdict>& origin);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ORIGIN_ANSWER_H_
