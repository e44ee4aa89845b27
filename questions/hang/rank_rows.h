// Makes rows of a verdict: the state of each rank.

#ifndef OTT_QUESTIONS_HANG_RANK_ROWS_H_
#define OTT_QUESTIONS_HANG_RANK_ROWS_H_

#include "ott/questions/hang/hang.pb.h"
#include "ott/questions/hang/job_state.h"
#include "ott/questions/hang/wait_graph.h"

namespace ott {

// Adds a HangRank for each rank. REQUIRES: the graph is of the job
void AddRankRows(const JobState& job, const WaitGraph& graph, HangVerdict* verdict);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_RANK_ROWS_H_
