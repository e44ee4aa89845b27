// Answers "Who waits for whom?" from the times at which ranks came to collectives.

#ifndef OTT_QUESTIONS_WAITING_WAITING_ANSWER_H_
#define OTT_QUESTIONS_WAITING_WAITING_ANSWER_H_

#include <optional>
#include <string>

#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/answer/answer.h"

namespace ott::waiting {

inline constexpr QuestionId kQuestion = {"waiting", "Who waits for whom?", "stats"};

// stats: nullopt if nothing was measured. has_collectives: the run declared measurements in which ranks wait
// for each other. was_gathered: the statistics of all ranks were put together while it ran.
Answer AnswerWaiting(const std::optional<ClusterStats>& stats, bool has_collectives, bool was_gathered);

// Says what to run next about this run.
void AddNextOf(const std::string& run_dir, Answer* answer);

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_WAITING_ANSWER_H_
