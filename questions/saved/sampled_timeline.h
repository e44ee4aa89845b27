// Shows what ranks did when in a few iterations.

#ifndef OTT_QUESTIONS_SAVED_SAMPLED_TIMELINE_H_
#define OTT_QUESTIONS_SAVED_SAMPLED_TIMELINE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/answer/document.h"

namespace ott::saved {

// Times are nanoseconds on rank 0's clock, from the moment at which the first rank began the iteration.
struct SampledTimeline {
  struct Span {
    int name = 0;   // index
    int depth = 0;  // measurements that it lies in
    int64_t start = 0;
    int64_t duration = 0;
  };
  struct Rank {
    int rank = 0;
    int64_t begin = 0;
    int64_t end = 0;
    std::vector<Span> spans;
  };
  struct Iteration {
    int64_t iteration = 0;
    // A rank's clock may be off by so much.
    int64_t error_bound = 0;
    std::vector<Rank> ranks;
    int64_t num_spans_left_out = 0;
  };
  struct Name {
    std::string name;
    bool collective = false;
    bool observer = false;  // the time that this library takes for itself
  };

  std::vector<Name> names;
  std::vector<Iteration> iterations;  // ascending
  int64_t num_sampled = 0;            // iterations, of which those above were chosen
  int64_t num_ranks = 0;              // of the run, of which those above were chosen
};

inline constexpr size_t kMaxTimelineRanks = 32;
inline constexpr size_t kMaxTimelineIterations = 8;
inline constexpr size_t kMaxTimelineSpans = 8000;

// Reads RUN/rank_*/iterations.pb: the longest iterations of the sample and some others, of ranks evenly
// spread and those in `wanted`. NOT_FOUND if there is no sample.
absl::StatusOr<SampledTimeline> ReadSampledTimeline(const std::string& run_dir,
                                                    const std::vector<int>& wanted);

class TimelineBuilder {
 public:
  // Returns the index of a name; of those that come when there are many, that of "(others)".
  int IndexOf(const std::string& name, bool collective, bool observer);
  // Adds a rank of the iteration, to which spans may be added until the next call.
  SampledTimeline::Rank& AddRank(int64_t iteration, int rank, int64_t error_bound);
  // Puts the beginning of each iteration at 0, and leaves the longest spans, kMaxTimelineSpans at most.
  SampledTimeline Finish();

 private:
  SampledTimeline timeline_;
  std::map<std::string, int> index_;
  std::map<int64_t, SampledTimeline::Iteration> iterations_;
};

// Returns at most `limit` of `count` indices, the first and the last among them; ascending.
std::vector<size_t> EvenlySpread(size_t count, size_t limit);

// Adds the picture "timeline". of: the word for an iteration, "iteration" or "step".
void AddTimeline(const SampledTimeline& timeline, const std::string& of, Document* document);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_SAMPLED_TIMELINE_H_
