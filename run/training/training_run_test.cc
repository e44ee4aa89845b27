// The helpers of a process can be enabled once, so each test runs in processes of its own: see the BUILD
// file.

#include "ott/run/training/training_run.h"

#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/file.h"
#include "ott/core/base/text_sink.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/flight/flight_record.h"
#include "ott/core/nvtx/nvtx.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/ranks_gtest.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/run_state.h"
#include "ott/questions/saved/iteration_sampler.h"
#include "ott/questions/saved/sampled_job.h"
#include "ott/questions/saved/what_if.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

class TrainingRunTest : public ::testing::Test {
 protected:
  // The same directory on all ranks, which rank 0 makes anew.
  TrainingRunTest() : dir_(std::string(std::getenv("TEST_TMPDIR")) + "/run") {
    Configure("stopwatch {} dump { iterations { every: 2 } } cross_check { iterations { list: 1 } }");
    config_.set_timeout_seconds(20);
    config_.set_run_dir(dir_);
    if (Rank() == 0) std::filesystem::remove_all(dir_);
    Meet();
  }

  static int Rank() { return TestRanks().rank(); }
  static void Meet() { ASSERT_TRUE(TestRanks().Barrier(Deadline::After(std::chrono::seconds(20))).ok()); }
  std::string MyDirectory() const { return RankDirectory(dir_, Rank()); }
  void Configure(const std::string& more) {
    ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(more, &config_)) << more;
  }

  std::unique_ptr<TrainingRun> Start() { return TrainingRun::Start(TestRanks(), config_).value(); }

  static absl::Status AddWeights(float value, const std::string& path = "weights") {
    return TensorDumper::Get().AddTensorData(path, TensorView(&value, {1}));
  }
  // An iteration, at whose end the weight has this value.
  static void Train(TrainingRun& run, float weight = 1) {
    ASSERT_TRUE(AddWeights(weight).ok());
    EXPECT_EQ(run.FinishIter(), absl::OkStatus());
  }

  const std::string dir_;
  Config config_;
};

TEST_F(TrainingRunTest, StaysInItsDirectoryThoughTheProgramChangesToAnotherOne) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path other = dir_ + "_other_" + std::to_string(Rank());
  std::filesystem::create_directory(other);
  config_.set_run_dir("run");
  config_.mutable_cross_check()->set_reference_run("reference");
  for (const std::string& directory : {std::string(), std::string(std::getenv("TEST_TMPDIR"))}) {
    std::filesystem::current_path(directory.empty() ? std::getenv("TEST_TMPDIR") : other.string());
    const auto run = TrainingRun::Start(TestRanks(), config_, directory).value();
    std::filesystem::current_path(other);
    EXPECT_EQ(run->run_dir(), directory.empty() ? dir_ : dir_ + "/attempt_2");
    for (int i = 0; i < 2; ++i) Train(*run);
    // The reference, which is not there, is sought in the same place, and that is no pass.
    EXPECT_TRUE(run->diverged());
    run->Finish().IgnoreError();
    const std::string mine = RankDirectory(run->run_dir(), Rank());
    EXPECT_THAT(*ReadFile(mine + "/cross_check.jsonl"),
                HasSubstr(absl::StrCat("reference: ", std::getenv("TEST_TMPDIR"), "/reference")));
    EXPECT_TRUE(std::filesystem::exists(mine + "/stopwatch.pb"));
    EXPECT_TRUE(std::filesystem::is_empty(other));
  }
  std::filesystem::current_path(before);
}

