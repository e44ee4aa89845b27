// Data-parallel training of a small network on handwritten digits, instrumented with every helper:
//
//   mpirun -np 4 train_digits --run out/reference
//   mpirun -np 4 train_digits --run out/optimized --reference out/reference --kernel optimized
//   mpirun -np 4 train_digits --run out/device --device --nccl
//
// The training itself is plain C++ over MPI, or with --device CUDA, whose gradients MPI sums, or with --nccl
// NCCL. What observes it is configured in MakeConfig, or by OTT_CONFIG.

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "examples/train_digits/device_mlp.h"
#include "examples/train_digits/digits.h"
#include "examples/train_digits/mlp.h"
#include "ott/config.h"
#include "ott/core/base/file.h"
#include "ott/mpi_communicator.h"
#include "ott/nccl_communicator.h"
#include "ott/nvtx_range_wrapper.h"
#include "ott/op_log.h"
#include "ott/op_range.h"
#include "ott/status_macros.h"
#include "ott/stopwatch.h"
#include "ott/tensor_dumper.h"
#include "ott/training_run.h"

namespace ott::examples {
namespace {

// One bit of one parameter is flipped on one rank, as a faulty memory would do it.
struct Fault {
  int rank = -1;
  int64_t iteration = 0;
  std::string tensor;
  int64_t element = 0;
  int bit = 0;
};

// One rank, or all of them for a negative one, is held up in what is measured as `part`: it sleeps.
struct Delay {
  int rank = -1;
  double milliseconds = 0;
  std::string part;
  // In every so many-th iteration.
  int64_t every = 1;
  // Not so long, but up to twice as long, at random.
  bool uneven = false;
  // On a CPU, instead of sleeping.
  bool busy = false;
  // In the second half of the run alone.
  bool late = false;
};

// Computes until this thread has had a CPU for so long.
void ComputeFor(std::chrono::nanoseconds time) {
  const auto cpu_time = [] {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  for (const auto begin = cpu_time(); cpu_time() - begin < time;) {
  }
}

struct Flags {
  std::string data = "examples/train_digits/data/digits.csv.gz";
  int64_t iterations = 200;
  int64_t batch = 128;
  int hidden = 64;
  uint64_t seed = 1;
  Kernel kernel = Kernel::kReference;
  // The mathematics run on a device, and NCCL sums gradients there.
  bool device = false;
  bool nccl = false;
  std::string run;
  std::string reference;
  // Iterations between dumps and cross-checks.
  int64_t every = 100;
  bool observe = true;
  // Rank 0 writes here the weights it ends with; empty: nowhere.
  std::string weights;
  Fault fault;
  std::vector<Delay> delays;
};

// Sets up once, in main, what a training program needs. Nothing else in this file knows what is switched on.
Config MakeConfig(const Flags& flags) {
  Config config;
  config.set_run_dir(flags.run);
  StopwatchConfig& stopwatch = *config.mutable_stopwatch();
  stopwatch.set_num_warmup_iters(5);
  stopwatch.add_collective_measurements("sum_loss");
  stopwatch.add_collective_measurements("allreduce");
  // Waits for the training's stream alone: not for what NCCL gathers beside it.
  if (flags.device) stopwatch.set_device_sync(DEVICE_SYNC_STREAM);
  if (flags.run.empty()) return config;
  config.mutable_dump()->mutable_iterations()->set_every(flags.every);
  // With the iteration after, in which the weights of a check are read.
  for (int64_t iteration = 0; iteration < flags.iterations; iteration += flags.every) {
    IterationRange& logged = *config.mutable_op_log()->mutable_iterations()->add_ranges();
    logged.set_begin(iteration);
    logged.set_end(iteration + 2);
  }
  CrossCheckConfig& cross_check = *config.mutable_cross_check();
  cross_check.mutable_iterations()->set_every(flags.every);
  cross_check.set_reference_run(flags.reference);
  cross_check.mutable_reference_tolerance()->set_atol(1e-4);
  cross_check.mutable_reference_tolerance()->set_rtol(1e-3);
  return config;
}

class Trainer {
 public:
  Trainer(const Flags& flags, const Split& digits)
      : flags_(flags),
        digits_(digits),
        sampler_(digits_.train, flags.batch, flags.seed),
        mlp_(flags.hidden, flags.seed, flags.kernel) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
  }

  // Has the mathematics done on a device from here on. nccl sums the gradients there; null: MPI does, on the
  // host.
  absl::Status MoveToDevice(int device, NcclCommunicator* nccl) {
    nccl_ = nccl;
    OTT_ASSIGN_OR_RETURN(device_,
                         CreateDeviceMlp(mlp_, flags_.kernel, flags_.batch / world_size_ + 1, device));
    return absl::OkStatus();
  }

  // One iteration; returns the mean loss over the batch of all ranks.
  absl::StatusOr<double> Iterate(int64_t iteration) {
    OTT_NVTX_SCOPE("iteration");
    Digits shard;
    {
      OTT_STOPWATCH_SCOPE("data");
      OpRange op(OpRange::Load("data"));
      shard = sampler_.Shard(iteration, rank_, world_size_);
      if (op.wants_outputs()) {
        op.Outputs({{"images", TensorView(shard.images.data(), {shard.count(), kPixels})},
                    {"labels", TensorView(shard.labels.data(), {shard.count()})}});
      }
    }
    double loss = 0;
    {
      OTT_STOPWATCH_SCOPE("forward");
      Sleep("forward", iteration);
      OTT_ASSIGN_OR_RETURN(loss, Forward(shard));
    }
    {
      OTT_STOPWATCH_SCOPE("sum_loss");
      OTT_OP_RANGE(op, OpRange::Collective("sum_loss"), {TensorView(&loss, {})});
      MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      if (op.wants_outputs()) op.Outputs(TensorView(&loss, {}));
    }
    {
      OTT_STOPWATCH_SCOPE("backward");
      Sleep("backward", iteration);
      OTT_RETURN_IF_ERROR(Backward(shard));
    }
    {
      OTT_STOPWATCH_SCOPE("allreduce");
      OTT_PHASE("allreduce");
      for (size_t i = 0; i < mlp_.parameters().size(); ++i) {
        OTT_LAYER(mlp_.parameters()[i].name);
        OTT_OP_RANGE(op, OpRange::Collective("allreduce"), {{"gradient", Gradient(i)}});
        OTT_RETURN_IF_ERROR(SumGradient(i));
        if (op.wants_outputs()) op.Outputs({{"gradient", Gradient(i)}});
      }
    }
    {
      OTT_STOPWATCH_SCOPE("step");
      OTT_RETURN_IF_ERROR(
          Step(/*learning_rate=*/0.1f, /*momentum=*/0.9f, 1.0f / static_cast<float>(flags_.batch)));
    }
    if (rank_ == flags_.fault.rank && iteration == flags_.fault.iteration) {
      OTT_RETURN_IF_ERROR(InjectFault());
    }
    loss /= static_cast<double>(flags_.batch);
    OTT_RETURN_IF_ERROR(Dump(loss));
    return loss;
  }

  // Moves the weights by rounding where ott.Config has `perturb`.
  absl::Status OfferWeights() {
    for (Parameter& parameter : mlp_.parameters()) {
      OTT_RETURN_IF_ERROR(
          Perturbation::Offer("weights." + parameter.name, parameter.value.data(), parameter.shape));
    }
    return device_ == nullptr ? absl::OkStatus() : device_->ValuesToDevice();
  }

  // For what comes after the training, which is done on the host.
  absl::Status Finish() { return device_ == nullptr ? absl::OkStatus() : device_->ValuesToHost(); }

  double TestAccuracy() { return mlp_.Accuracy(digits_.test); }

  // The weights' bytes, in order.
  std::string WeightBytes() {
    std::string bytes;
    for (const Parameter& parameter : mlp_.parameters()) {
      bytes.append(reinterpret_cast<const char*>(parameter.value.data()),
                   parameter.value.size() * sizeof(float));
    }
    return bytes;
  }

  // Returns true if the weights have the same bits on all ranks.
  bool WeightsAgree() {
    for (const Parameter& parameter : mlp_.parameters()) {
      std::vector<float> first = parameter.value;
      MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_FLOAT, 0, MPI_COMM_WORLD);
      int same = std::memcmp(first.data(), parameter.value.data(), first.size() * sizeof(float)) == 0;
      MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
      if (!same) return false;
    }
    return true;
  }

