// Plants faults in a small data-parallel training, one a run, and says whether the cross-check finds each at
// its iteration, on its rank, in its tensor and element; and that it reports none in clean runs.
//
//   mpirun -np 4 fault_table

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/check.h"
#include "ott/core/base/text_table.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/cross_check.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/mpi_communicator.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

constexpr int kNumIterations = 5;
constexpr int kFaultIteration = 3;
constexpr int kNumCleanRuns = 20;
constexpr int kAllRanks = -1;

Deadline Timeout() { return Deadline::After(std::chrono::seconds(60)); }

// A parameter, its gradient after reduction, and its momentum.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> weights;
  std::vector<float> gradient;
  std::vector<float> momentum;
};

struct Model {
  std::vector<Parameter> parameters;
  int64_t step = 0;

  explicit Model(int seed) {
    // The embedding spans several blocks of a digest.
    for (const auto& [name, shape] : std::vector<std::pair<std::string, std::vector<int64_t>>>{
             {"embedding", {600, 64}}, {"hidden", {64, 32}}, {"bias", {32}}, {"output", {32, 32}}}) {
      size_t size = 1;
      for (const int64_t extent : shape) size *= static_cast<size_t>(extent);
      Parameter parameter{name, shape, std::vector<float>(size), std::vector<float>(size),
                          std::vector<float>(size)};
      for (size_t i = 0; i < size; ++i) {
        parameter.weights[i] =
            name == "bias" ? 0.0f : 0.1f * std::sin(static_cast<float>(i * 7 + 13 * seed + 1));
      }
      parameters.push_back(std::move(parameter));
    }
  }

  Parameter& operator[](const std::string& name) {
    return *std::find_if(parameters.begin(), parameters.end(),
                         [&](const Parameter& of) { return of.name == name; });
  }
};

// The parts of one rank's iteration that a fault may change.
struct Step {
  bool reduce = true;
  float gradient_scale = 1;
  float learning_rate = 0.05f;
  int num_updates = 1;
};

struct Fault {
  std::string name;
  int rank;  // or kAllRanks
  // It is to be found here: the first tensor in order that differs, and the element, if it is one.
  std::string tensor;
  std::optional<int64_t> element;
  std::function<void(Step&)> change_step;
  // After the update; before: the model one iteration earlier.
  std::function<void(Model&, Model& before)> change_model;
  std::function<void(std::vector<NamedTensor>&)> change_tensors;
};

// Keeps some of the bits of a value, and flips some.
void ChangeBits(float& value, uint32_t kept, uint32_t flipped) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = (bits & kept) ^ flipped;
  std::memcpy(&value, &bits, sizeof(bits));
}
void FlipBit(float& value, int bit) { ChangeBits(value, ~0u, uint32_t{1} << bit); }

// A gradient that depends on the weights and on the rank's share of the data.
void Backward(int rank, int iteration, Model& model) {
  for (Parameter& parameter : model.parameters) {
    for (size_t i = 0; i < parameter.weights.size(); ++i) {
      const float data = std::sin(static_cast<float>(static_cast<int>(i) * 3 + 101 * rank + 17 * iteration));
      parameter.gradient[i] = parameter.weights[i] * 0.5f + 0.1f * data;
    }
    // One weight that is never trained, and stays 0.
    if (parameter.name == "bias") parameter.gradient[0] = 0;
  }
}

void Reduce(Communicator& ranks, const Step& step, Model& model) {
  const float scale = step.gradient_scale / static_cast<float>(ranks.size());
  for (Parameter& parameter : model.parameters) {
    const std::vector<float> own = parameter.gradient;
    OTT_CHECK(ranks.AllReduce(Reduction::kSum, absl::MakeSpan(parameter.gradient), Timeout()).ok())
        << "reduce";
    for (float& value : parameter.gradient) value *= scale;
    if (!step.reduce) parameter.gradient = own;
  }
}