TEST_F(TrainingRunTest, MetricsAreLoggedByIterationOnTheRanksThatHaveThem) {
  const auto run = Start();
  for (int i = 0; i < 4; ++i) {
    if (Rank() == 1 && i != 2) {
      run->Metric("loss", 7);
      run->Metric("loss", i < 3 ? 0.5 * i : NAN);
      run->Metric("grad \"norm\"", i == 0 ? 3 : i == 1 ? INFINITY : -INFINITY);
    }
    ASSERT_TRUE(run->FinishIter().ok());
  }
  ASSERT_TRUE(run->Finish().ok());
  if (Rank() != 1) {
    EXPECT_FALSE(PathExists(MetricsPath(dir_, Rank())));
    return;
  }
  EXPECT_EQ(*ReadFile(MetricsPath(dir_, 1)),
            "{\"step\": 0, \"grad \\\"norm\\\"\": 3, \"loss\": 0}\n"
            "{\"step\": 1, \"grad \\\"norm\\\"\": \"Infinity\", \"loss\": 0.5}\n"
            "{\"step\": 3, \"grad \\\"norm\\\"\": \"-Infinity\", \"loss\": \"NaN\"}\n");
}

TEST_F(TrainingRunTest, AMetricThatFindsNoRoomEndsNoTrainingAndLeavesNoHalfOfALine) {
  config_.clear_dump();
  config_.clear_cross_check();
  config_.clear_stopwatch();
  const auto run = Start();
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {50, limit.rlim_max};
  for (int i = 0; i < 4; ++i) {
    run->Metric("loss", i);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, i == 2 ? &small : &limit), 0);
    const absl::Status finished = run->FinishIter();
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(finished, absl::OkStatus());
  }
  EXPECT_THAT(std::string(run->Finish().message()), HasSubstr("metrics of iteration 2 cannot be written"));
  EXPECT_EQ(*ReadFile(MetricsPath(dir_, Rank())),
            "{\"step\": 0, \"loss\": 0}\n{\"step\": 1, \"loss\": 1}\n{\"step\": 3, \"loss\": 3}\n");
}

TEST_F(TrainingRunTest, WhatIsNotDumpedIsCheckedAllTheSame) {
  config_.mutable_dump()->clear_iterations();
  config_.mutable_dump()->add_include_globs("weights");
  config_.mutable_dump()->add_ranks(1);
  config_.mutable_cross_check()->clear_iterations();
  const auto run = Start();
  std::string output;
  SetTextSink([&](std::string_view lines) { output += lines; });
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(AddWeights(Rank() == 1 ? 2 : 3, "bias").ok());
    Train(*run);
  }
  ASSERT_TRUE(run->Finish().ok());
  SetTextSink({});
  EXPECT_TRUE(run->diverged());
  EXPECT_THAT(*ReadFile(MyDirectory() + "/cross_check.jsonl"), HasSubstr("bias"));
  // Rank 0 prints three failures for all, and the first rank that dumps says what that takes.
  EXPECT_EQ(output.find("ott: dumps: ") != output.npos, Rank() == 1) << output;
  for (int i = 0; i < 4; ++i) {
    const std::string failure = absl::StrCat("iteration ", i, ": replicas DIFFER in tensor \"bias\"");
    EXPECT_EQ(output.find(failure) != output.npos, Rank() == 0 && i < 3) << output;
  }
  for (const std::string& line :
       {absl::StrCat("further ones of this kind are only counted, and in ", dir_,
                     "/rank_*/cross_check.jsonl\n"),
        std::string("cross-check of replicas: 4 checks, 4 DIFFER; not bitwise equal from iteration 0 on\n")})
    EXPECT_EQ(output.find(line) != output.npos, Rank() == 0) << output;
  const absl::StatusOr<std::vector<int64_t>> dumps = ListDumps(DumpsDirectory(dir_, Rank()));
  if (Rank() != 1) {
    EXPECT_TRUE(!dumps.ok() || dumps->empty());
    return;
  }
  EXPECT_THAT(*dumps, ::testing::ElementsAre(0, 1, 2, 3));
  const ValueMap tensors = ReadDump(DumpsDirectory(dir_, 1) + "/1")->tensors.map();
  EXPECT_NE(tensors.Find("weights"), nullptr);
  EXPECT_EQ(tensors.Find("bias"), nullptr);
}

