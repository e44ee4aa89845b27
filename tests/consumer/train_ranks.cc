// Does what the README tells to add to a training program, with its errors handled.

#include <cstdio>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ott/config.h"
#include "ott/mpi_communicator.h"
#include "ott/status_macros.h"
#include "ott/stopwatch.h"
#include "ott/tensor.h"
#include "ott/tensor_dumper.h"
#include "ott/training_run.h"

namespace consumer {
namespace {

absl::Status Train() {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<ott::Communicator> ranks, ott::CreateMpiCommunicator());
  OTT_ASSIGN_OR_RETURN(const ott::Config config, ott::LoadConfigFromEnvironment());
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<ott::TrainingRun> run, ott::TrainingRun::Start(*ranks, config));

  std::vector<float> w1(6, 1.0f);
  for (int i = 0; i < 20; ++i) {
    {
      OTT_STOPWATCH_SCOPE("forward");
      for (float& weight : w1) weight *= 0.5f;
    }
    OTT_RETURN_IF_ERROR(
        ott::TensorDumper::Get().AddTensorData("weights.w1", ott::TensorView(w1.data(), {2, 3})));
    OTT_RETURN_IF_ERROR(run->FinishIter());
  }
  return run->Finish();
}

}  // namespace
}  // namespace consumer

int main() {
  const absl::Status status = consumer::Train();
  if (!status.ok()) std::fprintf(stderr, "train_ranks: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
