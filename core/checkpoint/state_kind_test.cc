#include "ott/core/checkpoint/state_kind.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(StateKind, NamesOfFrameworksAreKnown) {
  // With a "!" it is no tensor.
  const std::pair<const char*, std::vector<const char*>> names[] = {
      {"weights",
       {"model.layers.0.weight", "layers.0.weight", "x.num_batches_tracked!", "module.epoch!",
        "mp_rank_00.model_optim_rng.model.decoder.final_layernorm.weight", "epoch"}},
      {"optimizer moments", {"optimizer.state.0.exp_avg", "X.EXP_AVG", "model.square_avg"}},
      {"optimizer step", {"OPTIMIZER.STATE.0.STEP!", "osd.x.steps", "optim.num_steps"}},
      {"master weights",
       {"mp_rank_00.distrib_optim.0.float32.param", "optimizer.master.0", "optimizer.fp32_from_fp16.0",
        "optimizer.fp32_flat_groups.0", "optimizer.fp32_param.0", "optimizer.state.param.0",
        "optimizer.0.fp32"}},
      {"hyperparameters",
       {"optimizer.param_groups.0.lr!", "optimizer.__class__!", "optimizer.param_state_sharding_type!",
        "mp_rank_00.model_optim_rng.optimizer.param_groups.0.lr!"}},
      {"schedule", {"scheduler.last_epoch!", "lr_sched.x"}},
      {"scaler",
       {"scaler.scale!", "optimizer.overflow!", "optimizer.grad_scaler.x", "optimizer.loss_scale",
        "native_amp_scaling_state.scale!", "mixedprecision.x", "loss_scale_window!"}},
      {"random numbers",
       {"rng_state.torch", "generator.x", "random_states.x",
        "mp_rank_00.model_optim_rng.rng_state.0.torch_rng_state"}},
      {"data position",
       {"epoch!", "mp_rank_00.model_optim_rng.iteration!", "sampler.x", "dataloader.x", "data_iter_0.x",
        "train_dataset.x", "dl_state_dict.x", "consumed_samples"}},
      {"configuration", {"args.hidden_size!", "ARGS.x!", "config.x"}},
      {"other", {"note!", "generators!", "[rgs.x!", "@rgs.x!"}}};
  for (const auto& [kind, paths] : names) {
    for (const std::string path : paths) {
      const bool is_tensor = path.back() != '!';
      EXPECT_EQ(Name(StateKindOf(is_tensor ? path : path.substr(0, path.size() - 1), is_tensor)), kind)
          << path;
    }
  }
  EXPECT_EQ(RankOfPath("a.rank_4"), 4);
  EXPECT_EQ(RankOfPath("rng_state_x.rng_states_5"), 5);
  EXPECT_EQ(RankOfPath("random_states_3.torch_manual_seed"), 3);
  EXPECT_EQ(RankOfPath("mp_rank_02_001.model_optim_rng.rng_state"), 2);
  EXPECT_EQ(RankOfPath("rng_state.torch"), std::nullopt);
}

}  // namespace
}  // namespace ott