void Update(const Step& step, Model& model) {
  for (int update = 0; update < step.num_updates; ++update) {
    for (Parameter& parameter : model.parameters) {
      for (size_t i = 0; i < parameter.weights.size(); ++i) {
        parameter.momentum[i] = 0.9f * parameter.momentum[i] + parameter.gradient[i];
        parameter.weights[i] -= step.learning_rate * parameter.momentum[i];
      }
    }
  }
  ++model.step;
}

Value Tree(const Model& model) {
  const auto view = [](const Parameter& parameter, const std::vector<float>& values) {
    return TensorView(values.data(), parameter.shape);
  };
  ValueMap tree;
  for (const Parameter& p : model.parameters) tree.Insert(p.name, view(p, p.weights));
  for (const Parameter& p : model.parameters) tree.Insert(p.name + "_gradient", view(p, p.gradient));
  for (const Parameter& p : model.parameters) tree.Insert(p.name + "_momentum", view(p, p.momentum));
  tree.Insert("step", TensorView(&model.step, {}));
  return tree;
}

// The first verdict of a run that is no pass.
struct Finding {
  int iteration = -1;
  CrossCheckVerdict verdict;
};

// Trains and checks every iteration, until the first verdict that is no pass. A reference run dumps instead.
std::optional<Finding> Train(Communicator& ranks, int seed, const Fault* fault, const std::string& reference,
                             bool is_reference) {
  CrossCheckConfig config;
  config.set_reference_run(reference);
  config.mutable_reference_tolerance()->set_atol(1e-6);
  const auto check = CrossCheck::Create(ranks, config).value();
  Model model(seed);
  for (int iteration = 0; iteration < kNumIterations; ++iteration) {
    const bool faulty = fault != nullptr && iteration == kFaultIteration &&
                        (fault->rank == kAllRanks || fault->rank == ranks.rank());
    Model before = model;
    Step step;
    if (faulty && fault->change_step) fault->change_step(step);
    Backward(ranks.rank(), iteration, model);
    Reduce(ranks, step, model);
    Update(step, model);
    if (faulty && fault->change_model) fault->change_model(model, before);
    const Value tree = Tree(model);
    std::vector<NamedTensor> tensors = ListTensors(tree);
    if (faulty && fault->change_tensors) fault->change_tensors(tensors);

    if (is_reference) {
      DumpContents contents;
      contents.tensors.tree = &tree;
      contents.tensors.format = [](std::string_view) { return DumpFormat::kBinary; };
      const absl::Status status =
          WriteDump(absl::StrCat(DumpsDirectory(reference, ranks.rank()), "/", iteration), contents);
      OTT_CHECK(status.ok()) << status;
      continue;
    }
    const CrossCheckVerdict replicas = *check->CheckReplicas(iteration, tensors);
    if (!Passed(replicas)) return Finding{iteration, replicas};
    const CrossCheckVerdict against = check->CheckReference(iteration, tree, nullptr);
    if (against.worst_outcome() != BITWISE_EQUAL) return Finding{iteration, against};
  }
  return std::nullopt;
}

std::string Locate(const Finding& finding) {
  const CrossCheckVerdict& verdict = finding.verdict;
  std::string text = absl::StrCat("iteration ", finding.iteration, ", ");
  if (verdict.mode() == REPLICAS) {
    absl::StrAppend(&text, verdict.has_majority()
                               ? absl::StrCat("rank ", absl::StrJoin(verdict.culprit_ranks(), ","))
                               : std::string("nobody"));
  } else {
    absl::StrAppend(&text, "against the reference");
  }
  absl::StrAppend(&text, ", ", verdict.tensor());
  if (verdict.differences_size() > 0) {
    const FirstDifference& first = verdict.differences(0);
    absl::StrAppend(&text, "[", absl::StrJoin(first.index(), ","), "] ", first.expected(), " -> ",
                    first.value());
    if (first.flipped_bits_size() == 1) absl::StrAppend(&text, ", bit ", first.flipped_bits(0));
  }
  return text;
}

