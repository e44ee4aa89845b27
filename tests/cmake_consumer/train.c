/* A training program in C. */

#include <math.h>
#include <stdint.h>

#include "observe.h"

int main(void) {
  float weights[6] = {1, 2, 3, 4, 5, 6};
  const int64_t extents[2] = {2, 3};
  if (observe_start() != 0) return 1;
  for (int iteration = 0; iteration < 20; ++iteration) {
    observe_begin("step");
    for (int i = 0; i < 6; ++i) weights[i] = sqrtf(weights[i]);
    observe_end("step");
    if (observe_tensor("weights.w1", weights, 2, extents) != 0) return 1;
    if (observe_finish_iteration() != 0) return 1;
  }
  return observe_finish() == 0 ? 0 : 1;
}
