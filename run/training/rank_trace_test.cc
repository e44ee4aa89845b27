#include "ott/run/training/rank_trace.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/trace/trace_reader.h"
#include "ott/dist/comm/ranks_gtest.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

constexpr std::chrono::seconds kTimeout(20);

class RankTraceTest : public ::testing::Test {
 protected:
  // The same directory on all ranks, which each rank makes its own part of.
  RankTraceTest() : dir_(std::string(std::getenv("TEST_TMPDIR")) + "/run") {
    config_.set_run_dir(dir_);
    config_.mutable_profile()->set_wait(1);
    config_.mutable_profile()->set_active(2);
    std::filesystem::remove_all(MyDirectory());
    std::filesystem::create_directories(MyDirectory());
  }

  std::string MyDirectory() const { return RankDirectory(dir_, TestRanks().rank()); }

  std::unique_ptr<RankTrace> Start() {
    return RankTrace::Start(TestRanks(), clock_, config_, kTimeout).value();
  }

  static void Iterate(RankTrace& trace, int iterations) {
    for (int i = 0; i < iterations; ++i) {
      { OTT_STOPWATCH_SCOPE("forward"); }
      ASSERT_EQ(trace.FinishIter(), absl::OkStatus());
    }
  }

  Trace Read(const std::string& name) const { return ReadTrace(MyDirectory() + "/" + name).value(); }

  static std::vector<std::string> Names(const Trace& trace) {
    std::vector<std::string> names;
    for (const TraceEvent& event : trace.events) names.emplace_back(event.name);
    return names;
  }

  // So that all ranks seem to have clocks of their own.
  static int64_t OffsetOf(int rank) { return 1'000'000 * rank; }

  const std::string dir_;
  Config config_;
  ClockAligner clock_{
      *TestRanks().Split(0, 0, Deadline::After(kTimeout)), [] {
        return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count() +
               OffsetOf(TestRanks().rank());
      }};
};

TEST_F(RankTraceTest, LeavesAFileOfEachWindowWithTheClocksOffset) {
  const auto run = Start();
  Iterate(*run, 6);
  ASSERT_TRUE(run->Finish().ok());
  const Trace first = Read("trace.json");
  EXPECT_THAT(Names(first), ElementsAre("ProfilerStep#1", "forward", "ProfilerStep#2", "forward"));
  const Trace second = Read("trace_2.json");
  EXPECT_THAT(Names(second), Contains("ProfilerStep#5"));
  for (const TraceInfo& info : {first.info, second.info}) {
    EXPECT_EQ(info.rank(), TestRanks().rank());
    EXPECT_EQ(info.world_size(), TestRanks().size());
    EXPECT_EQ(info.host(), TestRanks().host(info.rank()));
    EXPECT_FALSE(info.cut());
    EXPECT_TRUE(info.has_clock());
    const int64_t offset = info.clock().begin_nanoseconds() - info.begin_nanoseconds();
    EXPECT_LE(std::abs(offset + OffsetOf(info.rank())), info.clock().error_bound_nanoseconds());
    EXPECT_EQ(info.clock().error_bound_nanoseconds() == 0, info.rank() == 0);
  }
  EXPECT_EQ(second.info.first_step(), 4);
  // No clock was compared since.
  const AlignedTime begin = *clock_.ToRankZero(second.info.begin_nanoseconds());
  const AlignedTime end = *clock_.ToRankZero(second.info.end_nanoseconds());
  EXPECT_EQ(second.info.clock().end_nanoseconds(), end.nanoseconds);
  EXPECT_EQ(second.info.clock().error_bound_nanoseconds(),
            std::max(begin.error_bound_nanoseconds, end.error_bound_nanoseconds));
}

TEST_F(RankTraceTest, WindowThatIsCutIsWrittenByEachRankForItselfAndCompressedWhereAskedFor) {
  config_.mutable_profile()->set_gzip(true);
  auto run = Start();
  Iterate(*run, 2);
  // Ends like a rank that alone has an error.
  run.reset();
  const Trace trace = Read("trace.json.gz");
  EXPECT_TRUE(trace.info.cut());
  EXPECT_TRUE(trace.info.has_clock());
  EXPECT_THAT(Names(trace), Contains("forward"));
}

TEST_F(RankTraceTest, AProfilerThatIsOnAlreadyIsRefusedAndGoesOn) {
  Profiler::Options options;
  options.schedule.active = 1;
  ASSERT_TRUE(Profiler::Get().Enable(options).ok());
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::Status status = RankTrace::Start(TestRanks(), clock_, config_, kTimeout).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  }
  EXPECT_TRUE(Profiler::Get().Stop().ok());
}

TEST_F(RankTraceTest, DirectoryThatIsGoneIsAnErrorOfTheIteration) {
  const auto run = Start();
  Iterate(*run, 2);
  std::filesystem::remove_all(MyDirectory());
  EXPECT_EQ(run->FinishIter().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ott
