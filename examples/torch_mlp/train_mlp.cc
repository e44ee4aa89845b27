// Training of a small network on handwritten digits with LibTorch, instrumented with every helper.
// reference.py is the same training in Python, and its dumps are the reference:
//
//   python3 examples/torch_mlp/reference.py --out out/python
//   train_mlp --run out/cpp
//   ott compare out/python out/cpp/rank_00000/dumps

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "examples/train_digits/digits.h"
#include "ott/config.h"
#include "ott/local_communicator.h"
#include "ott/op_range.h"
#include "ott/status_macros.h"
#include "ott/stopwatch.h"
#include "ott/tensor_dumper.h"
#include "ott/torch.h"
#include "ott/training_run.h"

namespace ott::examples {
namespace {

struct Flags {
  std::string data = "examples/train_digits/data/digits.csv.gz";
  std::string run;
  int64_t iterations = 50;
  int64_t batch = 64;
  uint64_t seed = 1;
  bool emit_nvtx = false;
  int64_t fault = -1;
};

// Sets up once, in main, what a training program needs. Nothing else in this file knows what is switched on.
Config MakeConfig(const Flags& flags) {
  Config config;
  config.set_run_dir(flags.run);
  config.mutable_stopwatch()->set_num_warmup_iters(5);
  if (flags.emit_nvtx) config.mutable_op_ranges();
  if (flags.run.empty()) return config;
  config.mutable_dump()->mutable_iterations()->set_every(10);
  ProfileConfig& profile = *config.mutable_profile();
  profile.set_skip_first(10);
  profile.set_active(2);
  profile.set_repeat(1);
  return config;
}

// ReadDigits() as tensors.
struct Images {
  at::Tensor pixels;  // float32 [count, kPixels]
  at::Tensor labels;  // int64 [count]
};

absl::StatusOr<Images> ReadImages(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(Digits digits, ReadDigits(path));
  return Images{at::from_blob(digits.images.data(), {digits.count(), kPixels}, at::kFloat).clone(),
                at::from_blob(digits.labels.data(), {digits.count()}, at::kInt).to(at::kLong)};
}

class Trainer {
 public:
  Trainer(const Flags& flags, Images images)
      : flags_(flags),
        images_(std::move(images)),
        optimizer_(Parameters(), torch::optim::SGDOptions(/*lr=*/0.1).momentum(0.9)) {}

  // One iteration; returns the mean loss over the batch.
  absl::StatusOr<double> Iterate(int64_t iteration) {
    TensorDumper& dumper = TensorDumper::Get();
    at::Tensor pixels, labels;
    {
      OTT_STOPWATCH_SCOPE("data");
      const at::Tensor chosen = at::randint(images_.labels.size(0), {flags_.batch}, at::kLong);
      pixels = images_.pixels.index_select(0, chosen);
      labels = images_.labels.index_select(0, chosen);
    }
    at::Tensor hidden, loss;
    {
      OTT_STOPWATCH_SCOPE("forward");
      {
        OTT_LAYER("layer1");
        hidden = at::relu(layer1_(pixels));
      }
      OTT_LAYER("layer2");
      loss = torch::nn::functional::cross_entropy(layer2_(hidden), labels);
    }
    absl::Status status = dumper.AddTensorData("pixels", pixels, DumpFormat::kBinary);
    status.Update(dumper.AddTensorData("hidden", hidden, DumpFormat::kBinary));
    status.Update(dumper.AddTensorData("loss", loss));
    status.Update(dumper.AddGradData("pixels", pixels));
    status.Update(dumper.AddGradData("hidden", hidden, DumpFormat::kBinary));
    status.Update(dumper.SetGradients(TorchGradientProvider({loss})));
    {
      OTT_STOPWATCH_SCOPE("backward");
      optimizer_.zero_grad();
      loss.backward();
    }
    {
      OTT_STOPWATCH_SCOPE("step");
      optimizer_.step();
    }
    if (iteration == flags_.fault) layer1_->weight.data()[3][5] += 1e-3;
    status.Update(DumpLayer("layer1", *layer1_));
    status.Update(DumpLayer("layer2", *layer2_));
    if (!status.ok()) return status;
    return loss.item<double>();
  }

 private:
  std::vector<at::Tensor> Parameters() const {
    return {layer1_->weight, layer1_->bias, layer2_->weight, layer2_->bias};
  }

  // Weights after the step, and the training's own gradients.
  static absl::Status DumpLayer(const std::string& name, const torch::nn::LinearImpl& layer) {
    const DumpRange range(name);
    TensorDumper& dumper = TensorDumper::Get();
    absl::Status status = dumper.AddTensorData("weight", layer.weight, DumpFormat::kBinary);
    status.Update(dumper.AddTensorData("bias", layer.bias));
    status.Update(dumper.AddTensorData("weight_grad", layer.weight.grad(), DumpFormat::kBinary));
    status.Update(dumper.AddTensorData("bias_grad", layer.bias.grad()));
    return status;
  }

  const Flags& flags_;
  const Images images_;
  torch::nn::Linear layer1_{kPixels, 32};
  torch::nn::Linear layer2_{32, kClasses};
  torch::optim::SGD optimizer_;
};

absl::Status Train(const Flags& flags) {
  // One thread, so that sums are in the same order as in Python.
  at::set_num_threads(1);
  at::manual_seed(flags.seed);
  OTT_ASSIGN_OR_RETURN(Images images, ReadImages(flags.data));
  Trainer trainer(flags, std::move(images));

  std::unique_ptr<EmitNvtx> emit_nvtx;
  if (flags.emit_nvtx) {
    OTT_ASSIGN_OR_RETURN(emit_nvtx, EmitNvtx::Start());
  }
  EnableTorchTensorDumping(TensorDumper::Get());
  const std::unique_ptr<Communicator> ranks = CreateLocalCommunicator();
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<TrainingRun> run, TrainingRun::Start(*ranks, MakeConfig(flags)));
  double loss = 0;
  for (int64_t iteration = 0; iteration < flags.iterations; ++iteration) {
    OTT_ASSIGN_OR_RETURN(loss, trainer.Iterate(iteration));
    OTT_RETURN_IF_ERROR(run->FinishIter());
  }
  OTT_RETURN_IF_ERROR(run->Finish());
  std::printf("loss %.6f after %lld iterations\n", loss, static_cast<long long>(flags.iterations));
  return absl::OkStatus();
}

}  // namespace
}  // namespace ott::examples

int main(int argc, char** argv) {
  ott::examples::Flags flags;
  CLI::App app("Trains a small network on handwritten digits with LibTorch.");
  const CLI::Range positive(1, std::numeric_limits<int>::max());
  app.add_option("--data", flags.data, "digits.csv.gz")->capture_default_str();
  app.add_option("--run", flags.run, "Run directory to write");
  app.add_option("--iterations", flags.iterations)->check(positive)->capture_default_str();
  app.add_option("--batch", flags.batch)->check(positive)->capture_default_str();
  app.add_option("--seed", flags.seed)->capture_default_str();
  app.add_flag("--emit-nvtx", flags.emit_nvtx,
               "Ranges for LibTorch's operations and layers, in NVTX and in trace.json");
  app.add_option("--fault", flags.fault, "Change one weight by 0.001 after this iteration");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = ott::examples::Train(flags);
  if (!status.ok()) std::fprintf(stderr, "train_mlp: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 2;
}
