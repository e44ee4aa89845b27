// Trainings of other shapes than that of the example, simulated: what their ranks' stopwatches and kept
// iterations say, and what the job's own clock says with and without what is planted.

#ifndef OTT_TESTS_SHAPES_SIMULATED_TRAINING_H_
#define OTT_TESTS_SHAPES_SIMULATED_TRAINING_H_

#include <vector>

#include "ott/tests/shapes/shape.h"
#include "ott/tests/shapes/told.h"

namespace ott::shapes {

Loss LossOf(const Shape& shape, const std::vector<RankProgram>& programs);

// planted: the rank; -1: none.
Told RunAndAsk(const Shape& shape, int num_ranks, int seed, int planted);

Rates RatesOf(const Shape& shape, int num_ranks, bool is_planted, int num_runs);

}  // namespace ott::shapes

#endif  // OTT_TESTS_SHAPES_SIMULATED_TRAINING_H_