  // INVALID_ARGUMENT if the fault names no bit of the model.
  absl::Status CheckFault() {
    const Fault& fault = flags_.fault;
    if (fault.rank < 0) return absl::OkStatus();
    const Parameter* parameter = FindParameter(fault.tensor);
    if (parameter == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("--fault: no tensor ", fault.tensor));
    const auto size = static_cast<int64_t>(parameter->value.size());
    if (fault.element < 0 || fault.element >= size || fault.bit < 0 || fault.bit > 31) {
      return absl::InvalidArgumentError(
          absl::StrCat("--fault: ", fault.tensor, " has elements 0 to ", size - 1, " with bits 0 to 31"));
    }
    return absl::OkStatus();
  }

 private:
  void Sleep(std::string_view part, int64_t iteration) const {
    for (const Delay& delay : flags_.delays) {
      if ((delay.rank >= 0 && delay.rank != rank_) || part != delay.part || iteration % delay.every != 0)
        continue;
      if (delay.late && 2 * iteration < flags_.iterations) continue;
      auto microseconds = static_cast<int64_t>(1000 * delay.milliseconds);
      if (delay.uneven) {
        std::seed_seq seed = {flags_.seed, static_cast<uint64_t>(iteration), static_cast<uint64_t>(rank_)};
        std::mt19937_64 random(seed);
        microseconds = static_cast<int64_t>(random() % static_cast<uint64_t>(2 * microseconds + 1));
      }
      const std::chrono::microseconds time(microseconds);
      if (delay.busy) {
        ComputeFor(time);
      } else {
        std::this_thread::sleep_for(time);
      }
    }
  }

