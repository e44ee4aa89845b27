// Collectives of several ranks: which belong together, whose clock is how far off, who came last.

#ifndef OTT_QUESTIONS_WAITING_COLLECTIVES_H_
#define OTT_QUESTIONS_WAITING_COLLECTIVES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ott/core/kernel_profile/profile.h"
#include "ott/questions/waiting/time_split.h"

namespace ott::waiting {

struct RankProfile {
  int rank = 0;
  const kernels::Profile* profile = nullptr;
};

// The beginnings of the steps (ProfilerStep#) on the profile's clock, ascending, with their numbers.
using Steps = std::vector<std::pair<int64_t, int64_t>>;
Steps StepsOf(const kernels::Profile& profile);

// Returns the ranks whose collective it is, alike on all of them, however their traces separate the ranks.
std::string GroupOf(const kernels::Profile::CollectiveKind& kind);

// What a rank's trace says that concerns the others: some ten bytes a collective, however large the trace.
struct TraceSummary {
  struct Part {
    uint32_t kind;            // of kinds
    int64_t sequence_number;  // -1: not told
    int64_t step;             // of ProfilerStep#; 0 without steps
    int64_t start;            // on the trace's clock, since 1970 where that is known
    int64_t end;
  };

  int rank = 0;
  std::string path;
  int64_t first_time = 0;  // on the trace's clock, as Part::start
  int64_t last_time = 0;
  int64_t num_steps = 0;
  TimeSplit split;
  std::vector<kernels::Profile::CollectiveKind> kinds;
  std::vector<Part> collectives;  // kernels, and what CPUs do, but no messages from one rank to another
};

// True if the traces of a rank are windows of one run, as far as they tell: the one ends before the other
// begins, and so do its steps. False if one of them has no collectives in steps.
bool AreWindowsOfOneRun(const TraceSummary& a, const TraceSummary& b);

// Without the split.
TraceSummary SummarizeCollectives(const RankProfile& trace);
// REQUIRES: as SplitTime().
TraceSummary SummarizeTrace(const RankProfile& trace);

// One collective on all ranks that have it.
struct Collective {
  struct Part {
    size_t trace;   // of the traces
    int64_t start;  // of its kernel, on the trace's clock, since 1970
    int64_t end;
  };

  const kernels::Profile::CollectiveKind* kind = nullptr;  // of the first part
  int64_t step = 0;                                        // of ProfilerStep#; 0 without steps
  bool same_message = true;                                // all ranks tell the same elements and type
  std::vector<Part> parts;                                 // in the order of the traces
};

// Matches kernels, and what CPUs do, by process group, name and sequence number of the group; ids of events
// differ from rank to rank. Traces without sequence numbers: by the order in the step, or without steps in
// the trace. Messages from one rank to another are left out. In the order of the first part's start.
// traces: outlive the result.
std::vector<Collective> MatchCollectives(const std::vector<TraceSummary>& traces);

// The offset to add to a trace's times to put them on the first one's clock, at the beginning and at the
// end of the trace.
struct ClockOffset {
  bool is_known = false;  // false: no collective leads to the first trace, or to another window of its rank
  int64_t at_begin = 0;
  int64_t at_end = 0;
  int64_t error_bound = 0;
  int64_t num_collectives = 0;
};

// A time of the trace, since 1970 where that is known, on the first trace's clock.
int64_t OnFirstClock(const TraceSummary& trace, const ClockOffset& offset, int64_t time);

// All ranks leave a collective that needs something of each of them (all_reduce, all_gather, reduce_scatter,
// all_to_all, barrier) at the same time, but for a few microseconds: the median difference of the ends is the
// clocks', and nine tenths of the rest are within error_bound. Clocks that agree within that are left alone.
// Several windows of a rank have no collectives in common: those of the first rank are on its clock, and
// those of the others are aligned each by itself.
std::vector<ClockOffset> AlignClocks(const std::vector<TraceSummary>& traces,
                                     const std::vector<Collective>& collectives);

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_COLLECTIVES_H_
