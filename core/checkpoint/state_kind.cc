#include "ott/core/checkpoint/state_kind.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/numbers.h"

namespace ott {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

StateKind KindOfOptimizerEntry(std::string_view path, std::string_view last) {
  if (IsOneOf(last, {"step", "steps", "num_steps"})) return StateKind::kStep;
  if (Contains(path, "scaler") || Contains(path, "loss_scale") || last == "overflow")
    return StateKind::kScaler;
  if (Contains(path, "param_groups") || Contains(path, "__class__") || last == "param_state_sharding_type")
    return StateKind::kHyperparameters;
  if (Contains(path, "master") || Contains(path, "fp32_from") || Contains(path, "fp32_flat_groups") ||
      Contains(path, "fp32_param") || Contains(path, ".state.param.") || IsOneOf(last, {"param", "fp32"})) {
    return StateKind::kMasterWeights;
  }
  return StateKind::kMoments;
}

}  // namespace

std::string_view Name(StateKind kind) {
  constexpr std::array<std::string_view, kNumStateKinds> kNames = {
      "weights", "optimizer moments", "optimizer step", "master weights", "hyperparameters", "schedule",
      "scaler",  "random numbers",    "data position",  "configuration",  "other",
  };
  return kNames[static_cast<size_t>(kind)];
}

StateKind StateKindOf(std::string_view given, bool is_tensor) {
  std::string path(given);
  for (char& c : path) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const std::string_view last = std::string_view(path).substr(path.rfind('.') + 1);
  // Moments are known by their names wherever they are.
  if (IsOneOf(last,
              {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "grad_avg"})) {
    return StateKind::kMoments;
  }
  // The components from the left: the first that says something counts.
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = std::string_view(path).substr(begin, end - begin);
    begin = end + 1;
    // Megatron's file of all that a rank has.
    if (part == "model_optim_rng") continue;
    if (Contains(part, "rng") || Contains(part, "random") || part == "generator") return StateKind::kRandom;
    if (Contains(part, "scheduler") || Contains(part, "lr_sched")) return StateKind::kSchedule;
    if (Contains(part, "scaler") || Contains(part, "loss_scale") ||
        IsOneOf(part, {"native_amp_scaling_state", "mixedprecision"})) {
      return StateKind::kScaler;
    }
    if (IsOneOf(part, {"optim", "osd", "distrib_optim"}) || Contains(part, "optimizer"))
      return KindOfOptimizerEntry(path, last);
    if (Contains(part, "sampler") || Contains(part, "dataloader") || Contains(part, "data_iter") ||
        Contains(part, "dataset") || part == "dl_state_dict" || Contains(part, "consumed_") ||
        (!is_tensor &&
         IsOneOf(part, {"epoch", "global_step", "global_steps", "global_samples", "iteration", "iter",
                        "loops", "step", "steps", "skipped_steps", "trainer_state", "tokens"}))) {
      return StateKind::kData;
    }
    if (IsOneOf(part, {"args", "config", "configuration", "generation_config", "hparams", "hyper_parameters",
                       "training_args", "ds_config", "ds_version", "checkpoint_version",
                       "pytorch-lightning_version", "dp_world_size", "mp_world_size"})) {
      return StateKind::kConfiguration;
    }
    if (IsOneOf(part, {"model", "module", "state_dict", "model_state_dict"})) return StateKind::kWeights;
  }
  return is_tensor || last == "num_batches_tracked" ? StateKind::kWeights : StateKind::kOther;
}

std::optional<int> RankOfPath(std::string_view path) {
  while (!path.empty()) {
    const std::string part(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    for (const std::string_view prefix :
         {"rng_state_", "rng_states_", "random_states_", "mp_rank_", "rank_"}) {
      if (part.rfind(prefix, 0) != 0) continue;
      const std::string number = part.substr(prefix.size(), part.find('_', prefix.size()) - prefix.size());
      int rank = 0;
      if (absl::SimpleAtoi(number, &rank)) return rank;
    }
  }
  return std::nullopt;
}

}  // namespace ott
