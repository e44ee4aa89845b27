// A simulated training with a planted fault or none, judged.

#ifndef OTT_TOOLS_ORIGIN_PLANTED_CASE_H_
#define OTT_TOOLS_ORIGIN_PLANTED_CASE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "ott/core/tensor/dtype.h"
#include "ott/dist/origin/origin.pb.h"
#include "tools/origin/simulated_training.h"

namespace ott::origin {

struct PlantedResult {
  absl::StatusOr<OriginVerdict> verdict;
  // It names what has the fault, its iteration and its ranks; of no fault, nothing.
  bool found = false;
};

// Trains below `dir`: a reference and a perturbed run, unless they are there from an earlier call, and one
// with the fault, of 2 ranks, or 4 for seeds that three divides. other_order: the last of them makes its sums
// otherwise, in one of many ways. perturbed: whether the verdict rests on the perturbed run.
PlantedResult RunPlanted(const std::string& dir, DType dtype, Fault fault, uint64_t seed, bool other_order,
                         bool perturbed = true);

}  // namespace ott::origin

#endif  // OTT_TOOLS_ORIGIN_PLANTED_CASE_H_
