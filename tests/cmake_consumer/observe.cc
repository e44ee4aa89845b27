#include "observe.h"

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "ott/config.h"
#include "ott/mpi_communicator.h"
#include "ott/status_macros.h"
#include "ott/stopwatch.h"
#include "ott/tensor.h"
#include "ott/tensor_dumper.h"
#include "ott/training_run.h"

namespace {

std::unique_ptr<ott::Communicator> ranks;
std::unique_ptr<ott::TrainingRun> run;

int Report(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "observe: %s\n", status.ToString().c_str());
  return -1;
}

absl::Status Start() {
  OTT_ASSIGN_OR_RETURN(ranks, ott::CreateMpiCommunicator());
  OTT_ASSIGN_OR_RETURN(const ott::Config config, ott::LoadConfigFromEnvironment());
  OTT_ASSIGN_OR_RETURN(run, ott::TrainingRun::Start(*ranks, config));
  return absl::OkStatus();
}

absl::Status Finish() {
  const absl::Status status = run->Finish();
  // Before MPI_Finalize(), and the run before the communicator that it uses.
  run.reset();
  ranks.reset();
  return status;
}

}  // namespace

int observe_start(void) { return Report(Start()); }

int observe_finish(void) { return Report(Finish()); }

int observe_finish_iteration(void) { return Report(run->FinishIter()); }

void observe_begin(const char* name) { ott::Stopwatch::Get().Start(name); }

void observe_end(const char* name) { ott::Stopwatch::Get().End(name); }

int observe_tensor(const char* path, const float* data, int num_dims, const int64_t* extents) {
  const auto view = [&] { return ott::TensorView(data, ott::Dims(extents, extents + num_dims)); };
  return Report(ott::TensorDumper::Get().AddTensorData(path, view));
}
