// What the README tells to add to a training program, with its errors handled.

#include <cstdio>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/base/config.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/dist/comm/mpi_communicator.h"
#include "ott/dist/run/training_run.h"

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
