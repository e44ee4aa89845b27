#include "ott/core/flight/flight_recorder.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/flight/flight_record.h"

namespace ott {
namespace {

using internal::FlightEventType;
using testing::ElementsAre;
using testing::HasSubstr;

class FlightRecorderTest : public testing::Test {
 protected:
  FlightRecorderTest() : path_(testing::TempDir() + "/flight") { std::filesystem::remove(path_); }

  FlightRecorder* Create(int rank = 0, int world_size = 4) {
    return *FlightRecorder::Create({path_, rank, world_size, "node1"}, Clock::Fastest());
  }

  FlightRecord Read() {
    const absl::StatusOr<FlightRecord> record = ReadFlightRecord(path_);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(FlightRecord());
  }

  static FlightOperation Collective(std::string group, std::vector<int> ranks = {}) {
    FlightOperation operation;
    operation.role = FlightRole::kCollective;
    operation.group = std::move(group);
    operation.ranks = std::move(ranks);
    return operation;
  }

  // Returns how the process ended.
  static int RunInChild(const std::function<void()>& work) {
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  }

  static uint64_t Now() { return Clock::Fastest().Ticks(); }

  const std::string path_;
};

TEST_F(FlightRecorderTest, WhatRunsIsReadWithItsGroupAndNumber) {
  FlightRecorder* const recorder = Create(3);
  FlightRecorder::Measurement* const forward = recorder->Add("forward", {});
  FlightOperation operation = Collective("dp0", {1, 3});
  operation.kind = "allreduce";
  FlightRecorder::Measurement* const allreduce = recorder->Add("sum", operation);
  FlightRecorder::Begin(forward, Now(), 7);
  FlightRecorder::End(forward, Now(), 7);
  FlightRecorder::Begin(allreduce, Now(), 7, 1024);
  FlightRecorder::End(allreduce, Now(), 7);
  recorder->FinishIter(Now(), 7);
  FlightRecorder::Begin(allreduce, Now(), 7, 2048);

  const FlightRecord record = Read();
  EXPECT_EQ(record.rank, 3);
  EXPECT_EQ(record.host, "node1");
  EXPECT_EQ(record.process, getpid());
  EXPECT_EQ(record.iteration, 1);
  EXPECT_EQ(record.end, internal::FlightEnd::kRuns);
  ASSERT_EQ(record.groups.size(), 1u);
  EXPECT_EQ(record.groups[0].name, "dp0");
  EXPECT_THAT(record.groups[0].Ranks(), ElementsAre(1, 3));
  EXPECT_EQ(record.groups[0].entered, 2);
  EXPECT_EQ(record.groups[0].completed, 1);
  ASSERT_EQ(record.measurements.size(), 2u);
  EXPECT_FALSE(record.measurements[0].runs);
  EXPECT_TRUE(record.measurements[1].runs);
  EXPECT_EQ(record.measurements[1].kind, "allreduce");
  EXPECT_EQ(record.measurements[1].sequence, 2);
  EXPECT_EQ(record.measurements[1].iteration, 1);
  EXPECT_EQ(record.measurements[1].size, 2048);
  ASSERT_EQ(record.events.size(), 6u);
  EXPECT_EQ(record.events[2].type, FlightEventType::kBegin);
  EXPECT_EQ(record.events[2].size, 1024);
  EXPECT_EQ(record.events[4].type, FlightEventType::kFinishIter);
}

TEST_F(FlightRecorderTest, TimesAreOfTheDay) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Measurement* const work = recorder->Add("work", {});
  const auto before = std::chrono::system_clock::now().time_since_epoch();
  FlightRecorder::Begin(work, Now(), 0);
  const auto after = std::chrono::system_clock::now().time_since_epoch();
  recorder->Beat();
  // The calibration of the counter is off by less than this.
  constexpr auto kError = std::chrono::milliseconds(50);
  const std::chrono::nanoseconds begin(Read().measurements[0].begin_ns);
  EXPECT_GT(begin, before - kError);
  EXPECT_LT(begin, after + kError);
}

TEST_F(FlightRecorderTest, TheLastEventsAreKept) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Measurement* const sum = recorder->Add("sum", Collective(""));
  for (int i = 0; i < 5000; ++i) {
    FlightRecorder::Begin(sum, Now(), 0);
    FlightRecorder::End(sum, Now(), 0);
  }
  const FlightRecord record = Read();
  EXPECT_GT(record.events.size(), 1000u);
  EXPECT_EQ(record.events.back().sequence, 5000);
  for (size_t i = 1; i < record.events.size(); ++i) ASSERT_GE(record.events[i].ns, record.events[i - 1].ns);
  EXPECT_THAT(record.groups[0].Ranks(), ElementsAre(0, 1, 2, 3));
}

