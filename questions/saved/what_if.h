// Answers what a job would save if one of its parts were mended, and whose fault it is.

#ifndef OTT_QUESTIONS_SAVED_WHAT_IF_H_
#define OTT_QUESTIONS_SAVED_WHAT_IF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/saved/job.h"
#include "ott/questions/saved/what_if.pb.h"

namespace ott::whatif {

// Where a replay of what was measured takes more or less than was measured by this share, nothing is told.
inline constexpr double kMaxReplayError = 0.02;
// A repair that saves less of a step is not worth a word.
inline constexpr double kMinSaved = 0.03;
// Of ranks that do the same: there is nothing to mend only if it is sure, at 95 %, that mending no rank saves
// so much.
inline constexpr double kMaxNotExcluded = 0.05;
// For ranks that do the same: what differs by less, from iteration to iteration, is not worth a word either.
inline constexpr double kMinUneven = 0.1;
// For a pipeline: ranks, or a stage, are to blame if mending them brings this share of what all repairs
// bring.
inline constexpr double kMinShareOfBlamed = 0.5;
// How many of the ranks M_W mends.
inline constexpr double kWorstRanks = 0.03;

// A question of one's own: what the selected operations take times a factor.
struct ScaleQuestion {
  std::string name;
  std::vector<char> selection;  // as Scenario's
  double factor = 1;
};

// Parses text such as "rank=1,measurement=forward,0.5": keys are rank, measurement (or operation), stage,
// replica and host, each as often as wanted; what fits one value of each key that is there is selected.
// INVALID_ARGUMENT, with what there is, for names that the job does not have.
absl::StatusOr<ScaleQuestion> ParseScaleQuestion(const Job& job, const std::string& text);

// REQUIRES: the job has operations, and its graph is finished
WhatIfAnswer AnswerWhatIf(const Job& job, const std::vector<ScaleQuestion>& questions = {});

}  // namespace ott::whatif

#endif  // OTT_QUESTIONS_SAVED_WHAT_IF_H_
