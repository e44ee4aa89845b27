// Begins samples of iterations for tests of what reads them.

#ifndef OTT_QUESTIONS_SAVED_ITERATION_SAMPLE_FOR_TEST_H_
#define OTT_QUESTIONS_SAVED_ITERATION_SAMPLE_FOR_TEST_H_

#include "ott/questions/saved/iteration_sample.pb.h"

namespace ott::saved {

// Returns a sample without iterations, of a rank that works (name 0) and then reduces with all others (name
// 1).
inline IterationSample WorkAndReduce(int rank, int world_size) {
  IterationSample sample;
  sample.set_rank(rank);
  sample.set_world_size(world_size);
  sample.set_observer(-1);
  for (const bool is_collective : {false, true}) {
    sample.add_names(is_collective ? "reduce" : "work");
    sample.add_collective(is_collective);
    sample.add_group();
  }
  return sample;
}

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_ITERATION_SAMPLE_FOR_TEST_H_