TEST_F(FlightRecorderTest, GroupsOfStridesAndBlocksKeepTheirMembers) {
  std::vector<int> all_of_stage;
  std::vector<int> blocks;
  for (int i = 0; i < 2048; ++i) all_of_stage.push_back(8 * i + 3);
  for (int i = 0; i < 64; ++i) blocks.push_back(i < 32 ? i : 1000 + i);
  FlightRecorder* const recorder = Create(3, 16384);
  recorder->Add("a", Collective("stage", all_of_stage));
  recorder->Add("b", Collective("blocks", blocks));
  recorder->Add("c", Collective("by name"));
  const FlightRecord record = Read();
  EXPECT_EQ(record.groups[0].Ranks(), all_of_stage);
  EXPECT_EQ(record.groups[1].Ranks(), blocks);
  EXPECT_TRUE(record.groups[2].ranges.empty());
}

TEST_F(FlightRecorderTest, WhatDoesNotFitIsCounted) {
  FlightRecorder* const recorder = Create();
  for (uint32_t i = 0; i < internal::kFlightSlots; ++i)
    EXPECT_NE(recorder->Add("m" + std::to_string(i), {}), nullptr);
  EXPECT_EQ(recorder->Add("one more", {}), nullptr);
  EXPECT_EQ(Read().num_dropped, 1);
}