TEST_F(TrainingRunTest, WithoutConfigurationNothingIsDone) {
  config_ = Config();
  const auto run = Start();
  EXPECT_FALSE(Stopwatch::Get().enabled());
  EXPECT_FALSE(TensorDumper::Get().active());
  Train(*run);
  ASSERT_TRUE(run->Finish().ok());
  EXPECT_FALSE(std::filesystem::exists(dir_));
}

TEST_F(TrainingRunTest, ARestartWritesBesideTheRunThatIsThereAndAResumedRunGoesOnInIt) {
  const std::vector<std::string> of_one_start = {
      MyDirectory() + "/stopwatch.pb", MyDirectory() + "/iterations.pb",
      MyDirectory() + "/trace.json",   MyDirectory() + "/trace_2.json",
      MyDirectory() + "/torch.json",   MyDirectory() + "/torch_2.json",
      MyDirectory() + "/stacks.txt",   ClusterStatsPath(dir_)};
  Configure("profile { active: 1 } op_log {}");
  for (const int64_t start_iteration : {0, 2, 4, 0}) {
    config_.set_start_iteration(start_iteration);
    const auto run = Start();
    for (const std::string& path : of_one_start) {
      if (start_iteration == 0) break;
      // Statistics of two starts would be mixed until all are written.
      EXPECT_FALSE(PathExists(path)) << path;
      const std::string name = std::filesystem::path(path).filename();
      const std::string aside = absl::StrCat(MyDirectory(), "/start_", start_iteration / 2, "/", name);
      EXPECT_EQ(PathExists(aside), name != "cluster_stats.json" || Rank() == 0) << name;
    }
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(run->iteration(), start_iteration + i);
      Train(*run, static_cast<float>(run->iteration()));
    }
    ASSERT_TRUE(run->Finish().ok());
    for (const std::string& path : of_one_start) {
      if (PathExists(path) || path == ClusterStatsPath(dir_)) continue;
      ASSERT_TRUE(WriteFileAtomically(path, "").ok());
    }
  }
  EXPECT_THAT(*ListDumps(DumpsDirectory(dir_, Rank())), ::testing::ElementsAre(0, 2, 4));
  EXPECT_EQ(ReadRunInfo(dir_)->resumptions_size(), 2);
  for (const int part : {1, 2, 3, 4})
    EXPECT_EQ(PathExists(OpLogPart(OpLogPath(dir_, Rank()), part)), part < 4) << part;
  EXPECT_THAT(*ListDumps(DumpsDirectory(dir_ + "/attempt_2", Rank())), ::testing::ElementsAre(0));
}

TEST_F(TrainingRunTest, DumpsLeaveOutWhatTheLatestStartOfTheReferenceHas) {
  const auto train = [this](float weight) {
    const auto run = Start();
    Train(*run, weight);
    ASSERT_TRUE(run->Finish().ok());
  };
  for (const float weight : {1, 2}) train(weight);
  config_.mutable_dump()->set_reference_run(dir_);
  config_.set_run_dir(dir_ + "_like_it");
  for (const float weight : {2, 1}) train(weight);
  const auto has_elements = [this](const std::string& attempt) {
    const Dump dump = ReadDump(DumpsDirectory(config_.run_dir() + attempt, Rank()) + "/0").value();
    return dump.tensors.map().Find("weights")->is_tensor();
  };
  EXPECT_FALSE(has_elements(""));
  EXPECT_TRUE(has_elements("/attempt_2"));
}