bool IsRightlyLocated(const Fault& fault, const Finding& finding) {
  const CrossCheckVerdict& verdict = finding.verdict;
  if (finding.iteration != kFaultIteration || verdict.worst_outcome() != DIFFERENT) return false;
  if (fault.rank == kAllRanks) {
    return verdict.mode() == REFERENCE && verdict.tensor() == fault.tensor;
  }
  if (verdict.mode() != REPLICAS || verdict.tensor() != fault.tensor) return false;
  if (verdict.culprit_ranks_size() != 1 || verdict.culprit_ranks(0) != fault.rank) return false;
  return !fault.element ||
         (verdict.differences_size() == 1 && verdict.differences(0).element() == *fault.element);
}

Fault Flip(const std::string& what, int rank, const std::string& name, std::vector<float> Parameter::*values,
           int64_t element, int bit) {
  const std::string suffix = values == &Parameter::gradient   ? "_gradient"
                             : values == &Parameter::momentum ? "_momentum"
                                                              : "";
  Fault fault{what, rank, name + suffix, element, {}, {}, {}};
  fault.change_model = [=](Model& model, Model&) { FlipBit((model[name].*values)[element], bit); };
  return fault;
}

Fault InModel(const std::string& what, int rank, const std::string& tensor, std::optional<int64_t> element,
              std::function<void(Model&, Model&)> change) {
  return {what, rank, tensor, element, {}, std::move(change), {}};
}

// Changes the weights of one parameter.
Fault InWeights(const std::string& what, int rank, const std::string& name, std::optional<int64_t> element,
                const std::function<void(std::vector<float>&)>& change) {
  return InModel(what, rank, name, element, [=](Model& model, Model&) { change(model[name].weights); });
}

Fault InStep(const std::string& what, int rank, std::function<void(Step&)> change) {
  return {what, rank, "embedding", std::nullopt, std::move(change), {}, {}};
}

Fault InTensors(const std::string& what, int rank, const std::string& tensor,
                std::function<void(std::vector<NamedTensor>&)> change) {
  return {what, rank, tensor, std::nullopt, {}, {}, std::move(change)};
}

