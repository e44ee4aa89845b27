// A job of 4 ranks of which one is killed or stopped; the others check what they are told, and by when.
//
//   mpirun --enable-recovery -np 4 dying_rank SCENARIO

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/cross_check.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/mpi_communicator.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/run/gather/stats_gatherer.h"
#include "ott/run/training/training_run.h"

namespace ott {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kVictim = 2;
constexpr auto kTimeout = seconds(2);
// A busy machine may add so much to a deadline.
constexpr auto kSlack = seconds(10);
constexpr int kDone = 7;

Deadline ForSetUp() { return Deadline::After(seconds(20)); }

#define EXPECT(condition) \
  OTT_CHECK(condition) << "rank " << ranks.rank() << ": " << __func__ << ", line " << __LINE__ << " "

std::unique_ptr<Communicator> Split(Communicator& ranks) { return ranks.Split(0, 0, ForSetUp()).value(); }

[[noreturn]] void Die() {
  raise(SIGKILL);
  std::abort();
}

// Returns how long f takes.
std::chrono::nanoseconds Time(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::steady_clock::now() - start;
}

StopwatchStats Stats(int num_iterations) {
  StopwatchStats stats;
  stats.set_num_measured_iters(num_iterations);
  stats.mutable_iteration()->set_count(num_iterations);
  return stats;
}

// Checks replicas with rank kVictim missing, which holds nobody up.
void ExpectNotCompared(Communicator& ranks, CrossCheck& check, int iteration,
                       const std::vector<NamedTensor>& tensors) {
  CrossCheckVerdict verdict;
  EXPECT(Time([&] { verdict = *check.CheckReplicas(iteration, tensors); }) < kTimeout + kSlack);
  EXPECT(verdict.outcome() == NOT_COMPARED && verdict.missing_ranks_size() == 1 &&
         verdict.missing_ranks(0) == kVictim)
      << FormatVerdict(verdict);
}

// The survivors wait for rank 0 to have seen all it wants to see.
void EndTogether(Communicator& ranks) {
  if (ranks.rank() == 0) {
    for (int rank = 1; rank < ranks.size(); ++rank) OTT_CHECK(ranks.Post(rank, kDone, "").ok()) << "post";
  } else {
    EXPECT(ranks.Receive(0, kDone, ForSetUp()).ok());
  }
}

// Ends this process a moment later, in the middle of whatever it does then.
std::thread DieSoon() {
  return std::thread([] {
    std::this_thread::sleep_for(milliseconds(1));
    Die();
  });
}

void KilledInGather(Communicator& ranks) {
  StatsGatherer gatherer(Split(ranks));
  ClusterStats stats;
  const auto gather = [&](int num_iterations) {
    return Time([&] { stats = gatherer.Gather(Stats(num_iterations), Deadline::After(kTimeout)).value(); });
  };
  gather(1);
  EXPECT(stats.missing_ranks_size() == 0) << stats.DebugString();
  if (ranks.rank() == kVictim) {
    // It takes longer to bring so much than it has.
    StopwatchStats large = Stats(2);
    for (int i = 0; i < 100000; ++i) large.add_measurements()->set_name(absl::StrCat("measurement ", i));
    std::thread killer = DieSoon();
    while (true) OTT_CHECK(gatherer.Gather(large, Deadline::After(kTimeout)).ok()) << "gather";
  }

  for (int round = 2; round < 50; ++round) {
    const auto held = gather(round);
    EXPECT(held < kTimeout + kSlack);
    EXPECT(ranks.rank() == 0 || held < kTimeout) << "only rank 0 has to wait";
    EXPECT(round < 40 || held < kTimeout) << "and only once";
  }
  if (ranks.rank() == 0) {
    EXPECT(stats.late_ranks_size() == 1 && stats.late_ranks(0) == kVictim) << stats.DebugString();
    // The rank's earlier measurements are not lost.
    EXPECT(stats.num_ranks() == 4 && stats.max_measured_iters() == 49) << stats.DebugString();
  }
  EndTogether(ranks);
}

std::vector<NamedTensor> Tensors(const std::vector<float>& weights) {
  return {{"weights", {TensorView(weights.data(), {static_cast<int64_t>(weights.size())}), nullptr}}};
}

void KilledInCrossCheck(Communicator& ranks) {
  const auto check = CrossCheck::Create(ranks, CrossCheckConfig(), kTimeout).value();
  const std::vector<float> small(100, 0.5f);
  EXPECT(Passed(*check->CheckReplicas(0, Tensors(small))));
  if (ranks.rank() == kVictim) {
    // Takes the digest of this when it is killed: of its second half, which cannot be read.
    constexpr int64_t kBytes = 1 << 20;
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
    OTT_CHECK(memory != MAP_FAILED) << "mmap";
    OTT_CHECK(mprotect(static_cast<char*>(memory) + kBytes / 2, kBytes / 2, PROT_NONE) == 0) << "mprotect";
    std::signal(SIGSEGV, [](int) { Die(); });
    const TensorView view(static_cast<const float*>(memory), {kBytes / 4});
    check->CheckReplicas(1, {{"weights", {view, nullptr}}});
  }
  for (const int iteration : {1, 2}) ExpectNotCompared(ranks, *check, iteration, Tensors(small));
  std::vector<float> flipped = small;
  if (ranks.rank() == 3) flipped[17] = -0.5f;
  const CrossCheckVerdict verdict = *check->CheckReplicas(3, Tensors(flipped));
  // Two of four ranks are no majority.
  EXPECT(verdict.outcome() == DIFFERENT && !verdict.has_majority() && verdict.differences_size() == 1 &&
         verdict.differences(0).ranks(0) == 3)
      << FormatVerdict(verdict);
  EndTogether(ranks);
}

void KilledInDump(Communicator& ranks) {
  const std::string dir = absl::StrCat(std::getenv("TEST_TMPDIR"), "/dumps/");
  if (ranks.rank() == kVictim) {
    const std::vector<float> weights(1 << 20, 0.5f);
    const Value tree = ValueMap{{"weights", TensorView(weights.data(), {1 << 20})}};
    DumpContents contents;
    contents.tensors.tree = &tree;
    contents.tensors.format = [](std::string_view) { return DumpFormat::kBinary; };
    for (contents.iteration = 0;; ++contents.iteration) {
      if (contents.iteration == 3) DieSoon().detach();
      OTT_CHECK(ranks.Post(0, 1, absl::StrCat(contents.iteration)).ok()) << "post";
      OTT_CHECK(WriteDump(absl::StrCat(dir, contents.iteration), contents).ok()) << "dump";
    }
  }
  if (ranks.rank() == 0) {
    while (ranks.Receive(kVictim, 1, Deadline::After(seconds(1))).ok()) {
    }
    const auto begun = ListDumps(dir);
    EXPECT(begun.ok() && begun->size() >= 3) << begun.status();
    const int64_t last = begun->back();
    for (const int64_t iteration : *begun) {
      if (iteration == last) continue;
      const auto dump = ReadDump(absl::StrCat(dir, iteration));
      EXPECT(dump.ok()) << dump.status();
    }
    const absl::StatusOr<Dump> cut = ReadDump(absl::StrCat(dir, last));
    EXPECT(cut.ok() || absl::IsDataLoss(cut.status()) || absl::IsNotFound(cut.status())) << cut.status();
  }
  EndTogether(ranks);
}

void StoppedAndContinued(Communicator& ranks) {
  const std::vector<std::string> pids = ranks.AllGather(absl::StrCat(getpid()), ForSetUp()).value();
  StatsGatherer gatherer(Split(ranks));
  const auto check = CrossCheck::Create(ranks, CrossCheckConfig(), kTimeout).value();
  const std::vector<float> weights(100, 0.5f);

  if (ranks.rank() == kVictim) raise(SIGSTOP);
  // Less than the check's timeout, or rank 0 would be late for the check.
  ClusterStats stats = gatherer.Gather(Stats(1), Deadline::After(milliseconds(500))).value();
  ExpectNotCompared(ranks, *check, 0, Tensors(weights));
  if (ranks.rank() == 0) {
    EXPECT(stats.missing_ranks_size() == 1 && stats.missing_ranks(0) == kVictim) << stats.DebugString();
    EXPECT(kill(static_cast<pid_t>(std::stol(pids[kVictim])), SIGCONT) == 0);
  }
  // The victim has caught up once it answers; then all goes on as if nothing had been.
  EXPECT(ranks.Barrier(ForSetUp()).ok());
  stats = gatherer.Gather(Stats(2), Deadline::After(seconds(30))).value();
  EXPECT(ranks.rank() != 0 || stats.num_ranks() == 4) << stats.DebugString();
  const CrossCheckVerdict verdict = *check->CheckReplicas(1, Tensors(weights));
  EXPECT(verdict.outcome() == BITWISE_EQUAL) << FormatVerdict(verdict);
  EndTogether(ranks);
}

void KilledRoot(Communicator& ranks) {
  StatsGatherer gatherer(Split(ranks));
  const auto check = CrossCheck::Create(ranks, CrossCheckConfig(), kTimeout).value();
  if (ranks.rank() == 0) Die();
  for (int round = 1; round < 4; ++round) {
    EXPECT(Time([&] {
             OTT_CHECK(gatherer.Gather(Stats(round), Deadline::After(kTimeout)).ok()) << "gather";
           }) < kTimeout)
        << "no rank waits for a dead root";
  }
  const std::vector<float> weights(100, 0.5f);
  CrossCheckVerdict verdict;
  EXPECT(Time([&] { verdict = *check->CheckReplicas(0, Tensors(weights)); }) < kTimeout + kSlack);
  EXPECT(verdict.outcome() == NOT_COMPARED) << FormatVerdict(verdict);
  EXPECT(verdict.reason().find("nothing from rank 0") != std::string::npos) << verdict.reason();
  if (ranks.rank() == 1) std::cout << "killed_root: as it should be" << std::endl;
}

// The findings of the others by then are summed up all the same.
void KilledInRun(Communicator& ranks) {
  constexpr int kKilledIn = 3;
  const std::string dir = absl::StrCat(std::getenv("TEST_TMPDIR"), "/");
  Config config;
  config.set_timeout_seconds(std::chrono::duration<double>(kTimeout).count());
  config.mutable_stopwatch()->set_print_every_n_iters(2);
  config.mutable_cross_check()->mutable_iterations()->set_every(1);
  config.mutable_cross_check()->set_reference_run(dir + "no_reference");
  const auto run = TrainingRun::Start(ranks, config).value();
  EXPECT(ranks.rank() != 0 || std::freopen((dir + "stdout").c_str(), "w", stdout) != nullptr);
  const std::vector<float> weights(100, 0.5f);
  for (int iteration = 0; iteration < kKilledIn + 3; ++iteration) {
    if (ranks.rank() == kVictim && iteration == kKilledIn) Die();
    EXPECT(TensorDumper::Get().AddTensorData("weights", TensorView(weights.data(), {100})).ok());
    EXPECT(Time([&] { run->FinishIter().IgnoreError(); }) < 2 * kTimeout + kSlack);
  }
  absl::Status status;
  EXPECT(Time([&] { status = run->Finish(); }) < 2 * kTimeout + kSlack);
  if (ranks.rank() == 0) {
    EXPECT(status.message().find("nothing from rank 2 (") != absl::string_view::npos) << status;
    const std::string printed = ReadFile(dir + "stdout").value();
    for (const char* const text :
         {"replicas NOT COMPARED: nothing from rank 2 (",
          "cross-check of replicas: 6 checks, 3 NOT COMPARED, 3 equal bit for bit",
          "cross-check against reference", "LATE: of an earlier gather are the data of rank 2"}) {
      EXPECT(printed.find(text) != std::string::npos) << text << " is not in " << printed;
    }
  }
  EndTogether(ranks);
  // Rank 0's stdout is that file.
  if (ranks.rank() == 1) std::cout << "killed_in_run: as it should be" << std::endl;
}

int RunScenario(const std::string& scenario) {
  const std::map<std::string, void (*)(Communicator&)> scenarios = {
      {"killed_in_gather", KilledInGather}, {"killed_in_cross_check", KilledInCrossCheck},
      {"killed_in_dump", KilledInDump},     {"stopped_and_continued", StoppedAndContinued},
      {"killed_root", KilledRoot},          {"killed_in_run", KilledInRun},
  };
  const auto found = scenarios.find(scenario);
  OTT_CHECK(found != scenarios.end()) << scenario;
  const auto ranks = CreateMpiCommunicator().value();
  found->second(*ranks);
  if (ranks->rank() == 0) std::cout << scenario << ": as it should be" << std::endl;
  // MPI_Finalize would wait for the dead.
  std::cout.flush();
  _exit(0);
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  OTT_CHECK(argc == 2) << "dying_rank SCENARIO";
  return ott::RunScenario(argv[1]);
}