TEST_F(FlightRecorderTest, EventsOfManyThreadsAreNotMixed) {
  FlightRecorder* const recorder = Create();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    FlightRecorder::Measurement* const measurement = recorder->Add("thread" + std::to_string(i), {});
    threads.emplace_back([measurement, i] {
      for (int n = 0; n < 20000; ++n) {
        FlightRecorder::Begin(measurement, Now(), i);
        FlightRecorder::End(measurement, Now(), i);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    for (const FlightRecord::Event& event : Read().events) ASSERT_EQ(event.measurement, event.thread);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(FlightRecorderTest, SurvivesAKill) {
  EXPECT_TRUE(WIFSIGNALED(RunInChild([this] {
    FlightRecorder::Begin(Create()->Add("forward", {}), Now(), 0);
    kill(getpid(), SIGKILL);
  })));
  const FlightRecord record = Read();
  EXPECT_NE(record.process, getpid());
  ASSERT_EQ(record.measurements.size(), 1u);
  EXPECT_TRUE(record.measurements[0].runs);
}

TEST_F(FlightRecorderTest, AChildThatIsForkedWritesNothingThere) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Measurement* const work = recorder->Add("work", {});
  EXPECT_EQ(RunInChild([&] {
              FlightRecorder::Begin(work, Now(), 0);
              recorder->FinishIter(Now(), 0);
              recorder->Beat();
            }),
            0);
  EXPECT_EQ(Read().iteration, 0);
  EXPECT_TRUE(Read().events.empty());
}

TEST_F(FlightRecorderTest, WhereThereIsNoRoomCreatingItIsTheError) {
  EXPECT_EQ(RunInChild([this] {
              const rlimit limit = {4096, 4096};
              setrlimit(RLIMIT_FSIZE, &limit);
              if (FlightRecorder::Create({path_, 0, 1, ""}, Clock::Steady()).ok()) _exit(1);
            }),
            0);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_THAT(
      FlightRecorder::Create({path_ + "/absent/flight", 0, 1, ""}, Clock::Steady()).status().message(),
      HasSubstr("/absent/flight: cannot be created"));
}

TEST_F(FlightRecorderTest, AFileCutAnywhereIsAnError) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Begin(recorder->Add("sum", Collective("dp0")), Now(), 0);
  const std::string whole = *ReadFile(path_);
  ASSERT_TRUE(ParseFlightRecord(whole).ok());
  for (size_t size = 0; size < internal::kFlightHeaderBytes; ++size) {
    ASSERT_FALSE(ParseFlightRecord(whole.substr(0, size)).ok()) << size;
  }
  for (size_t size = internal::kFlightHeaderBytes; size + 64 < whole.size(); size += 97) {
    ASSERT_EQ(ParseFlightRecord(whole.substr(0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(FlightRecorderTest, AnyByteOfTheHeaderMayBeDamaged) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Begin(recorder->Add("sum", Collective("dp0", {0, 2})), Now(), 0);
  const std::string whole = *ReadFile(path_);
  for (size_t at = 0; at < internal::kFlightEventsOffset; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    const absl::StatusOr<FlightRecord> record = ParseFlightRecord(damaged);
    if (record.ok()) {
      ASSERT_LE(record->groups.size(), internal::kFlightGroups);
    } else {
      ASSERT_FALSE(record.status().message().empty());
    }
  }
}

TEST_F(FlightRecorderTest, WhatNoJobHasIsRefusedAndNamed) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Begin(recorder->Add("sum", Collective("dp0", {0, 2})), Now(), 0);
  const std::string whole = *ReadFile(path_);
  using Damage = std::function<void(internal::FlightHeader&, internal::FlightSlot&, internal::FlightGroup&)>;
  const std::string no_ranks = "group dp0 has ranks that the job has not";
  const std::pair<Damage, std::string> damages[] = {
      {[](auto& header, auto&, auto&) { header.num_events = 0; }, "of another version"},
      {[](auto& header, auto&, auto&) { header.num_slots = 0; }, "of another version"},
      {[](auto& header, auto&, auto&) { header.rank = 4; }, "rank 4 of 4"},
      {[](auto& header, auto&, auto&) { header.rank = -1; }, "rank -1 of 4"},
      {[](auto&, auto&, auto& group) { group.num_ranges = 9; }, "a group of too many ranges"},
      {[](auto&, auto&, auto& group) { group.ranges[0].first = -1; }, no_ranks},
      {[](auto&, auto&, auto& group) { group.ranges[0].stride = 0; }, no_ranks},
      {[](auto&, auto&, auto& group) { group.ranges[0].count = 0; }, no_ranks},
      {[](auto&, auto&, auto& group) { group.ranges[0].count = 3; }, no_ranks},
      {[](auto&, auto& slot, auto&) { slot.role = static_cast<FlightRole>(9); }, "of an unknown role"},
      {[](auto&, auto& slot, auto&) { slot.group = 1; }, "measurement sum of a group that is not there"},
      {[](auto&, auto& slot, auto&) { slot.role = FlightRole::kSend; }, "with a peer that is not there"},
  };
  for (const auto& [damage, message] : damages) {
    std::string damaged = whole;
    char* const slots = damaged.data() + internal::kFlightHeaderBytes;
    char* const groups = slots + internal::kFlightSlots * sizeof(internal::FlightSlot);
    damage(*reinterpret_cast<internal::FlightHeader*>(damaged.data()),
           *reinterpret_cast<internal::FlightSlot*>(slots),
           *reinterpret_cast<internal::FlightGroup*>(groups));
    EXPECT_THAT(ParseFlightRecord(damaged).status().message(), HasSubstr(message));
  }
}

TEST_F(FlightRecorderTest, WhatIsNoFileOfItsOwnIsRefused) {
  EXPECT_EQ(ReadFlightRecord(path_).status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(ReadFlightRecord(path_).status().message(), "no regular file");
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("flight", path_);
  EXPECT_FALSE(ReadFlightRecord(path_).ok());
  std::filesystem::remove(path_);
  std::ofstream(path_) << "junk of some length";
  EXPECT_THAT(ReadFlightRecord(path_).status().message(), HasSubstr("no flight recorder's file"));
  ASSERT_EQ(truncate(path_.c_str(), off_t{1} << 40), 0);
  EXPECT_FALSE(ReadFlightRecord(path_).ok());
}

}  // namespace
}  // namespace ott
