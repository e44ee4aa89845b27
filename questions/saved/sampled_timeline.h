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
#include "ott/questions/saved/timeline_picture.pb.h"

namespace ott::saved {

// A measurement on one rank. Times are nanoseconds on rank 0's clock.
struct TimelineSpan {
  int name = 0;   // index
  int depth = 0;  // measurements that it lies in
  int64_t start = 0;
  int64_t duration = 0;
};

inline constexpr size_t kMaxTimelineRanks = 32;
inline constexpr size_t kMaxTimelineIterations = 8;
inline constexpr size_t kMaxTimelineSpans = 8000;

// Reads RUN/rank_*/iterations.pb: the longest iterations of the sample and some others, of ranks evenly
// spread and those in `wanted`. NOT_FOUND if there is no sample.
absl::StatusOr<TimelinePicture> ReadSampledTimeline(const std::string& run_dir,
                                                    const std::vector<int>& wanted);

class TimelineBuilder {
 public:
  // of: the word for an iteration, "iteration" or "step".
  explicit TimelineBuilder(const std::string& of) { picture_.set_of(of); }

  // Returns the index of a name; of those that come when there are many, that of "(others)".
  int IndexOf(const std::string& name, bool collective, bool observer);
  // Adds what a rank did in an iteration, from `begin` to `end`; spans by their start. A rank's clock may be
  // off by error_bound. num_left_out: spans that were left out before.
  void AddRank(int64_t iteration, int rank, int64_t error_bound, int64_t begin, int64_t end,
               std::vector<TimelineSpan> spans, int64_t num_left_out = 0);
  // Puts the beginning of each iteration at 0, and leaves the longest spans, kMaxTimelineSpans at most.
  // num_sampled, num_ranks: iterations and ranks of the run, of which those that were added were chosen.
  TimelinePicture Finish(int64_t num_sampled, int64_t num_ranks);

 private:
  struct Rank {
    TimelinePicture::Rank picture;
    std::vector<TimelineSpan> spans;
  };
  struct Iteration {
    int64_t error_bound = 0;
    int64_t num_left_out = 0;
    std::vector<Rank> ranks;
  };

  TimelinePicture picture_;
  std::map<std::string, int> index_;
  std::map<int64_t, Iteration> iterations_;
};

// Returns at most `limit` of `count` indices, the first and the last among them; ascending.
std::vector<size_t> EvenlySpread(size_t count, size_t limit);

// Adds the picture "timeline".
void AddTimeline(const TimelinePicture& timeline, Document* document);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_SAMPLED_TIMELINE_H_
