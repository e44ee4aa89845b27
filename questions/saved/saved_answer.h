// Answers "What would mending it save?" from the replay of a job.

#ifndef OTT_QUESTIONS_SAVED_SAVED_ANSWER_H_
#define OTT_QUESTIONS_SAVED_SAVED_ANSWER_H_

#include <string>

#include "absl/status/statusor.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/saved/what_if.pb.h"

namespace ott::saved {

inline constexpr QuestionId kQuestion = {"saved", "What would mending it save?", "whatif"};

// Makes the answer. An error NOT_FOUND: the run kept no iterations, so nobody asked. After another error it
// cannot be told.
Answer AnswerSaved(const absl::StatusOr<WhatIfAnswer>& what_if);

// Says what to run next about this run.
void AddNextOf(const std::string& run, Answer* answer);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_SAVED_ANSWER_H_