  absl::StatusOr<double> Forward(const Digits& shard) {
    if (device_ != nullptr) return device_->Forward(shard);
    return mlp_.Forward(shard);
  }

  absl::Status Backward(const Digits& shard) {
    if (device_ != nullptr) return device_->Backward();
    mlp_.Backward(shard);
    return absl::OkStatus();
  }

  absl::Status Step(float learning_rate, float momentum, float scale) {
    if (device_ != nullptr) return device_->Step(learning_rate, momentum, scale);
    mlp_.Step(learning_rate, momentum, scale);
    return absl::OkStatus();
  }

  // Over all ranks, in place.
  absl::Status SumGradient(size_t i) {
    Parameter& parameter = mlp_.parameters()[i];
    const auto size = static_cast<int>(parameter.gradient.size());
    if (nccl_ != nullptr) {
      return nccl_->AllReduceOnDevice(Reduction::kSum, DType::kFloat32, device_->GradientData(i), size,
                                      /*stream=*/nullptr, Deadline::After(std::chrono::seconds(60)));
    }
    if (device_ != nullptr) OTT_RETURN_IF_ERROR(device_->GradientToHost(i));
    MPI_Allreduce(MPI_IN_PLACE, parameter.gradient.data(), size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return device_ == nullptr ? absl::OkStatus() : device_->GradientToDevice(i);
  }

  TensorView Value(size_t i) {
    if (device_ != nullptr) return device_->Value(i);
    return TensorView(mlp_.parameters()[i].value.data(), mlp_.parameters()[i].shape);
  }
  TensorView Gradient(size_t i) {
    if (device_ != nullptr) return device_->Gradient(i);
    return TensorView(mlp_.parameters()[i].gradient.data(), mlp_.parameters()[i].shape);
  }

  // Dumps in iterations that somebody asked for; in others nothing is done, copied or formatted.
  absl::Status Dump(double loss) {
    absl::Status status;
    TensorDumper::RunIfEnabled([&](TensorDumper& dumper) {
      status.Update(dumper.AddTensorData("loss", TensorView(&loss, {})));
      for (size_t i = 0; i < mlp_.parameters().size(); ++i) {
        const std::string& name = mlp_.parameters()[i].name;
        status.Update(dumper.AddTensorData("weights." + name, Value(i), DumpFormat::kBinary));
        status.Update(dumper.AddTensorData("gradients." + name, Gradient(i), DumpFormat::kBinary));
      }
    });
    return status;
  }

  Parameter* FindParameter(const std::string& tensor) {
    for (Parameter& parameter : mlp_.parameters()) {
      if ("weights." + parameter.name == tensor) return &parameter;
    }
    return nullptr;
  }

  absl::Status InjectFault() {
    if (device_ != nullptr) OTT_RETURN_IF_ERROR(device_->ValuesToHost());
    float& value = FindParameter(flags_.fault.tensor)->value[flags_.fault.element];
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    bits ^= uint32_t{1} << flags_.fault.bit;
    std::memcpy(&value, &bits, sizeof(bits));
    return device_ == nullptr ? absl::OkStatus() : device_->ValuesToDevice();
  }

  const Flags& flags_;
  const Split& digits_;
  BatchSampler sampler_;
  Mlp mlp_;
  std::unique_ptr<DeviceMlp> device_;  // null: on the host
  NcclCommunicator* nccl_ = nullptr;
  int rank_ = 0;
  int world_size_ = 1;
};

// Rank 0's progress on long work: one line that is rewritten on a terminal, a line now and then elsewhere.
void ShowProgress(int64_t iteration, int64_t iterations, double loss) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const int64_t interval = terminal ? 10 : std::max<int64_t>(iterations / 4, 1);
  if ((iteration + 1) % interval != 0 && iteration + 1 != iterations) return;
  std::fprintf(stderr, "%siteration %lld/%lld  loss %.4f%s", terminal ? "\r" : "",
               static_cast<long long>(iteration + 1), static_cast<long long>(iterations), loss,
               terminal && iteration + 1 < iterations ? "" : "\n");
}

absl::StatusOr<Config> ChooseConfig(const Flags& flags) {
  if (!flags.observe) return Config();
  if (std::getenv("OTT_CONFIG") == nullptr) return MakeConfig(flags);
  return LoadConfigFromEnvironment();
}

// The exit code: 0 if all went well, 1 if ranks or reference disagree.
absl::StatusOr<int> Train(const Flags& flags) {
  OTT_ASSIGN_OR_RETURN(const Config config, ChooseConfig(flags));
  OTT_ASSIGN_OR_RETURN(const Digits digits, ReadDigits(flags.data));
  const Split split = SplitDigits(digits);
  Trainer trainer(flags, split);
  OTT_RETURN_IF_ERROR(trainer.CheckFault());

  OTT_ASSIGN_OR_RETURN(std::shared_ptr<Communicator> ranks, CreateMpiCommunicator());
  // Not the run's, which ends where a rank is late for an observation.
  std::unique_ptr<NcclCommunicator> sums;
  if (flags.device) {
    OTT_ASSIGN_OR_RETURN(const int device, DeviceOfRank(ranks->rank()));
    if (flags.nccl) {
      NcclOptions options;
      options.device = device;
      OTT_ASSIGN_OR_RETURN(sums, CreateNcclCommunicator(ranks, options));
      OTT_ASSIGN_OR_RETURN(ranks, CreateNcclCommunicator(ranks, options));
    }
    OTT_RETURN_IF_ERROR(trainer.MoveToDevice(device, sums.get()));
  }
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingRun> run, TrainingRun::Start(*ranks, config));
  OTT_RETURN_IF_ERROR(trainer.OfferWeights());
  for (int64_t iteration = 0; iteration < flags.iterations; ++iteration) {
    OTT_ASSIGN_OR_RETURN(const double loss, trainer.Iterate(iteration));
    run->Metric("loss", loss);
    OTT_RETURN_IF_ERROR(run->FinishIter());
    if (ranks->rank() == 0) ShowProgress(iteration, flags.iterations, loss);
  }
  OTT_RETURN_IF_ERROR(run->Finish());
  OTT_RETURN_IF_ERROR(trainer.Finish());

