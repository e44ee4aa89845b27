// The questions that a run asks about all its ranks while they train.

#ifndef OTT_QUESTIONS_LIVE_QUESTIONS_H_
#define OTT_QUESTIONS_LIVE_QUESTIONS_H_

#include <string>
#include <vector>

#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/answer/answer.h"

namespace ott {

// Holds what rank 0 has of all ranks after a gather.
struct GatheredRun {
  const ClusterStats& stats;
  // An IterationSample of each rank that answered, as bytes, in any order.
  const std::vector<std::string>& iterations;
};

// Returns an answer to each of them; NOT_ASKED is one that the run gave no reason to ask.
std::vector<Answer> AskLiveQuestions(const GatheredRun& run);

}  // namespace ott

#endif  // OTT_QUESTIONS_LIVE_QUESTIONS_H_
