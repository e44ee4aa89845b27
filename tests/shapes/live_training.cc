// A training of one of the shapes, with a process a rank: a part of its work is computed, as on a CPU, and
// the rest slept, as for a device. Its collectives are messages with the time at which their sender came.
//
//   mpirun -np 4 live_training SHAPE SEED PLANTED RUN_DIR mpi|tcp
//
// PLANTED: the rank that has what is planted; -1: none. Each rank leaves how long its work took in
// WorkPath(), and when its iterations ended in EndsPath().

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/mpi_communicator.h"
#include "ott/dist/comm/tcp_communicator.h"
#include "ott/run/training/training_run.h"
#include "ott/tests/shapes/shape.h"

namespace ott::shapes {
namespace {

// Nanoseconds of the clock that all ranks of a machine share.
int64_t Now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

int64_t Nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

void SleepUntil(int64_t when) {
  std::this_thread::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(when)));
}

// Computes with numbers, for which others that have the CPU make it take longer.
class Numbers {
 public:
  Numbers() {
    constexpr int kRounds = 50;
    constexpr int64_t kSteps = 20'000;
    for (int round = 0; round < kRounds; ++round) {
      const int64_t start = Now();
      Step(kSteps);
      nanoseconds_ = std::min(nanoseconds_, static_cast<double>(Now() - start) / kSteps);
    }
  }

  // Takes so long if nobody else has the CPU.
  void Compute(double seconds) { Step(std::llround(seconds * 1e9 / nanoseconds_)); }

 private:
  void Step(int64_t count) {
    double number = number_;
    for (int64_t i = 0; i < count; ++i) number = 0.999 * number + 1;
    number_ = number;
  }

  volatile double number_ = 0;
  // The shortest time of a step that was seen.
  double nanoseconds_ = std::numeric_limits<double>::infinity();
};

class LiveTraining {
 public:
  LiveTraining(const Shape& shape, Communicator& ranks) : shape_(shape), ranks_(ranks) {}

  void Do(const Act& act, TrainingRun& run) {
    switch (act.kind) {
      case Act::Kind::kWork:
        return Work(act);
      case Act::Kind::kCollective: {
        const Stopwatch::Scope scope{std::string_view(act.name)};
        Come(act);
        return SleepUntil(Leave(act) + Nanoseconds(act.late));
      }
      case Act::Kind::kBroadcast: {
        const Stopwatch::Scope scope{std::string_view(act.name)};
        if (ranks_.rank() == act.peer) {
          for (const int rank : Members(act)) Tell(rank, act);
        }
        return SleepUntil(std::max(Now(), Hear(act.peer, act)) + Nanoseconds(act.seconds));
      }
      case Act::Kind::kBegin:
        if (act.measured) Stopwatch::Get().Start(act.name);
        begun_[act.name] = &act;
        return Come(act);
      case Act::Kind::kWait:
        if (!act.measured) Stopwatch::Get().Start(act.name);
        SleepUntil(Leave(*begun_[act.name]));
        return Stopwatch::Get().End(act.name);
      case Act::Kind::kSend: {
        const Stopwatch::Scope scope{std::string_view(act.name)};
        return Tell(act.peer, act);
      }
      case Act::Kind::kReceive: {
        const Stopwatch::Scope scope{std::string_view(act.name)};
        return SleepUntil(std::max(Now(), Hear(act.peer, act)) + Nanoseconds(act.seconds));
      }
      case Act::Kind::kEndIteration:
        OTT_CHECK(run.FinishIter().ok()) << "iteration " << run.iteration();
        ends_.push_back(1e-9 * static_cast<double>(Now() - start_));
    }
  }

  // Seconds, in order.
  const std::vector<double>& work() const { return work_; }
  const std::vector<double>& ends() const { return ends_; }

 private:
  void Work(const Act& act) {
    const int64_t start = Now();
    const Stopwatch::Scope scope{std::string_view(act.name)};
    const double computed = act.seconds * CpuShare();
    numbers_.Compute(computed);
    std::this_thread::sleep_for(std::chrono::duration<double>(act.seconds - computed));
    work_.push_back(1e-9 * static_cast<double>(Now() - start));
  }

  // Many ranks share few CPUs, of which they leave most to others. Work that is all on a CPU is computed if
  // each rank has one.
  double CpuShare() const {
    const double cpus_of_rank =
        static_cast<double>(std::thread::hardware_concurrency()) / static_cast<double>(ranks_.size());
    return shape_.cpu_share == 1 && cpus_of_rank >= 1 ? 1 : std::min(shape_.cpu_share, cpus_of_rank / 8);
  }

  std::vector<int> Members(const Act& act) const {
    return shape_.Members(act.among, ranks_.rank(), ranks_.size());
  }

  void Tell(int rank, const Act& act) {
    const int64_t now = Now();
    const std::string_view bytes(reinterpret_cast<const char*>(&now), sizeof(now));
    OTT_CHECK(ranks_.Post(rank, Tag(act.name), bytes).ok()) << act.name;
  }

  int64_t Hear(int rank, const Act& act) {
    const absl::StatusOr<std::string> bytes = ranks_.Receive(rank, Tag(act.name), Deadline::Never());
    OTT_CHECK(bytes.ok() && bytes->size() == sizeof(int64_t)) << act.name;
    int64_t when;
    std::memcpy(&when, bytes->data(), sizeof(when));
    return when;
  }

