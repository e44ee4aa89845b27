// Answers what a job would save if one of its parts were mended, and whose fault it is.

#ifndef OTT_QUESTIONS_SAVED_WHAT_IF_H_
#define OTT_QUESTIONS_SAVED_WHAT_IF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/saved/replay_job.h"
#include "ott/questions/saved/what_if.pb.h"

namespace ott::saved {

// A question of one's own: what the selected operations take times a factor.
struct ScaleQuestion {
  std::string name;
  std::vector<char> selection;  // as Scenario's
  double factor = 1;
};

// Parses text such as "rank=1,measurement=forward,0.5": keys are rank, measurement (or operation), stage,
// replica and host, each as often as wanted; what fits one value of each key that is there is selected.
// INVALID_ARGUMENT, with what there is, for names that the job does not have.
absl::StatusOr<ScaleQuestion> ParseScaleQuestion(const ReplayJob& job, const std::string& text);

// REQUIRES: the job has operations, and its graph is finished
WhatIfAnswer AnswerWhatIf(const ReplayJob& job, const std::vector<ScaleQuestion>& questions = {});

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_WHAT_IF_H_
