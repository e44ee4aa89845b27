// Runs real programs in turn.

#include "ott/questions/faster/run_in_turn.h"

#include <signal.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::faster {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RunInTurnTest : public ::testing::Test {
 protected:
  RunInTurnTest() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    options_.directory = dir_;
    options_.max_runs = 6;
  }

  static std::vector<std::string> Shell(const std::string& script) { return {"sh", "-c", script}; }

  std::string ErrorOf(const std::string& a, const std::string& b) {
    std::filesystem::remove_all(dir_);
    options_.command_a = Shell(a);
    options_.command_b = Shell(b);
    return std::string(RunInTurn(options_, [](const Samples&) { return false; }).status().message());
  }

  Turns RunAll(const std::function<bool(const Samples&)>& is_decided = [](const Samples&) { return false; }) {
    return RunInTurn(options_, is_decided).value();
  }

  std::set<std::string> Folders() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_)) names.insert(entry.path().filename());
    return names;
  }

  const std::string dir_ =
      ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  TurnOptions options_;
};

TEST_F(RunInTurnTest, BlocksAreBalancedByChanceAndEachRunStandsForItself) {
  const std::string log = ::testing::TempDir() + "log";
  options_.results = "times.jsonl";
  options_.keep = false;
  options_.num_warm_runs = 2;
  const std::string script =
      " {seed} >> " + log + R"(; echo '{"process": 1, "seconds": 1.0{seed}}' > {dir}/times.jsonl)";
  options_.command_a = Shell("echo A" + script);
  options_.command_b = Shell("echo B" + script);
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    options_.seed = seed;
    std::filesystem::remove(log);
    std::vector<size_t> sizes;
    const Turns turns = RunAll([&](const Samples& samples) {
      EXPECT_EQ(samples.a.size(), samples.b.size());
      sizes.push_back(samples.a.size());
      return seed == 3 && sizes.size() == 2;
    });
    EXPECT_EQ(turns.stop, seed == 3 ? Stop::kDecided : Stop::kMaxRuns);
    EXPECT_EQ(sizes, seed == 3 ? (std::vector<size_t>{2, 4}) : (std::vector<size_t>{2, 4, 6}));
    EXPECT_TRUE(turns.samples.iterations_must_match);
    EXPECT_EQ(turns.samples.primary, "");
    const std::vector<std::string> lines = absl::StrSplit(*ReadFile(log), '\n', absl::SkipEmpty());
    ASSERT_EQ(lines.size(), 4 + 2 * sizes.back());
    std::string order;
    double latest = 0;
    size_t count[2] = {};
    for (size_t i = 0; i < lines.size(); ++i) {
      // The number of each run is that of its turn.
      EXPECT_EQ(lines[i].substr(1), absl::StrCat(" ", i + 1));
      order += lines[i][0];
      if (i < 4) continue;
      const bool is_b = lines[i][0] == 'B';
      const Process& process = (is_b ? turns.samples.b : turns.samples.a).at(count[is_b]);
      EXPECT_EQ(process.name, absl::StrCat(is_b ? "B" : "A", ", run 00", ++count[is_b]));
      EXPECT_EQ(process.block, (i - 4) / 4);
      double seconds = 0;
      ASSERT_TRUE(absl::SimpleAtod(absl::StrCat("1.0", i + 1), &seconds));
      EXPECT_THAT(process.measurements.at(0).seconds, ElementsAre(seconds));
      EXPECT_GT(process.started, latest);
      latest = process.started.value_or(0);
    }
    EXPECT_EQ(order.substr(0, 4), "ABAB");
    for (size_t i = 4; i < order.size(); i += 4) EXPECT_THAT(order.substr(i, 4), AnyOf("ABBA", "BAAB"));
    orders.insert(order);
    EXPECT_THAT(Folders(), IsEmpty());
  }
  EXPECT_GT(orders.size(), 1u);
}

TEST_F(RunInTurnTest, EachRunHasItsFolderItsConfigurationAndItsOutput) {
  options_.max_runs = 2;
  options_.config.mutable_stopwatch()->set_num_warmup_iters(7);
  options_.command_a = options_.command_b = Shell("cat; cat $OTT_CONFIG; echo $OTT_AB_DIR >&2");
  RunAll();
  EXPECT_THAT(Folders(), ElementsAre("a_001", "a_002", "b_001", "b_002", "warm_a_001", "warm_b_001"));
  for (const std::string& name : Folders()) {
    const std::string folder = dir_ + "/" + name, output = *ReadFile(folder + "/output.txt");
    EXPECT_THAT(output, HasSubstr("run_dir: \"" + folder + "/run\"\n"));
    EXPECT_THAT(output, HasSubstr("num_warmup_iters: 7"));
    EXPECT_THAT(output, ::testing::EndsWith("\n" + folder + "\n"));
  }
}

TEST_F(RunInTurnTest, WallTimeAndCpuTimeAreOfTheProgram) {
  options_.max_runs = 2;
  options_.command_a = Shell("sleep 0.05");
  options_.command_b = Shell("i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done");
  for (const auto what : {WhatToCompare::kAuto, WhatToCompare::kWallTime, WhatToCompare::kCpuTime}) {
    const bool is_cpu = what == WhatToCompare::kCpuTime;
    options_.what = what;
    const Turns turns = RunAll();
    for (size_t run = 0; run < 2; ++run) {
      const MeasurementSamples& a = turns.samples.a[run].measurements.at(0);
      const MeasurementSamples& b = turns.samples.b[run].measurements.at(0);
      EXPECT_EQ(a.name, is_cpu ? "CPU time" : "wall time");
      EXPECT_EQ(a.seconds.at(0) < 0.05, is_cpu);
      EXPECT_GT(b.seconds.at(0), 0.01);
      EXPECT_GE(turns.samples.b[run].cpus_of_others, 0);
      EXPECT_LT(turns.samples.b[run].cpus_of_others, 1000);
    }
    EXPECT_FALSE(turns.samples.iterations_must_match);
  }
}

