// A small training in which one rank hangs in a way of one's choice. Its collective operations are made of
// sends and receives, so that ranks which call different ones wait for each other, as with most libraries.
//
//   mpirun --enable-recovery -np 4 hang_rank SCENARIO SEED RUN_DIR mpi|tcp

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/mpi_communicator.h"
#include "ott/dist/comm/tcp_communicator.h"
#include "ott/run/training/training_run.h"

namespace ott {
namespace {

constexpr int kIterations = 40;

struct Group {
  int tag;
  std::vector<int> ranks;
};

class Training {
 public:
  Training(Communicator& ranks, std::string scenario, int seed)
      : ranks_(ranks), scenario_(std::move(scenario)) {
    // The same on all ranks.
    std::mt19937 random(static_cast<uint32_t>(seed) * 7919 + 1);
    victim_ = static_cast<int>(random() % ranks.size());
    fault_at_ = 5 + static_cast<int>(random() % 25);
    forward_ = std::chrono::milliseconds(1 + random() % 5);
    world_ = {100, {}};
    half_ = {200, {}};
    const int half = ranks.size() / 2;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      world_.ranks.push_back(rank);
      if ((rank < half) == (ranks.rank() < half)) half_.ranks.push_back(rank);
    }
    if (ranks.rank() == 0) std::printf("victim %d in iteration %d\n", victim_, fault_at_);
    std::fflush(stdout);
  }

  // Returns true if it came to its end.
  bool Run(TrainingRun& run) {
    const int iterations = kIterations + (Now("extra", kIterations) ? 1 : 0);
    if (scenario_ == "compile") Compile();
    for (iteration_ = 0; iteration_ < iterations; ++iteration_) {
      LoadData();
      Forward();
      if (Now("leave", fault_at_)) return false;
      if (scenario_ == "apart" || scenario_ == "twice") {
        // Halves that nobody declared, under one name; of "twice" the world uses it as well.
        CollectiveOf("allreduce", half_, 2, 8);
        if (scenario_ == "twice" && ranks_.rank() < ranks_.size() / 2) CollectiveOf("allreduce", half_, 3, 8);
        if (scenario_ == "twice") CollectiveOf("allreduce", world_, 4, 8);
        OTT_CHECK(run.FinishIter().ok());
        continue;
      }
      if (Now("order", fault_at_)) {
        Collective("sum_loss", world_, 1, 64);
        Collective("dispatch", half_, 2, 8);
      } else {
        Collective("dispatch", half_, 2, 8);
        if (!Now("skip", fault_at_)) Collective("sum_loss", world_, Now("other", fault_at_) ? 5 : 1, 64);
      }
      Collective("allreduce", world_, 3, Now("size", fault_at_) ? 2048 : 1024);
      Optimize();
      OTT_CHECK(run.FinishIter().ok());
    }
    return true;
  }

 private:
  bool Now(const std::string& scenario, int iteration) const {
    return scenario_ == scenario && ranks_.rank() == victim_ &&
           (scenario == "extra" || iteration_ == iteration);
  }

  // Computes for longer than ranks may stand.
  static void Compile() {
    OTT_STOPWATCH_SCOPE("compile");
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::duration<double>(2.5 * std::atof(std::getenv("HANG_AFTER")));
    while (std::chrono::steady_clock::now() < end) {
    }
  }

  // Before the run's own cross-check.
  void Optimize() {
    OTT_STOPWATCH_SCOPE("optimizer");
    while (Now("check", fault_at_)) std::this_thread::sleep_for(std::chrono::seconds(1));
  }

  void LoadData() {
    OTT_STOPWATCH_SCOPE("data");
    while (Now("data", fault_at_)) std::this_thread::sleep_for(std::chrono::seconds(1));
  }

  void Forward() {
    OTT_STOPWATCH_SCOPE("forward");
    if (Now("stop", fault_at_)) raise(SIGSTOP);
    if (Now("kill", fault_at_)) raise(SIGKILL);
    while (Now("loop", fault_at_) || Now("apart", fault_at_) || Now("twice", fault_at_)) {
    }
    std::this_thread::sleep_for(forward_ * (scenario_ == "slow" && ranks_.rank() == victim_ ? 3 : 1));
  }

