// The cross-checks that the ranks of a run made while it went on, read from disk, and what they answer.

#ifndef OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_HISTORY_H_
#define OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_HISTORY_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/verdict_log.h"
#include "ott/dist/directory/run_info.pb.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/right/crosscheck/error_trend.h"

namespace ott::crosscheck {

inline constexpr QuestionId kReplicasQuestion = {"replicas", "Do the replicas agree?", "crosscheck"};
inline constexpr QuestionId kReferenceQuestion = {"reference", "Is it the reference run?", "compare"};
inline constexpr QuestionId kDistinctQuestion = {"distinct", "Has each rank its own data?", "crosscheck"};

// The cross-checks of one mode.
struct CheckHistory {
  // The worst verdict of each iteration over the ranks, of several the one that names the tensor that comes
  // first in order of insertion, and then the lowest rank's; ascending.
  std::vector<CrossCheckVerdict> verdicts;
  VerdictSummary summary;

  // Returns null if none is DIFFERENT.
  const CrossCheckVerdict* first_divergence() const;
};

struct CheckHistories {
  CheckHistory replicas;
  CheckHistory reference;
  // Checks tensors of which each rank is to have its own.
  CheckHistory distinct;
  // The errors of the checks against the reference.
  ErrorTrend error_trend;
  // Say what is missing or cannot be read.
  std::vector<std::string> problems;
};

// Reads RUN/rank_*/cross_check.jsonl. ranks: whose directories there are. info: nullopt if run.json cannot be
// read.
absl::StatusOr<CheckHistories> ReadCheckHistories(const std::string& run_dir, const std::vector<int>& ranks,
                                                  const std::optional<RunInfo>& info);

// Returns the histories by what they are called: "replicas", "reference", "distinct".
std::vector<std::pair<std::string, const CheckHistory*>> NamedHistories(const CheckHistories& histories);

// Maps an outcome: DIFFERENT is bad, of tensors that are to be distinct as well; NOT_COMPARED cannot tell.
Answer::Finding FindingOfOutcome(Outcome outcome);

Answer AnswerReplicas(const CheckHistories& histories);
Answer AnswerReference(const CheckHistories& histories);
Answer AnswerDistinct(const CheckHistories& histories);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_HISTORY_H_
