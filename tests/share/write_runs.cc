// write_runs DIR RANKS [RUN]: what RANKS ranks left, for `ott` of several processes; in RUN alone if it is
// told.
//
//   DIR/reference, DIR/current   dumps; one of rank 2 differs
//   DIR/planted                  statistics, kept iterations, verdicts; rank 1 is slow
//   DIR/stands                   flight recorders; rank 2 never came
//   DIR/traces                   of torch.profiler; all wait for rank 1

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/file.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/kineto/traces_for_test.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/run_state.h"
#include "tools/report/runs_for_test.h"

namespace {

constexpr uint64_t kSecond = 1000000000;

uint64_t g_now = 1000 * kSecond;

void WriteInfo(const std::string& run, int num_ranks) {
  ott::RunInfo info;
  info.set_world_size(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) info.add_hosts(absl::StrCat("node", rank));
  OTT_CHECK(ott::MakeDirectories(run).ok());
  OTT_CHECK(ott::WriteRunInfo(run, info).ok());
}

void WriteDumps(const std::string& run, int num_ranks, bool is_current) {
  WriteInfo(run, num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    for (const int iteration : {0, 10, 20}) {
      ott::TensorDumper dumper;
      ott::TensorDumperOptions options;
      options.dir = ott::DumpsDirectory(run, rank);
      options.rank = rank;
      options.reserved_bytes = 0;
      OTT_CHECK(dumper.Enable(options).ok());
      dumper.SetDumpCount(iteration);
      std::vector<float> weights(10000, 0.1f * static_cast<float>(iteration + 1));
      if (is_current) weights[77] += 1e-6f;
      if (is_current && rank == 2 && iteration == 10) weights[5] = -3;
      const double loss = 0.5;
      OTT_CHECK(dumper.AddTensorData("loss", ott::TensorView(&loss, {}), ott::DumpFormat::kJson).ok());
      OTT_CHECK(dumper
                    .AddTensorData("weights.w1", ott::TensorView(weights.data(), {100, 100}),
                                   ott::DumpFormat::kBinary)
                    .ok());
      OTT_CHECK(dumper.Dump().ok());
    }
  }
}

void WriteRecorders(const std::string& run, int num_ranks) {
  WriteInfo(run, num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) {
    OTT_CHECK(ott::MakeDirectories(ott::RankDirectory(run, rank)).ok());
    g_now = 1000 * kSecond;
    ott::FlightRecorder* const recorder = *ott::FlightRecorder::Create(
        {ott::FlightPath(run, rank), rank, num_ranks, absl::StrCat("node", rank)},
        ott::Clock([] { return g_now; }));
    ott::FlightRecorder::Begin(
        rank == 2 ? recorder->Add("data", {}) : recorder->Add("sum", ott::FlightOperation::Collective()),
        g_now, 0);
    g_now += 90 * kSecond;
    recorder->Beat();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  const std::string directory = argv[1];
  const int num_ranks = std::atoi(argv[2]);
  const auto wants = [&](const std::string& run) { return argc == 3 || run == argv[3]; };
  if (wants("reference")) WriteDumps(directory + "/reference", num_ranks, /*is_current=*/false);
  if (wants("current")) WriteDumps(directory + "/current", num_ranks, /*is_current=*/true);
  if (wants("planted")) {
    ott::report::PlantedRun planted;
    planted.num_ranks = num_ranks;
    ott::report::WritePlantedRun(directory + "/planted", planted);
  }
  if (wants("stands")) WriteRecorders(directory + "/stands", num_ranks);
  if (!wants("traces")) return 0;
  OTT_CHECK(ott::MakeDirectories(directory + "/traces").ok());
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::string trace = ott::kineto::RankTraceForTest(rank, 3000 * (rank == 1), 3000, 0, 60);
    OTT_CHECK(ott::WriteFileAtomically(absl::StrCat(directory, "/traces/rank", rank, ".json"), trace).ok());
  }
  return 0;
}
