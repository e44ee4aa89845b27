// Keeps when the measurements of some iterations began and ended, for ott whatif.

#ifndef OTT_QUESTIONS_SAVED_ITERATION_SAMPLER_H_
#define OTT_QUESTIONS_SAVED_ITERATION_SAMPLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/events/event_recorder.h"
#include "ott/dist/comm/clock_align.h"
#include "ott/questions/saved/iteration_sample.pb.h"

namespace ott::saved {

// Records blocks of consecutive iterations of Stopwatch::Get(). All ranks keep the same iterations: all
// blocks at first, and when there are kMaxBlocks every second of them, then every fourth, and so on. So
// memory is bounded, and a long run records ever fewer of its iterations.
//
// FinishIter() is called by one thread, whose intervals are kept; the rest is thread-safe.
class IterationSampler {
 public:
  // Odd, so that work of each 64th iteration is in as many blocks as it should.
  static constexpr int kIterationsPerBlock = 17;
  static constexpr size_t kMaxBlocks = 32;
  // Bytes of one thread in a block; more are counted as lost, with the block.
  static constexpr size_t kBufferBytes = size_t{1} << 18;

  struct Options {
    // The first of the run, and how many are not sampled from there on.
    int64_t first_iteration = 0;
    int64_t num_warmup_iters = 0;
    std::vector<std::string> collective_measurements;
    // The measurement of this library's own time.
    std::string observer_measurement;
    int rank = 0;
    int world_size = 1;
    std::string host;
    // See StatsGathererOptions: the ranks that do like work, and those that come together to a collective
    // measurement, by its name.
    std::string like_work;
    std::map<std::string, std::string> collective_groups;
  };

  // Begins the first iteration.
  explicit IterationSampler(Options options);
  IterationSampler(const IterationSampler&) = delete;
  IterationSampler& operator=(const IterationSampler&) = delete;
  ~IterationSampler();

  // Ends an iteration; call it after Stopwatch::FinishIter(). iteration: that ended, counted from 0.
  // is_profiling: the stopwatch leaves its intervals with a profiler, which goes before.
  void FinishIter(int64_t iteration, const ClockAligner& clock, bool is_profiling);

  // Returns at most about max_bytes of it: those blocks that all ranks would leave out last.
  IterationSample Sample(size_t max_bytes = SIZE_MAX) const;

 private:
  void Begin();
  void End();
  absl::StatusOr<IterationBlock> ReadBlock(const ClockAligner& clock);
  void KeepBlock(absl::StatusOr<IterationBlock> block);

  const Options options_;
  // Blocks are counted from this iteration.
  const int64_t origin_;
  EventRecorder recorder_;
  bool is_recording_ = false;
  int64_t first_of_block_ = 0;
  // Every how many-th block is kept.
  int64_t spacing_ = 1;
  std::map<std::string, int32_t, std::less<>> index_of_name_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  IterationSample sample_;
};

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_ITERATION_SAMPLER_H_
