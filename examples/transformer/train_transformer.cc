// Trains a small transformer on a text, data, tensor and pipeline parallel, instrumented as a training
// program is:
//
//   mpirun -np 4 train_transformer --run out/data4
//   mpirun -np 4 train_transformer --run out/data2_tensor2 --data_parallel 2 --tensor_parallel 2
//   mpirun -np 4 train_transformer --run out/wrong --reference out/data4 --plant wrong_mask
//
// README.md says what is planted and who finds it.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "examples/transformer/grid.h"
#include "examples/transformer/plant.h"
#include "examples/transformer/text.h"
#include "examples/transformer/transformer.h"
#include "ott/config.h"
#include "ott/mpi_communicator.h"
#include "ott/nvtx_range_wrapper.h"
#include "ott/op_log.h"
#include "ott/op_range.h"
#include "ott/status_macros.h"
#include "ott/stopwatch.h"
#include "ott/tensor_dumper.h"
#include "ott/training_run.h"

namespace ott::examples {
namespace {

struct Flags {
  std::string text = "/usr/share/common-licenses/GPL-3";
  int data_parallel = 0;  // 0: what is left
  int pipeline_parallel = 1;
  int tensor_parallel = 1;
  int64_t iterations = 8;
  int64_t batch = 8;
  uint64_t seed = 1;
  float learning_rate = 3e-3f;
  ModelSize model;
  std::string run;
  std::string reference;
  double hang_after_seconds = 0;
  bool op_log = false;
  Plant plant;
};

MeshAxis* AddAxis(const char* name, const Axis& axis, DeviceMesh* mesh) {
  MeshAxis* const added = mesh->add_axes();
  added->set_name(name);
  added->set_size(axis.size);
  return added;
}

// The collective of the ranks along an axis.
void AddCollective(const char* measurement, const char* name, const Axis& axis, StopwatchConfig* stopwatch) {
  if (axis.size == 1) return;
  stopwatch->add_collective_measurements(measurement);
  CollectiveGroups& groups = *stopwatch->add_collective_groups();
  groups.add_measurements(measurement);
  groups.add_along(name);
}

// Sets up once what a training program needs. Nothing else in this folder knows what is switched on.
Config MakeConfig(const Flags& flags, const Grid& grid) {
  Config config;
  config.set_run_dir(flags.run);
  StopwatchConfig& stopwatch = *config.mutable_stopwatch();
  stopwatch.set_num_warmup_iters(2);
  stopwatch.add_collective_measurements("sum_loss");
  DeviceMesh& mesh = *config.add_mesh();
  AddAxis("data", grid.data, &mesh);
  AddAxis("pipeline", grid.pipeline, &mesh)->set_own_tensors(true);
  AddAxis("tensor", grid.tensor, &mesh);
  AddCollective("sum_parts", "tensor", grid.tensor, &stopwatch);
  AddCollective("receive", "pipeline", grid.pipeline, &stopwatch);
  AddCollective("average_gradients", "data", grid.data, &stopwatch);
  stopwatch.add_work_differs_along("pipeline");
  if (flags.hang_after_seconds > 0) {
    config.mutable_hang()->set_after_seconds(flags.hang_after_seconds);
    config.mutable_hang()->set_reaction(HangConfig::REACTION_ABORT);
  }
  if (flags.run.empty()) return config;
  config.mutable_dump()->mutable_iterations()->set_every(1);
  if (flags.op_log) config.mutable_op_log()->mutable_iterations()->set_every(1);
  // Ranks hold the same tensors where they are all data parallel; `ott crosscheck --layout` compares others.
  if (grid.data.size < grid.size()) return config;
  CrossCheckConfig& cross_check = *config.mutable_cross_check();
  cross_check.mutable_iterations()->set_every(1);
  for (const char* const paths : {"loss", "gradients.*", "optimizer.*", "weights.*"}) {
    cross_check.add_replicated(paths);
  }
  cross_check.set_reference_run(flags.reference);
  return config;
}

class Trainer {
 public:
  Trainer(const Flags& flags, const Grid& grid, std::string text, Transformer model)
      : flags_(flags), grid_(grid), text_(std::move(text)), model_(std::move(model)) {}

