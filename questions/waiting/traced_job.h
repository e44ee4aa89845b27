// Tells what the traces of a job's ranks say together: where the time goes, who waits for whom.

#ifndef OTT_QUESTIONS_WAITING_TRACED_JOB_H_
#define OTT_QUESTIONS_WAITING_TRACED_JOB_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ott/questions/answer/answer.h"
#include "ott/questions/waiting/collectives.h"
#include "ott/questions/waiting/hold_ups.h"
#include "ott/questions/waiting/time_split.h"

namespace ott::waiting {

// All collectives of one kind: name, group and message.
struct CollectiveSum {
  kernels::Profile::CollectiveKind kind;
  int64_t count = 0;
  int64_t num_ranks = 0;
  // Nanoseconds in sum, of those that all traced ranks of the group have. Transfer begins when the last rank
  // comes, and ends with the last kernel; a rank waits from its start until then.
  int64_t num_complete = 0;
  int64_t transfer = 0;
  int64_t wait = 0;          // mean of the ranks
  int64_t longest_wait = 0;  // of a rank
  double message_bytes = 0;  // of one; NaN: not known
  double bus_bytes = 0;
  int last_rank = -1;  // that came last most often
  int64_t num_last = 0;
};

struct TracedJob {
  struct Rank {
    int rank = 0;
    std::string path;
    TimeSplit split;
    int64_t num_steps = 0;
  };

  std::vector<Rank> ranks;                 // a trace each: a rank may have several windows
  std::vector<CollectiveSum> collectives;  // by time, most first
  std::vector<ClockOffset> clocks;         // parallel to ranks
  TracedHoldUps hold_ups;
  bool tells_groups = false;   // the process group of a collective
  bool has_steps = false;      // ProfilerStep#; else hold-ups are of the whole trace
  int64_t num_matched = 0;     // collectives that at least two ranks have
  int64_t num_incomplete = 0;  // those that a traced rank of the group lacks
  int64_t num_unlike = 0;      // those of whose message the ranks tell different sizes
  // Collectives to which ranks without a trace come, too: all may wait for one of these.
  int64_t num_partly_traced = 0;
};

TracedJob DescribeJob(const std::vector<TraceSummary>& traces);
// Of summaries that it makes.
TracedJob DescribeJob(const std::vector<RankProfile>& traces);

// By rank, of all of its windows.
std::map<int, TimeSplit> SplitsByRank(const TracedJob& job);
// A line a rank: total time, compute, exposed and overlapped communication, exposed copies, idle and why.
std::string FormatSplits(const TracedJob& job);
// The figures of each rank as a line of JSON, milliseconds, by the names of TraceLens's gpu_timeline.
std::string SplitsToJson(const TracedJob& job);
// A line for each of at most `limit` kinds of collectives.
std::string FormatCollectives(const TracedJob& job, size_t limit);
// Who waits for whom, or why that cannot be told. Lines without newlines, or one text that ends with one.
std::vector<std::string> HoldUpLines(const TracedJob& job);
std::string FormatHoldUps(const TracedJob& job);
// The same as an answer; not asked of one rank alone.
Answer AnswerHoldUps(const TracedJob& job);

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_TRACED_JOB_H_