  void Collective(const char* name, const Group& group, int kind, int bytes) {
    // The other groups are configured.
    if (&group == &world_) {
      Stopwatch::Get().SetOperation(name,
                                    FlightOperation::Collective("", {}, kind == 5 ? "broadcast" : "", bytes));
    }
    CollectiveOf(name, group, kind, bytes);
  }

  // Rank by rank to the first of the group and back.
  void CollectiveOf(const char* name, const Group& group, int kind, int bytes) {
    const Stopwatch::Scope scope{std::string_view(name)};
    const int tag = group.tag + 10 * kind + (bytes > 1024 ? 1 : 0);
    const std::string payload(static_cast<size_t>(bytes), 'x');
    const int root = group.ranks[0];
    if (ranks_.rank() != root) {
      Send(root, tag, payload);
      Receive(root, tag);
      return;
    }
    for (const int rank : group.ranks) {
      if (rank != root) Receive(rank, tag);
    }
    for (const int rank : group.ranks) {
      if (rank != root) Send(rank, tag, payload);
    }
  }

  void Send(int to, int tag, const std::string& payload) {
    const absl::Status status = ranks_.Post(to, tag, payload);
    if (!status.ok()) Stand();
  }

  void Receive(int from, int tag) {
    if (!ranks_.Receive(from, tag, Deadline::Never()).ok()) Stand();
  }

  // A library that knows of no deadline waits for a dead rank, too.
  [[noreturn]] static void Stand() {
    while (true) pause();
  }

  Communicator& ranks_;
  const std::string scenario_;
  int victim_ = 0;
  int fault_at_ = 0;
  int iteration_ = 0;
  std::chrono::milliseconds forward_{1};
  Group world_;
  Group half_;
};

int Main(int argc, char** argv) {
  OTT_CHECK(argc == 5) << "hang_rank SCENARIO SEED RUN_DIR mpi|tcp";
  const std::unique_ptr<Communicator> ranks =
      std::string(argv[4]) == "mpi" ? CreateMpiCommunicator().value()
                                    : CreateTcpCommunicator(TcpOptionsFromEnvironment().value()).value();
  Config config;
  config.set_run_dir(argv[3]);
  if (const char* const own = std::getenv("HANG_OWN_DIRECTORIES")) {
    // Hosts share no directory here: each rank's own is one below.
    const std::string dir = absl::StrCat(own, "/host_", ranks->rank() % 2);
    OTT_CHECK(chdir(dir.c_str()) == 0) << dir;
    config.set_run_dir("run");
  }
  for (const char* const name : {"sum_loss", "allreduce", "dispatch"})
    config.mutable_stopwatch()->add_collective_measurements(name);
  if (ranks->size() % 2 == 0) {
    CollectiveGroups& halves = *config.mutable_stopwatch()->add_collective_groups();
    halves.add_measurements("dispatch");
    halves.add_along("rank_in_half");
    DeviceMesh& mesh = *config.add_mesh();
    for (const auto& [name, size] : {std::pair("half", 2), std::pair("rank_in_half", ranks->size() / 2)}) {
      MeshAxis& axis = *mesh.add_axes();
      axis.set_name(name);
      axis.set_size(size);
    }
  }
  config.mutable_hang()->set_after_seconds(std::atof(std::getenv("HANG_AFTER")));
  // The others give up a check soon, and stand elsewhere then.
  const bool checks = std::string(argv[1]) == "check";
  if (checks) config.mutable_cross_check()->add_replicated("*");
  config.set_timeout_seconds(checks ? 4 : 20);
  const auto run = TrainingRun::Start(*ranks, config).value();
  // The run's own messages stay apart from the training's.
  const auto own = ranks->Split(0, 0, Deadline::After(std::chrono::seconds(20))).value();
  if (!Training(*own, argv[1], std::atoi(argv[2])).Run(*run)) return 1;
  std::printf("rank %d: finished: %s\n", ranks->rank(), run->Finish().ToString().c_str());
  return 0;
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) { return ott::Main(argc, argv); }