  // Weights that differ by rounding, where the configuration says so: what that grows to is no error.
  absl::Status OfferWeights() {
    for (Parameter& parameter : model_.parameters()) {
      Matrix& value = parameter.value;
      OTT_RETURN_IF_ERROR(Perturbation::Offer(absl::StrCat("weights.", parameter.name), value.data.data(),
                                              {value.rows, value.columns}));
    }
    return absl::OkStatus();
  }

  // Returns the loss over the batch of all ranks.
  absl::StatusOr<float> Iterate(int64_t iteration) {
    OTT_NVTX_SCOPE("iteration");
    const Batch batch = Draw(iteration);
    const float my_loss = model_.Forward(batch, iteration);
    model_.Backward();
    const float loss = SumLoss(my_loss);
    model_.AverageGradients();
    model_.Step(flags_.learning_rate);
    OTT_RETURN_IF_ERROR(model_.dump_status());
    return loss;
  }

 private:
  Batch Draw(int64_t iteration) {
    OTT_STOPWATCH_SCOPE("data");
    int part = grid_.data.position;
    if (flags_.plant.Hits(Plant::Kind::kWrongShard, iteration, grid_.rank()))
      part = (part + 1) % grid_.data.size;
    Batch batch =
        DrawBatch(text_, flags_.model.context, flags_.batch, flags_.seed, iteration, part, grid_.data.size);
    const TensorView tokens(batch.tokens.data(), {batch.num_sequences, flags_.model.context});
    OTT_OP_RANGE(op, OpRange::Load("batch"));
    op.Outputs(tokens);
    Dump("data.tokens", tokens);
    return batch;
  }

  // The mean over data parallel ranks; the other ranks have no part in it.
  float SumLoss(float my_loss) {
    OTT_STOPWATCH_SCOPE("sum_loss");
    OTT_OP_RANGE(op, OpRange::Collective("sum_loss"), {TensorView(&my_loss, {})});
    const bool counts = grid_.is_last_stage() && grid_.tensor.position == 0;
    float loss = counts ? my_loss / static_cast<float>(grid_.data.size) : 0;
    MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    op.Outputs(TensorView(&loss, {}));
    Dump("loss", TensorView(&loss, {}));
    return loss;
  }

  static void Dump(const char* path, const TensorView& tensor) {
    TensorDumper::RunIfEnabled([&](TensorDumper& dumper) {
      if (const absl::Status status = dumper.AddTensorData(path, tensor); !status.ok()) {
        std::fprintf(stderr, "%s\n", status.ToString().c_str());
      }
    });
  }

  const Flags& flags_;
  const Grid& grid_;
  const std::string text_;
  Transformer model_;
};

absl::StatusOr<Config> ChooseConfig(const Flags& flags, const Grid& grid) {
  if (std::getenv("OTT_CONFIG") == nullptr) return MakeConfig(flags, grid);
  return LoadConfigFromEnvironment();
}

// The exit code: 0 if all went well, 1 if ranks or reference disagree.
absl::StatusOr<int> Train(Flags flags) {
  int world_size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  if (flags.data_parallel == 0) {
    const int64_t others = int64_t{flags.pipeline_parallel} * flags.tensor_parallel;
    flags.data_parallel = static_cast<int>(world_size / others);
  }
  OTT_ASSIGN_OR_RETURN(const Grid grid,
                       Grid::Create(flags.data_parallel, flags.pipeline_parallel, flags.tensor_parallel));
  if (flags.batch % grid.data.size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch ", flags.batch, " is no multiple of ", grid.data.size, " data parallel ranks"));
  }
  OTT_ASSIGN_OR_RETURN(std::string text, ReadText(flags.text, flags.model.context + 1));
  OTT_ASSIGN_OR_RETURN(Transformer model, Transformer::Create(flags.model, grid, flags.seed, flags.plant));
  Trainer trainer(flags, grid, std::move(text), std::move(model));

  OTT_ASSIGN_OR_RETURN(const Config config, ChooseConfig(flags, grid));
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> ranks, CreateMpiCommunicator());
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingRun> run, TrainingRun::Start(*ranks, config));
  OTT_RETURN_IF_ERROR(trainer.OfferWeights());
  for (int64_t iteration = 0; iteration < flags.iterations; ++iteration) {
    OTT_ASSIGN_OR_RETURN(const float loss, trainer.Iterate(iteration));
    OTT_RETURN_IF_ERROR(run->FinishIter());
    if (grid.rank() == 0 && (iteration + 1) % 10 == 0) {
      std::fprintf(stderr, "iteration %lld/%lld  loss %.4f\n", static_cast<long long>(iteration + 1),
                   static_cast<long long>(flags.iterations), static_cast<double>(loss));
    }
  }
  OTT_RETURN_IF_ERROR(run->Finish());
  return run->diverged() ? 1 : 0;
}

