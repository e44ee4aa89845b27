// Measures the time and memory to read and diagnose the recorders of 16,384 ranks, of which one never came.
//
// Writes a gigabyte to TMPDIR, which is best in memory.
//
//   TMPDIR=/dev/shm bazel run //questions/hang:hang_benchmark -- [RANKS]

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/file.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/diagnosis.h"
#include "ott/questions/hang/hang_report.h"
#include "ott/questions/hang/run_state.h"

namespace ott {
namespace {

constexpr double kSecondsLimit = 10;
constexpr double kMegabytesLimit = 500;
constexpr int kRanksPerNode = 8;

// A full recorder: of a rank that waits for all of the world, after iterations with its node and the world.
// The clock is far behind, so that the wait is long.
std::string MakeRecorder(const std::string& path, int world_size, bool waits) {
  static uint64_t now;
  now = 1;
  const Clock clock([]() -> uint64_t { return now; });
  FlightRecorder* const recorder = *FlightRecorder::Create({path, 0, world_size, "node"}, clock);
  FlightOperation operation;
  operation.role = FlightRole::kCollective;
  FlightRecorder::Measurement* const all = recorder->Add("allreduce", operation);
  operation.group = "node";
  for (int rank = 0; rank < kRanksPerNode; ++rank) operation.ranks.push_back(rank);
  FlightRecorder::Measurement* const node = recorder->Add("allgather", operation);
  FlightRecorder::Measurement* const forward = recorder->Add("forward", {});
  for (int i = 0; i < 400; ++i) {
    for (FlightRecorder::Measurement* const measurement : {forward, node, all}) {
      FlightRecorder::Begin(measurement, now += 1000, 0, 4096);
      FlightRecorder::End(measurement, now += 1000, 0);
    }
    recorder->FinishIter(now += 1000, 0);
  }
  FlightRecorder::Begin(waits ? all : forward, now += 1000, 0);
  now += uint64_t{100} * 1000000000;
  recorder->Beat();
  return *ReadFile(path);
}

int Main(int argc, char** argv) {
  const int world_size = argc > 1 ? std::atoi(argv[1]) : 16384;
  const std::string dir =
      absl::StrCat(std::filesystem::temp_directory_path().string(), "/hang_benchmark.", getpid());
  OTT_CHECK(MakeDirectories(dir).ok());
  std::string waiting = MakeRecorder(dir + "/waiting", world_size, true);
  std::string working = MakeRecorder(dir + "/working", world_size, false);
  for (int rank = 0; rank < world_size; ++rank) {
    std::string& bytes = rank == world_size / 3 ? working : waiting;
    auto* const header = reinterpret_cast<internal::FlightHeader*>(&bytes[0]);
    header->rank = rank;
    auto* const groups = reinterpret_cast<internal::FlightGroup*>(
        &bytes[internal::kFlightHeaderBytes + internal::kFlightSlots * sizeof(internal::FlightSlot)]);
    groups[1].ranges[0].first = rank / kRanksPerNode * kRanksPerNode;
    OTT_CHECK(MakeDirectories(RankDirectory(dir, rank)).ok());
    OTT_CHECK(WriteFileAtomically(FlightPath(dir, rank), bytes).ok());
  }
  RunInfo info;
  info.set_world_size(world_size);
  OTT_CHECK(WriteRunInfo(dir, info).ok());

  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<JobState> job = ReadRunState(dir, RunStateEnvironment::Real());
  OTT_CHECK(job.ok()) << job.status();
  const HangVerdict verdict = DiagnoseHang(*job, HangOptions());
  const std::string text = FormatHangVerdict(verdict);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const double megabytes = static_cast<double>(usage.ru_maxrss) / 1024;
  std::filesystem::remove_all(dir);

  std::fputs(text.c_str(), stdout);
  std::printf("%d recorders read and judged in %.2f s (limit %.0f), with %.0f MB (limit %.0f)\n", world_size,
              seconds, kSecondsLimit, megabytes, kMegabytesLimit);
  return verdict.culprits_size() == 1 && verdict.culprits(0) == world_size / 3 && seconds <= kSecondsLimit &&
                 megabytes <= kMegabytesLimit
             ? 0
             : 1;
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) { return ott::Main(argc, argv); }