TEST_F(TrainingRunTest, WhatARunEnabledIsOffAgainAfterItAndTheNextLeavesAllFilesOfEachRank) {
  Configure("stopwatch { print_every_n_iters: 1 } profile { active: 1 }");
  if (internal::NvtxStatus().ok()) Configure("op_ranges {} nvtx {}");
  auto run = Start();
  Train(*run);
  // Without Finish(), and with a gather on its way.
  run.reset();
  EXPECT_FALSE(Stopwatch::Get().enabled());
  EXPECT_FALSE(TensorDumper::Get().active());
  EXPECT_FALSE(NvtxRangeWrapper::Get().enabled());
  EXPECT_FALSE(OpRanges::Get().enabled());
  Stopwatch::Get().FinishIter();
  Meet();

  // One that fails late.
  config_.mutable_cross_check()->set_reference_tolerances(dir_ + "/none.textproto");
  EXPECT_TRUE(absl::IsNotFound(TrainingRun::Start(TestRanks(), config_).status()));
  EXPECT_FALSE(Stopwatch::Get().enabled());
  config_.mutable_cross_check()->clear_reference_tolerances();

  config_.set_run_dir(dir_ + "_again");
  if (Rank() == 0) std::filesystem::remove_all(config_.run_dir());
  run = Start();
  for (int i = 0; i < 3; ++i) {
    Stopwatch::Get().Start("forward");
    Stopwatch::Get().End("forward");
    Train(*run);
  }
  ASSERT_TRUE(run->Finish().ok());
  EXPECT_FALSE(run->diverged());
  EXPECT_EQ(ReadRunInfo(config_.run_dir())->world_size(), TestRanks().size());
  StopwatchStats stats;
  ASSERT_TRUE(stats.ParseFromString(*ReadFile(RankDirectory(config_.run_dir(), Rank()) + "/stopwatch.pb")));
  EXPECT_EQ(stats.rank(), Rank());
  EXPECT_EQ(stats.num_measured_iters(), 3);
  EXPECT_THAT(*ListDumps(DumpsDirectory(config_.run_dir(), Rank())), ::testing::ElementsAre(0, 2));
  const CrossCheckVerdict verdict =
      ParseVerdict(*ReadFile(RankDirectory(config_.run_dir(), Rank()) + "/cross_check.jsonl")).value();
  EXPECT_EQ(verdict.iteration(), 1);
  EXPECT_EQ(verdict.outcome(), BITWISE_EQUAL);
}

TEST_F(TrainingRunTest, OfJobsThatBeginAtOnceEachGetsADirectory) {
  const auto alone = TestRanks().Split(Rank(), 0, Deadline::After(std::chrono::seconds(20))).value();
  Meet();
  const auto run = TrainingRun::Start(*alone, config_).value();
  Meet();
  EXPECT_TRUE(ReadRunInfo(dir_).ok());
  EXPECT_THAT(ListAttempts(dir_), ::testing::ElementsAre(2, 3));
}

