// Mistakes that are made on purpose, as they are made in training programs, to see who finds them.

#ifndef OTT_EXAMPLES_TRANSFORMER_PLANT_H_
#define OTT_EXAMPLES_TRANSFORMER_PLANT_H_

#include <cstdint>

namespace ott::examples {

struct Plant {
  enum class Kind {
    kNone,
    // On one rank.
    kWrongShard,         // reads its neighbour's part of the batch
    kOwnDropout,         // draws other random numbers
    kOtherLearningRate,  // 1 % more
    kSkippedUpdate,      // in one iteration
    kSlowRank,           // sleeps in each forward pass
    kSlowPart,           // attention's forward pass is done three times
    kSkippedCollective,  // does not come to an all-reduce: the job stands
    // On all.
    kMissingAverage,  // of one gradient over the data parallel ranks
    kBFloat16,        // rounds one layer's activations
    kWrongMask,       // attention sees one position too many
  };

  // Returns true if this mistake is made in this iteration on this rank.
  bool Hits(Kind of, int64_t at, int on_rank) const {
    const bool everywhere =
        kind == Kind::kMissingAverage || kind == Kind::kBFloat16 || kind == Kind::kWrongMask;
    return of == kind && at >= iteration && (everywhere || on_rank == rank);
  }

  Kind kind = Kind::kNone;
  int rank = 2;
  int64_t iteration = 4;  // from this one on
};

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRANSFORMER_PLANT_H_
