// A training program of another repository: measures, dumps, and reads back what it measured.

#include <cstdio>
#include <string>
#include <vector>

#include "core/stopwatch/stopwatch.h"
#include "ott/stopwatch.h"
#include "ott/tensor.h"
#include "ott/tensor_dumper.h"

namespace consumer {
namespace {

void Train(std::vector<float>* weights) {
  OTT_STOPWATCH_SCOPE("step");
  for (float& weight : *weights) weight *= 0.5f;
}

absl::Status Run(const std::string& dump_dir) {
  ott::Stopwatch::Options stopwatch;
  stopwatch.num_warmup_iters = 2;
  if (absl::Status status = ott::Stopwatch::Get().Enable(stopwatch); !status.ok()) return status;
  ott::TensorDumperOptions dumper;
  dumper.dir = dump_dir;
  if (absl::Status status = ott::TensorDumper::Get().Enable(dumper); !status.ok()) return status;

  std::vector<float> weights(6, 1.0f);
  for (int i = 0; i < kIterations; ++i) {
    Train(&weights);
    absl::Status status =
        ott::TensorDumper::Get().AddTensorData("weights", ott::TensorView(weights.data(), {2, 3}));
    if (status.ok()) status = ott::TensorDumper::Get().Dump();
    if (!status.ok()) return status;
    ott::Stopwatch::Get().FinishIter();
  }
  std::printf("%s", ott::Stopwatch::Get().Table().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace consumer

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: train DUMP_DIR\n");
    return 2;
  }
  const absl::Status status = consumer::Run(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "train: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
