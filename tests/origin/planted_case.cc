#include "ott/tests/origin/planted_case.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/origin/origin.h"

namespace ott::origin {
namespace {

SumOrder AnotherOrder(uint64_t seed) {
  std::mt19937_64 random(seed);
  SumOrder order;
  while (order.num_parts == 1 && order.num_lanes == 1 && !order.from_last && !order.fused_multiply_add) {
    order.num_parts = 1 + static_cast<int>(random() % 4);
    order.num_lanes = random() % 2 == 0 ? 1 : 8;
    order.from_last = random() % 2 == 0;
    order.fused_multiply_add = random() % 2 == 0;
    order.ranks_from_last = random() % 2 == 0;
  }
  return order;
}

bool IsTruth(const OriginVerdict& verdict, const SimulatedTraining& training) {
  const Truth truth = TruthOf(training.fault);
  if (verdict.kind() != truth.kind) return false;
  if (training.fault == Fault::kNone) return true;
  const bool is_operation = std::find(truth.operations.begin(), truth.operations.end(),
                                      verdict.operation()) != truth.operations.end();
  const bool is_of_one_tensor =
      training.fault == Fault::kLearningRateOfOneTensor || training.fault == Fault::kMomentumOfOneTensor;
  const std::string& module = is_of_one_tensor ? training.fault_tensor : truth.module;
  if (!is_operation || (!module.empty() && verdict.module() != module)) return false;
  if (verdict.iteration() != training.fault_iteration) return false;
  return truth.one_rank ? verdict.ranks_size() == 1 && verdict.ranks(0) == 1
                        : verdict.ranks_size() == training.num_ranks;
}

}  // namespace

PlantedResult RunPlanted(const std::string& dir, const PlantedCase& planted) {
  SimulatedTraining training;
  training.seed = planted.seed;
  training.num_ranks = planted.seed % 3 == 0 ? 4 : 2;
  training.dtype = planted.dtype;
  training.not_logged = planted.not_logged;
  training.num_hidden = planted.num_hidden;
  const std::string runs = absl::StrCat(dir, "/", std::string(Name(planted.dtype)), "_", planted.seed, "_",
                                        planted.num_hidden, absl::StrJoin(planted.not_logged, "_"));
  absl::Status status;
  if (!IsRunDirectory(runs + "/reference")) status.Update(Train(training, runs + "/reference"));
  if (planted.perturbed && !IsRunDirectory(runs + "/perturbed")) {
    training.perturb_ulps = 1;
    status.Update(Train(training, runs + "/perturbed"));
    training.perturb_ulps = 0;
  }
  training.fault = planted.fault;
  training.fault_size = planted.size;
  training.fault_tensor = planted.fault_tensor;
  training.fault_iteration = planted.fault_iteration;
  if (planted.other_order) training.order = AnotherOrder(planted.seed);
  std::error_code error;
  std::filesystem::remove_all(runs + "/current", error);
  status.Update(Train(training, runs + "/current"));
  PlantedResult result;
  if (!status.ok()) {
    result.verdict = status;
    return result;
  }
  result.verdict =
      FindOrigin(runs + "/reference", runs + "/current", planted.perturbed ? runs + "/perturbed" : "");
  result.found = result.verdict.ok() && IsTruth(*result.verdict, training);
  return result;
}

}  // namespace ott::origin
