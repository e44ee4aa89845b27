// Did it become faster? A comparison as an answer.

#ifndef OTT_QUESTIONS_FASTER_FASTER_ANSWER_H_
#define OTT_QUESTIONS_FASTER_FASTER_ANSWER_H_

#include "ott/questions/answer/answer.h"
#include "ott/questions/faster/comparison.h"

namespace ott::faster {

inline constexpr QuestionId kQuestion = {"faster", "Did it become faster?", "ab"};

// The names of the two sides: "A" and "B", or "before" and "after".
struct SideNames {
  const char* a;
  const char* b;
};

AbVerdict EvidenceOf(const Comparison& comparison);

Answer AnswerFaster(const Comparison& comparison, const SideNames& names);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_FASTER_ANSWER_H_
