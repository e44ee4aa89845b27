// Answers "Who is slow?" from the statistics of all ranks.

#ifndef OTT_QUESTIONS_SLOW_SLOW_ANSWER_H_
#define OTT_QUESTIONS_SLOW_SLOW_ANSWER_H_

#include <optional>
#include <string>

#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/answer/answer.h"

namespace ott::slow {

inline constexpr QuestionId kQuestion = {"slow", "Who is slow?", "stats"};

// stats: nullopt if nothing was measured.
Answer AnswerSlow(const std::optional<ClusterStats>& stats);

// Says what to run next about this run.
void AddNextOf(const std::string& run_dir, Answer* answer);

}  // namespace ott::slow

#endif  // OTT_QUESTIONS_SLOW_SLOW_ANSWER_H_