  void Come(const Act& act) {
    for (const int rank : Members(act)) Tell(rank, act);
  }

  // Returns when the collective ends to which this rank came; waits until all have come.
  int64_t Leave(const Act& act) {
    int64_t latest = busy_until_[act.among];
    for (const int rank : Members(act)) latest = std::max(latest, Hear(rank, act));
    return busy_until_[act.among] = latest + Nanoseconds(act.seconds);
  }

  // The same on all ranks.
  int Tag(const std::string& name) const {
    const auto found = std::find(shape_.collectives.begin(), shape_.collectives.end(), name);
    if (found == shape_.collectives.end()) return 100;
    return 101 + static_cast<int>(found - shape_.collectives.begin());
  }

  const Shape& shape_;
  Communicator& ranks_;
  Numbers numbers_;
  const int64_t start_ = Now();
  std::vector<double> work_;
  std::vector<double> ends_;
  std::map<Among, int64_t> busy_until_;
  std::map<std::string, const Act*> begun_;
};

// Returns the axis along which ranks of one group differ. The ranks of a part are one axis, or pairs of them.
std::string AxisOf(Among among) {
  switch (among) {
    case Among::kPlace:
      return "part";
    case Among::kAcrossPairs:
      return "pairs";
    default:
      return "place";
  }
}

Config MakeConfig(const Shape& shape, int num_ranks, const std::string& run_dir) {
  Config config;
  config.set_run_dir(run_dir);
  StopwatchConfig& stopwatch = *config.mutable_stopwatch();
  stopwatch.mutable_collective_measurements()->Assign(shape.collectives.begin(), shape.collectives.end());
  if (shape.is_pipeline) stopwatch.add_work_differs_along("part");
  const int size = shape.RanksOfPart(num_ranks);
  int num_pairs = 1;
  for (const auto& [name, among] : shape.groups) {
    CollectiveGroups& groups = *stopwatch.add_collective_groups();
    groups.add_measurements(name);
    groups.add_along(AxisOf(among));
    if (among == Among::kPair || among == Among::kAcrossPairs) num_pairs = size / 2;
  }
  DeviceMesh& mesh = *config.add_mesh();
  for (const auto& [name, extent] : {std::pair("part", num_ranks / size), std::pair("pairs", num_pairs),
                                     std::pair("place", size / num_pairs)}) {
    MeshAxis& axis = *mesh.add_axes();
    axis.set_name(name);
    axis.set_size(extent);
  }
  stopwatch.set_print_every_n_iters(shape.num_iterations / 4);
  // Nothing is dropped between two gathers.
  stopwatch.set_arrivals_limit(1 << 16);
  return config;
}

absl::StatusOr<std::unique_ptr<Communicator>> Connect(const std::string& transport) {
  if (transport == "mpi") return CreateMpiCommunicator();
  const absl::StatusOr<TcpOptions> options = TcpOptionsFromEnvironment();
  if (!options.ok()) return options.status();
  return CreateTcpCommunicator(*options);
}

void Write(const std::vector<double>& numbers, const std::string& path) {
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()),
                               numbers.size() * sizeof(double));
  OTT_CHECK(WriteFileAtomically(path, bytes).ok()) << path;
}

int Main(int argc, char** argv) {
  OTT_CHECK(argc == 6) << "live_training SHAPE SEED PLANTED RUN_DIR mpi|tcp";
  const auto shape =
      std::find_if(Shapes().begin(), Shapes().end(), [&](const Shape& one) { return one.name == argv[1]; });
  OTT_CHECK(shape != Shapes().end()) << argv[1] << ": no such shape";
  // Sleeps end on time.
  prctl(PR_SET_TIMERSLACK, 1UL);
  const absl::StatusOr<std::unique_ptr<Communicator>> ranks = Connect(argv[5]);
  OTT_CHECK(ranks.ok()) << ranks.status();
  const RankProgram program =
      shape->Program((*ranks)->rank(), (*ranks)->size(), std::atoi(argv[2]), std::atoi(argv[3]));
  const absl::StatusOr<std::unique_ptr<TrainingRun>> run =
      TrainingRun::Start(**ranks, MakeConfig(*shape, (*ranks)->size(), argv[4]));
  OTT_CHECK(run.ok()) << run.status();
  // The run's own messages stay apart from the training's.
  const absl::StatusOr<std::unique_ptr<Communicator>> own = (*ranks)->Split(0, 0, Deadline::Never());
  OTT_CHECK(own.ok() && (*own)->Barrier(Deadline::Never()).ok()) << own.status();
  LiveTraining training(*shape, **own);
  for (const Act& act : program.acts()) training.Do(act, **run);
  OTT_CHECK((*run)->Finish().ok()) << "finish";
  Write(training.work(), WorkPath(argv[4], (*ranks)->rank()));
  Write(training.ends(), EndsPath(argv[4], (*ranks)->rank()));
  return 0;
}

}  // namespace
}  // namespace ott::shapes

int main(int argc, char** argv) { return ott::shapes::Main(argc, argv); }
