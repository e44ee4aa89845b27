// Blocks of a rank's iterations, cut into stretches of time.

#ifndef OTT_QUESTIONS_SAVED_BLOCK_PIECES_H_
#define OTT_QUESTIONS_SAVED_BLOCK_PIECES_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "ott/questions/saved/iteration_sample.pb.h"

namespace ott::saved {

// A stretch of one rank's time, from nanoseconds to nanoseconds.
struct Piece {
  // An index in the names of all ranks; -1: outside all measurements.
  int32_t name = -1;
  // For ranks' waiting for each other: how many of the name the iteration had before; -1: it is work.
  int32_t ordinal = -1;
  int64_t iteration = 0;
  int64_t start = 0;
  int64_t end = 0;
};

// Identifies a synchronization: its name, its iteration, and how many of that name the iteration had before.
using SyncKey = std::tuple<int32_t, int64_t, int32_t>;
inline SyncKey KeyOf(const Piece& piece) { return {piece.name, piece.iteration, piece.ordinal}; }

// Returns INVALID_ARGUMENT, naming the rank, if its names or blocks cannot be those of a run.
absl::Status CheckSample(const IterationSample& sample);

// Cuts a block without gaps, and in order; work into stretches by the innermost measurement that runs. names:
// by index of the sample's names. REQUIRES: CheckSample() passes
std::vector<Piece> CutBlock(const IterationSample& sample, const IterationBlock& block,
                            const std::vector<int32_t>& names);

// Returns for how many nanoseconds others that began or ended inside of each collective measurement ran
// inside of it, by index of the sample's names. Each moment counts for one. CutBlock() takes that for
// waiting, and it may be work beside a collective. REQUIRES: CheckSample() passes
std::vector<int64_t> TimeInsideOfCollectives(const IterationSample& sample, const IterationBlock& block);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_BLOCK_PIECES_H_
