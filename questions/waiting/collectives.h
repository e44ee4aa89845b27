// Collectives of several ranks: which belong together, whose clock is how far off, who came last.

#ifndef OTT_QUESTIONS_WAITING_COLLECTIVES_H_
#define OTT_QUESTIONS_WAITING_COLLECTIVES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ott/core/kernel_profile/profile.h"

namespace ott::waiting {

struct RankProfile {
  int rank = 0;
  const kernels::Profile* profile = nullptr;
};

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

// The beginnings of the steps (ProfilerStep#) on the profile's clock, ascending, with their numbers.
std::vector<std::pair<int64_t, int64_t>> StepsOf(const kernels::Profile& profile);

// Matches kernels, and what CPUs do, by process group, name and sequence number of the group; ids of events
// differ from rank to rank. Traces without sequence numbers: by the order in the step, or without steps in
// the trace. Messages from one rank to another are left out. In the order of the first part's start.
std::vector<Collective> MatchCollectives(const std::vector<RankProfile>& traces);

// The offset to add to a trace's times to put them on the first one's clock, at the beginning and at the
// end of the trace.
struct ClockOffset {
  bool is_known = false;  // false: no collective leads to the first trace
  int64_t at_begin = 0;
  int64_t at_end = 0;
  int64_t error_bound = 0;
  int64_t num_collectives = 0;
};

// A time of the trace, since 1970 where that is known, on the first trace's clock.
int64_t OnFirstClock(const kernels::Profile& profile, const ClockOffset& offset, int64_t time);

// All ranks leave a collective that needs something of each of them (all_reduce, all_gather, reduce_scatter,
// all_to_all, barrier) at the same time, but for a few microseconds. So the median difference of the ends is
// the clocks', and nine tenths of the rest are within error_bound. Clocks that agree within that are left
// alone.
std::vector<ClockOffset> AlignClocks(const std::vector<RankProfile>& traces,
                                     const std::vector<Collective>& collectives);

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_COLLECTIVES_H_