TEST_F(RunInTurnTest, ARunThatFailsIsNamedWithItsLastLines) {
  EXPECT_EQ(
      ErrorOf("true", "for i in 1 2 3 4 5 6 7 8 9 10 11; do echo line $i; done; exit 3"),
      "B, run warm_001 ended with exit code 3: sh -c for i in 1 2 3 4 5 6 7 8 9 10 11; do echo line $i; "
      "done; exit 3\nits last lines:\n  line 2\n  line 3\n  line 4\n  line 5\n  line 6\n  line 7\n"
      "  line 8\n  line 9\n  line 10\n  line 11");
  EXPECT_THAT(ErrorOf("kill -SEGV $$", "true"),
              HasSubstr("A, run warm_001 ended with signal 11 (Segmentation fault): sh -c kill -SEGV $$\nit "
                        "printed nothing"));
  // A run that counts, and not the first.
  EXPECT_THAT(ErrorOf("true", "[ {seed} -lt 6 ]"), HasSubstr("B, run 00"));
  options_.command_a = {"/none/program"};
  EXPECT_EQ(RunInTurn(options_, [](const Samples&) { return false; }).status().message(),
            "/none/program cannot be started: No such file or directory");
}

TEST_F(RunInTurnTest, WhatRunsLeaveIsOfOneKind) {
  const std::string source = ::testing::TempDir() + "left";
  RunInfo info;
  info.set_world_size(1);
  StopwatchStats stats;
  stats.mutable_iteration_series()->set_stride(1);
  for (const float seconds : {1.0f, 2.0f}) stats.mutable_iteration_series()->add_seconds(seconds);
  ASSERT_TRUE(MakeDirectories(RankDirectory(source, 0)).ok());
  ASSERT_TRUE(WriteRunInfo(source, info).ok());
  ASSERT_TRUE(
      WriteFileAtomically(RankDirectory(source, 0) + "/stopwatch.pb", stats.SerializeAsString()).ok());
  const std::string leave = "cp -r " + source + " {dir}/run";
  options_.max_runs = 2;
  EXPECT_EQ(ErrorOf(leave, leave), "");
  EXPECT_EQ(ErrorOf(leave, "true"),
            "B, run warm_001 left no run directory, and others did: --measure wall compares "
            "the wall times of both");
  EXPECT_EQ(ErrorOf("true", leave),
            "B, run warm_001 left a run directory, and others did not: --measure wall "
            "compares the wall times of both");
  options_.what = WhatToCompare::kWallTime;
  options_.results = "times.jsonl";
  EXPECT_EQ(ErrorOf("true", leave), "");
  options_.results.clear();
  options_.what = WhatToCompare::kAuto;
  // The latest start counts of a run that was killed and started again.
  options_.command_a = options_.command_b =
      Shell(leave + "; rm {dir}/run/rank_00000/stopwatch.pb; cp -r " + source + " {dir}/run/attempt_2");
  std::filesystem::remove_all(dir_);
  RunAll([](const Samples& samples) {
    EXPECT_EQ(samples.primary, "iteration");
    EXPECT_TRUE(samples.iterations_must_match);
    EXPECT_THAT(samples.b.at(1).measurements.at(0).seconds, ElementsAre(1, 2));
    return true;
  });
  options_.results = "times.jsonl";
  EXPECT_THAT(ErrorOf("true", "true"), HasSubstr(dir_ + "/warm_a_001/times.jsonl: No such file"));
  // Run directories do not matter if a file has the times.
  const std::string times = R"(printf '{"process":1,"seconds":1}\n' > {dir}/times.jsonl)";
  EXPECT_EQ(ErrorOf(times, leave + "; " + times), "");
  EXPECT_THAT(
      ErrorOf(R"(printf '{"process":1,"seconds":1}\n{"process":2,"seconds":1}\n' > {dir}/times.jsonl)",
              "true"),
      HasSubstr("/warm_a_001/times.jsonl: has 2 processes, and one run is one"));
}

TEST_F(RunInTurnTest, ASignalOrTheTimeEndsItWithWholeBlocks) {
  options_.command_a = options_.command_b = {"true"};
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  for (const auto& [signal, at, end] :
       {std::tuple(SIGINT, 4, 4), {SIGTERM, 4, 4}, {SIGHUP, 4, 4}, {SIGCHLD, 4, 6}, {SIGINT, 6, 6}}) {
    const Turns turns = RunAll([signal = signal, at = at](const Samples& samples) {
      if (samples.a.size() == static_cast<size_t>(at)) kill(getpid(), signal);
      return false;
    });
    EXPECT_EQ(turns.stop, end == 6 ? Stop::kMaxRuns : Stop::kInterrupted) << signal;
    EXPECT_EQ(turns.samples.a.size(), end) << signal;
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (const int of : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
      EXPECT_EQ(sigismember(&after, of), sigismember(&before, of)) << of;
  }
  options_.max_seconds = 0.2;
  options_.command_b = {"sleep", "98762"};
  const Turns turns = RunAll();
  EXPECT_EQ(turns.stop, Stop::kMaxTime);
  EXPECT_THAT(turns.samples.a, IsEmpty());
}

}  // namespace
}  // namespace ott::faster