std::vector<Fault> AllFaults() {
  constexpr auto kWeights = &Parameter::weights;
  constexpr auto kGradient = &Parameter::gradient;
  constexpr auto kMomentum = &Parameter::momentum;
  static const double wider[32] = {};
  std::vector<Fault> faults = {
      Flip("sign of a weight", 1, "hidden", kWeights, 517, 31),
      Flip("highest exponent bit of a weight", 2, "hidden", kWeights, 0, 30),
      Flip("lowest exponent bit of a weight", 3, "hidden", kWeights, 2047, 23),
      Flip("highest mantissa bit of a weight", 0, "output", kWeights, 100, 22),
      Flip("lowest mantissa bit of a weight", 1, "output", kWeights, 1023, 0),
      Flip("lowest mantissa bit, first block", 2, "embedding", kWeights, 5, 0),
      Flip("lowest mantissa bit, last block", 3, "embedding", kWeights, 38399, 0),
      Flip("lowest mantissa bit of a bias", 0, "bias", kWeights, 31, 0),
      Flip("sign of a gradient", 1, "bias", kGradient, 7, 31),
      Flip("exponent of a gradient", 2, "output", kGradient, 64, 27),
      Flip("lowest mantissa bit of a gradient", 3, "hidden", kGradient, 1000, 0),
      Flip("sign of a momentum", 0, "embedding", kMomentum, 20000, 31),
      Flip("exponent of a momentum", 1, "bias", kMomentum, 3, 24),
      Flip("lowest mantissa bit of a momentum", 2, "output", kMomentum, 512, 0),
      InWeights("zero that turned negative", 3, "bias", 0, [](auto& weights) { weights[0] = -0.0f; }),
      InModel("step counter off by one", 1, "step", 0, [](Model& model, Model&) { ++model.step; }),
      InWeights("same bit in two elements (XOR sees nothing)", 2, "hidden", 10,
                [](auto& weights) { FlipBit(weights[10], 3), FlipBit(weights[40], 3); }),
      InWeights("two elements exchanged (a sum sees nothing)", 3, "output", 5,
                [](auto& weights) { std::swap(weights[5], weights[900]); }),
      InWeights("two blocks exchanged", 0, "embedding", 0,
                [](auto& weights) {
                  std::swap_ranges(weights.begin(), weights.begin() + 16384, weights.begin() + 16384);
                }),
      InWeights("a row reversed", 1, "hidden", 32,
                [](auto& weights) { std::reverse(weights.begin() + 32, weights.begin() + 64); }),
      InWeights("a matrix transposed", 2, "output", 1,
                [](auto& weights) {
                  for (int i = 0; i < 32; ++i) {
                    for (int j = 0; j < i; ++j) std::swap(weights[i * 32 + j], weights[j * 32 + i]);
                  }
                }),
      InModel("weights and momentum swapped", 3, "hidden", 0,
              [](Model& model, Model&) { std::swap(model["hidden"].weights, model["hidden"].momentum); }),
      InModel("gradient and momentum swapped", 0, "output_gradient", 0,
              [](Model& model, Model&) { std::swap(model["output"].gradient, model["output"].momentum); }),
      InModel("one tensor stale", 1, "hidden", 0,
              [](Model& model, Model& before) { model["hidden"].weights = before["hidden"].weights; }),
      InModel("all weights stale", 2, "embedding", 0,
              [](Model& model, Model& before) { model.parameters = before.parameters; }),
      InModel("stale gradient", 3, "bias_gradient", 1,
              [](Model& model, Model& before) { model["bias"].gradient = before["bias"].gradient; }),
      InWeights("a shard zeroed", 0, "embedding", 9600,
                [](auto& weights) { std::fill(weights.begin() + 9600, weights.begin() + 19200, 0.0f); }),
      InWeights("a tensor zeroed", 1, "output", 0, [](auto& weights) { weights.assign(1024, 0.0f); }),
      InModel("momentum lost", 2, "embedding_momentum", 0,
              [](Model& model, Model&) {
                for (Parameter& parameter : model.parameters)
                  parameter.momentum.assign(parameter.momentum.size(), 0.0f);
              }),
      InWeights("NaN in a weight", 3, "hidden", 77, [](auto& weights) { weights[77] = std::nanf(""); }),
      InModel(
          "infinity in a gradient", 0, "output_gradient", 8,
          [](Model& model, Model&) { model["output"].gradient[8] = std::numeric_limits<float>::infinity(); }),
      InWeights("a tensor rounded to bfloat16", 1, "hidden", std::nullopt,
                [](auto& weights) {
                  for (float& weight : weights) ChangeBits(weight, 0xffff0000u, 0);
                }),
      InStep("update skipped", 2, [](Step& step) { step.num_updates = 0; }),
      InStep("update applied twice", 3, [](Step& step) { step.num_updates = 2; }),
      InStep("gradient not reduced", 0, [](Step& step) { step.reduce = false; }),
      InStep("sum instead of mean", 1, [](Step& step) { step.gradient_scale = 4; }),
      InStep("learning rate 0.01 % too high", 2, [](Step& step) { step.learning_rate *= 1.0001f; }),
      InTensors("another dtype", 3, "bias",
                [](std::vector<NamedTensor>& tensors) { tensors[2].tensor.view = TensorView(wider, {32}); }),
      InTensors(
          "another shape", 0, "hidden",
          [](std::vector<NamedTensor>& tensors) {
            tensors[1].tensor.view = TensorView(tensors[1].tensor.view.data(), DType::kFloat32, {32, 64});
          }),
      InTensors("a tensor missing", 1, "bias",
                [](std::vector<NamedTensor>& tensors) { tensors.erase(tensors.begin() + 1); }),
      InTensors("a tensor renamed", 2, "Output",
                [](std::vector<NamedTensor>& tensors) { tensors[3].path = "Output"; }),
      InStep("sum instead of mean, all ranks", kAllRanks, [](Step& step) { step.gradient_scale = 4; }),
      InStep("learning rate 1 % too high, all ranks", kAllRanks,
             [](Step& step) { step.learning_rate *= 1.01f; }),
      InWeights("NaN in a weight, all ranks", kAllRanks, "hidden", std::nullopt,
                [](auto& weights) { weights[77] = std::nanf(""); }),
      InWeights("a tensor zeroed, all ranks", kAllRanks, "output", std::nullopt,
                [](auto& weights) { weights.assign(1024, 0.0f); }),
  };
  return faults;
}

