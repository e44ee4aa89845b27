// A simulated training with a planted fault or none, judged.

#ifndef OTT_TESTS_ORIGIN_PLANTED_CASE_H_
#define OTT_TESTS_ORIGIN_PLANTED_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/dtype.h"
#include "ott/questions/origin/origin.pb.h"
#include "ott/tests/origin/simulated_training.h"

namespace ott::origin {

struct PlantedCase {
  DType dtype = DType::kFloat32;
  Fault fault = Fault::kNone;
  // 2 ranks, or 4 where three divides it.
  uint64_t seed = 1;
  // True if the run with the fault makes its sums otherwise, in one of many ways.
  bool other_order = false;
  // True if the verdict rests on a perturbed run.
  bool perturbed = true;
  // SimulatedTraining::not_logged.
  std::vector<std::string> not_logged;
  // SimulatedTraining::fault_size.
  double size = 2;
  // SimulatedTraining::num_hidden and fault_tensor.
  int num_hidden = 64;
  std::string fault_tensor = "fc1.bias";
  // SimulatedTraining::fault_iteration.
  int fault_iteration = 1;
};

struct PlantedResult {
  absl::StatusOr<OriginVerdict> verdict;
  // It names what has the fault, its iteration and its ranks; of no fault, nothing.
  bool found = false;
};

// Trains below `dir`: a reference and a perturbed run, unless they are there from an earlier call, and one
// with the fault.
PlantedResult RunPlanted(const std::string& dir, const PlantedCase& planted);

}  // namespace ott::origin

#endif  // OTT_TESTS_ORIGIN_PLANTED_CASE_H_