TEST_F(TrainingRunTest, AConfigurationAndAHelperOfOneRankAreAnErrorOnAll) {
  const Config config = config_;
  if (Rank() == 1) config_.mutable_stopwatch()->set_num_warmup_iters(7);
  absl::Status status = TrainingRun::Start(TestRanks(), config_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1"));
  if (Rank() == 1) {
    ASSERT_TRUE(Stopwatch::Get().Enable({}).ok());
  }
  status = TrainingRun::Start(TestRanks(), config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 ("));
}

TEST_F(TrainingRunTest, WhereRankZeroIsLateAllRanksAbortTogetherOrNone) {
  const Deadline deadline = Deadline::After(std::chrono::seconds(60));
  Configure("timeout_seconds: 2 cross_check { abort_on_divergence: true iterations { every: 1 } }");
  config_.clear_dump();
  const auto run = Start();
  // Iteration 0: rank 0 finds the others gone, and all equal. 1: the same, and a difference. 2: all are
  // there.
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (int rank = 1; Rank() == 0 && rank < TestRanks().size(); ++rank)
      ASSERT_TRUE(TestRanks().Receive(rank, 7, deadline).ok());
    Train(*run, Rank() == 1 && iteration == 1 ? 2 : 1);
    if (Rank() != 0) {
      ASSERT_TRUE(TestRanks().Post(0, 7, "").ok());
    }
    ASSERT_TRUE(TestRanks().Barrier(deadline).ok());
  }
  ASSERT_TRUE(AddWeights(1).ok());
  const absl::Status status = run->FinishIter();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("iteration 1: replicas DIFFER"));
  EXPECT_TRUE(run->diverged());
  EXPECT_FALSE(PathExists(MyDirectory() + "/dumps")) << "dumps that were not asked for";
}

TEST_F(TrainingRunTest, DivergenceIsToldToTheProgramOnAllRanks) {
  const auto run = Start();
  std::vector<CrossCheckVerdict> told;
  run->SetOnDivergence([&](const CrossCheckVerdict& verdict) {
    told.push_back(verdict);
    return absl::ResourceExhaustedError("take the last checkpoint");
  });
  ASSERT_TRUE(run->FinishIter().ok());
  ASSERT_TRUE(AddWeights(Rank() == 1 ? 2 : 1).ok());
  EXPECT_EQ(run->FinishIter().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].culprit_ranks(0), 1);
  ASSERT_TRUE(run->FinishIter().ok());
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(TrainingRunTest, TablesComeWhileTheTrainingGoesOnAndGoWhereTheProgramWants) {
  Configure("stopwatch { print_every_n_iters: 2 collective_measurements: 'allreduce' } start_iteration: 40");
  const auto run = Start();
  ::testing::internal::CaptureStdout();
  std::string output;
  SetTextSink([&](std::string_view lines) { output += lines; });
  for (int i = 0; i < 6; ++i) {
    {
      OTT_STOPWATCH_SCOPE("allreduce");
      Meet();
    }
    ASSERT_TRUE(run->FinishIter().ok());
  }
  ASSERT_TRUE(run->Finish().ok());
  SetTextSink({});
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  StopwatchStats stats;
  ASSERT_TRUE(stats.ParseFromString(*ReadFile(MyDirectory() + "/stopwatch.pb")));
  EXPECT_EQ(stats.start_iteration(), 40);
  EXPECT_EQ(ReadFlightRecord(FlightPath(dir_, Rank()))->iteration, 46);
  if (Rank() != 0) {
    EXPECT_EQ(output, "");
    return;
  }
  // Every table is of all ranks at the end of the same iteration.
  for (const int iterations : {2, 4, 6})
    EXPECT_THAT(output, HasSubstr("3 of 3 ranks, " + std::to_string(iterations) + " measured iterations"));
  EXPECT_THAT(output,
              ::testing::ContainsRegex("arrival at   ranks  iterations[^\n]*\n +allreduce +3 +40-45"));
  EXPECT_THAT(output, HasSubstr("of 6, "));
  // The questions that can be asked are answered below each table.
  EXPECT_THAT(output, HasSubstr("\nslowest rank: "));
  EXPECT_THAT(output, HasSubstr("\ncannot tell who holds the others up; that takes "));
  EXPECT_THAT(output, ::testing::Not(HasSubstr("not all ranks came")));
}

TEST_F(TrainingRunTest, StatisticsThatCannotBeWrittenEndNoTraining) {
  config_.clear_dump();
  config_.clear_cross_check();
  config_.mutable_stopwatch()->set_print_every_n_iters(2);
  const auto run = Start();
  // Directories stand where the files would.
  ASSERT_TRUE(MakeDirectories(MyDirectory() + "/stopwatch.pb/is a directory").ok());
  ASSERT_TRUE(MakeDirectories(ClusterStatsPath(dir_) + "/is a directory").ok());
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(run->FinishIter(), absl::OkStatus());
  EXPECT_EQ(run->Finish(), absl::OkStatus());
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(printed, ::testing::ContainsRegex(absl::StrCat(
                           "ott: rank ", Rank(), ": .*/stopwatch.pb: .*; training goes on without it, and ",
                           "further files are only counted\nott: rank ", Rank(),
                           ": [1-9][0-9]* times a file could not be written\n")));
}

TEST_F(TrainingRunTest, ADumpThatCannotBeWrittenIsAnErrorOfFinishAlone) {
  const auto run = Start();
  // Rank 1's dumps have no place.
  if (Rank() == 1) {
    ASSERT_TRUE(WriteFileAtomically(DumpsDirectory(dir_, Rank()), "no directory").ok());
  }
  for (int i = 0; i < 4; ++i) Train(*run);
  EXPECT_EQ(run->Finish().ok(), Rank() != 1);
  EXPECT_FALSE(run->diverged());
}

TEST_F(TrainingRunTest, IterationsAreKeptSuchThatTheirReplayTakesWhatWasMeasured) {
  // Each rank is a stage of a pipeline, and the last does more by design.
  Configure(absl::StrCat("mesh { axes { name: 'stage' size: ", TestRanks().size(), " } }"));
  Configure(
      "stopwatch { collective_measurements: 'allreduce' work_differs_along: 'stage' "
      "collective_groups { measurements: 'allreduce' along: 'stage' } }");
  const auto run = Start();
  ::testing::internal::CaptureStdout();
  constexpr int kBlocks = 3;
  for (int i = 0; i < kBlocks * saved::IterationSampler::kIterationsPerBlock; ++i) {
    {
      OTT_STOPWATCH_SCOPE("forward");
      if (Rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    {
      OTT_STOPWATCH_SCOPE("allreduce");
      Meet();
    }
    ASSERT_TRUE(run->FinishIter().ok());
  }
  ASSERT_TRUE(run->Finish().ok());
  const std::string output = ::testing::internal::GetCapturedStdout();
  if (Rank() != 0) return;
  EXPECT_THAT(output, HasSubstr("\nwhat if: "));
  std::vector<IterationSample> samples(TestRanks().size());
  for (int rank = 0; rank < TestRanks().size(); ++rank) {
    ASSERT_TRUE(samples[rank].ParseFromString(*ReadFile(IterationsPath(dir_, rank))));
    EXPECT_EQ(samples[rank].blocks_size(), kBlocks);
    EXPECT_EQ(samples[rank].like_work(), absl::StrCat("stage ", rank));
    EXPECT_THAT(samples[rank].group(), ::testing::Contains("stage/0"));
  }
  const WhatIfAnswer answer = saved::AnswerWhatIf(saved::MakeJob(std::move(samples)).value());
  EXPECT_EQ(answer.num_steps(), kBlocks * saved::IterationSampler::kIterationsPerBlock - 1);
  EXPECT_LT(answer.replay_error(), kMaxReplayError);
  EXPECT_GT(answer.measured_seconds(), 2e-3);
  EXPECT_EQ(answer.by_stage_size(), TestRanks().size());
  EXPECT_EQ(answer.blamed_ranks_size(), 0) << answer.conclusion();
}

TEST_F(TrainingRunTest, ReferenceThatIsTheRunItselfIsRefused) {
  config_.mutable_cross_check()->set_reference_run(dir_ + "/../run");
  for (const bool is_there : {false, true}) {
    if (is_there && Rank() == 0) std::filesystem::create_directories(dir_);
    Meet();
    EXPECT_EQ(TrainingRun::Start(TestRanks(), config_).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(TrainingRunTest, FilesWithoutDirectoryAndWhatIsNoNumberOfSecondsAreRefused) {
  for (const auto& [config, message] : {std::pair("dump {}", "has `dump` but no `run_dir`"),
                                        {"profile {}", "has `profile` but no `run_dir`"},
                                        {"op_log {}", "has `op_log` but no `run_dir`"},
                                        {"hang { after_seconds: 1 }", "has `hang` but no `run_dir`"},
                                        {"op_ranges { measure: true }", "but no `stopwatch`"},
                                        {"timeout_seconds: -1", "timeout_seconds: -1 is no number"},
                                        {"timeout_seconds: nan", "timeout_seconds: nan is no number"},
                                        {"timeout_seconds: inf", "timeout_seconds: inf is no number"},
                                        {"hang { after_seconds: -1 }", "after_seconds }: -1 is no number"},
                                        {"hang { after_seconds: nan }", "after_seconds }: nan is no number"},
                                        {"start_iteration: -1", "start_iteration -1 is less than 0"}}) {
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(config, &config_));
    const absl::Status status = TrainingRun::Start(TestRanks(), config_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << config;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace ott