// A directory that all ranks see.
std::string SharedDirectory(Communicator& ranks) {
  std::string dir;
  if (ranks.rank() == 0) {
    const char* base = std::getenv("TEST_TMPDIR");
    dir = absl::StrCat(base != nullptr ? base : "/tmp", "/fault_table.XXXXXX");
    OTT_CHECK(mkdtemp(dir.data()) != nullptr) << dir;
  }
  OTT_CHECK(ranks.Broadcast(0, &dir, Timeout()).ok()) << "broadcast";
  return dir;
}

void MakeReference(Communicator& ranks, int seed, const std::string& dir) {
  if (ranks.rank() == 0) {
    RunInfo info;
    info.set_world_size(ranks.size());
    std::filesystem::create_directories(dir);
    OTT_CHECK(WriteRunInfo(dir, info).ok()) << dir;
  }
  OTT_CHECK(ranks.Barrier(Timeout()).ok()) << "barrier";
  std::filesystem::create_directories(DumpsDirectory(dir, ranks.rank()));
  Train(ranks, seed, nullptr, dir, true);
}

bool PlantAll(Communicator& ranks) {
  const std::string dir = SharedDirectory(ranks);
  const std::vector<Fault> faults = AllFaults();
  TextTable table({"planted fault", "rank", "located", "found"}, TextTable::LastColumn::kLeft);
  MakeReference(ranks, 0, dir + "/0");
  int num_located = 0;
  for (const Fault& fault : faults) {
    const std::optional<Finding> finding = Train(ranks, 0, &fault, dir + "/0", false);
    const bool located = finding && IsRightlyLocated(fault, *finding);
    num_located += located;
    table.AddRow({fault.name, fault.rank == kAllRanks ? "all" : absl::StrCat(fault.rank),
                  located ? "yes" : "NO", finding ? Locate(*finding) : "nothing"});
  }
  int num_false = 0;
  for (int seed = 1; seed <= kNumCleanRuns; ++seed) {
    const std::string reference = absl::StrCat(dir, "/", seed);
    MakeReference(ranks, seed, reference);
    num_false += Train(ranks, seed, nullptr, reference, false).has_value();
  }
  OTT_CHECK(ranks.Barrier(Timeout()).ok()) << "barrier";
  if (ranks.rank() == 0) {
    std::filesystem::remove_all(dir);
    std::cout << table.ToString() << num_located << " of " << faults.size()
              << " planted faults found at their iteration and rightly located, " << num_false << " of "
              << kNumCleanRuns << " clean runs reported" << std::endl;
  }
  return num_located == static_cast<int>(faults.size()) && num_false == 0;
}

}  // namespace
}  // namespace ott

int main() {
  const auto ranks = ott::CreateMpiCommunicator().value();
  OTT_CHECK(ranks->size() >= 4) << "fault_table needs 4 ranks";
  return ott::PlantAll(*ranks) ? 0 : 1;
}