// Sets *flags; the exit code of the program if it is to end here.
std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  CLI::App app("Trains a small transformer on a text, on all ranks of an MPI job.");
  const CLI::Range positive(1, std::numeric_limits<int>::max());
  app.add_option("--text", flags->text, "File whose bytes are the tokens")->capture_default_str();
  app.add_option("--data_parallel", flags->data_parallel, "Default: the ranks that the others leave");
  app.add_option("--pipeline_parallel", flags->pipeline_parallel)->check(positive);
  app.add_option("--tensor_parallel", flags->tensor_parallel)->check(positive);
  app.add_option("--iterations", flags->iterations)->check(positive)->capture_default_str();
  app.add_option("--batch", flags->batch, "Sequences an iteration, over all ranks")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--layers", flags->model.layers)->check(positive)->capture_default_str();
  app.add_option("--width", flags->model.width)->check(positive)->capture_default_str();
  app.add_option("--heads", flags->model.heads)->check(positive)->capture_default_str();
  app.add_option("--hidden", flags->model.hidden)->check(positive)->capture_default_str();
  app.add_option("--context", flags->model.context)->check(positive)->capture_default_str();
  app.add_option("--dropout", flags->model.dropout)->check(CLI::Range(0.0, 0.9))->capture_default_str();
  app.add_option("--learning_rate", flags->learning_rate)->capture_default_str();
  app.add_option("--seed", flags->seed)->capture_default_str();
  app.add_option("--run", flags->run, "Run directory to write");
  app.add_option("--reference", flags->reference, "Run directory to compare with while training");
  app.add_option("--hang_after", flags->hang_after_seconds,
                 "Say who is to blame after so many seconds, and end");
  app.add_flag("--op_log", flags->op_log, "Log what operations read and write, for `ott origin`");
  using Kind = Plant::Kind;
  const std::map<std::string, Kind> kinds = {{"none", Kind::kNone},
                                             {"wrong_shard", Kind::kWrongShard},
                                             {"own_dropout", Kind::kOwnDropout},
                                             {"other_learning_rate", Kind::kOtherLearningRate},
                                             {"skipped_update", Kind::kSkippedUpdate},
                                             {"slow_rank", Kind::kSlowRank},
                                             {"slow_part", Kind::kSlowPart},
                                             {"skipped_collective", Kind::kSkippedCollective},
                                             {"missing_average", Kind::kMissingAverage},
                                             {"bfloat16", Kind::kBFloat16},
                                             {"wrong_mask", Kind::kWrongMask}};
  app.add_option("--plant", flags->plant.kind, "A mistake to make")
      ->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--plant_rank", flags->plant.rank, "Where, if on one rank")->capture_default_str();
  app.add_option("--plant_iteration", flags->plant.iteration, "From when on")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

}  // namespace
}  // namespace ott::examples

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  ott::examples::Flags flags;
  if (const std::optional<int> code = ott::examples::ParseFlags(argc, argv, &flags)) {
    MPI_Finalize();
    return *code;
  }
  const absl::StatusOr<int> code = ott::examples::Train(flags);
  if (!code.ok()) {
    std::fprintf(stderr, "train_transformer: %s\n", code.status().ToString().c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return *code;
}