  const bool agree = trainer.WeightsAgree();
  if (ranks->rank() == 0) {
    std::printf("test accuracy %.1f %%; weights are %s on all ranks\n", 100 * trainer.TestAccuracy(),
                agree ? "the same, bit for bit," : "NOT the same");
    if (!flags.weights.empty())
      OTT_RETURN_IF_ERROR(WriteFileAtomically(flags.weights, trainer.WeightBytes()));
  }
  return agree && !run->diverged() ? 0 : 1;
}

// Sets *flags; the exit code of the program if it is to end here.
std::optional<int> ParseFlags(int argc, char** argv, Flags* flags) {
  CLI::App app("Trains a small network on handwritten digits, on all ranks of an MPI job.");
  const CLI::Range positive(1, std::numeric_limits<int>::max());
  app.add_option("--data", flags->data, "digits.csv.gz")->capture_default_str();
  app.add_option("--iterations", flags->iterations)->check(positive)->capture_default_str();
  app.add_option("--batch", flags->batch, "Images an iteration, over all ranks")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--hidden", flags->hidden, "Size of the hidden layer")->check(positive);
  app.add_option("--seed", flags->seed)->capture_default_str();
  const std::map<std::string, Kernel> kernels = {{"reference", Kernel::kReference},
                                                 {"optimized", Kernel::kOptimized}};
  app.add_option("--kernel", flags->kernel, "reference or optimized, which sums in another order")
      ->transform(CLI::CheckedTransformer(kernels));
  CLI::Option* device = app.add_flag("--device", flags->device, "Train on a GPU, one a rank");
  app.add_flag("--nccl", flags->nccl, "Sum the gradients, and observe, by NCCL")->needs(device);
  app.add_option("--run", flags->run, "Run directory to write");
  app.add_option("--reference", flags->reference, "Run directory to compare with");
  app.add_option("--every", flags->every, "Iterations between dumps and cross-checks")
      ->check(positive)
      ->capture_default_str();
  app.add_option("--weights", flags->weights, "File for the weights that the training ends with");
  app.add_flag("!--off", flags->observe, "Switch all observation off");
  std::tuple<int, int64_t, std::string, int64_t, int> fault;
  CLI::Option* fault_option = app.add_option(
      "--fault", fault, "Flip a bit: RANK ITERATION TENSOR ELEMENT BIT, e.g. 2 30 weights.w1 777 20");
  std::vector<std::tuple<int, double, std::string>> delays;
  app.add_option("--delay", delays,
                 "Make a rank slow (-1: all): RANK MILLISECONDS PART, which is forward or backward; "
                 "forward/10: in every tenth iteration; forward/uneven: between nothing and twice as long; "
                 "forward/busy: on a CPU; forward/late: in the second half of the run")
      ->take_all();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  if (*fault_option)
    std::tie(flags->fault.rank, flags->fault.iteration, flags->fault.tensor, flags->fault.element,
             flags->fault.bit) = fault;
  for (const auto& [rank, milliseconds, part] : delays) {
    Delay& delay = flags->delays.emplace_back();
    delay.rank = rank;
    delay.milliseconds = std::max(milliseconds, 0.0);
    const std::pair<std::string, std::string> parts = absl::StrSplit(part, absl::MaxSplits('/', 1));
    delay.part = parts.first;
    delay.uneven = parts.second == "uneven";
    delay.busy = parts.second == "busy";
    delay.late = parts.second == "late";
    if (!absl::SimpleAtoi(parts.second, &delay.every) || delay.every < 1) delay.every = 1;
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
    std::fprintf(stderr, "train_digits: %s\n", code.status().ToString().c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return *code;
}
