#include "ott/questions/hang/watchdog.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/file.h"
#include "ott/core/base/no_threads_for_test.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/dist/comm/simulated_communicator.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/recorder_exchange.h"
#include "ott/questions/hang/run_state.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A watchdog of one rank of two; the other's recorder stands beside it.
class WatchdogTest : public testing::Test {
 protected:
  WatchdogTest() : dir_(testing::TempDir() + "/watchdog") { std::filesystem::remove_all(dir_); }

  HangWatchdog::Options Options() {
    HangWatchdog::Options options;
    options.run_dir = dir_;
    options.after_seconds = 0.2;
    options.on_hang = [this](const HangVerdict& verdict) {
      const std::lock_guard<std::mutex> lock(mutex_);
      verdicts_.push_back(verdict);
      called_.notify_all();
    };
    return options;
  }

  size_t WaitForVerdicts(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    called_.wait_for(lock, std::chrono::seconds(60), [&] { return verdicts_.size() >= count; });
    return verdicts_.size();
  }

  void WaitForBeats(int rank, int count) {
    const auto last_beat = [&] { return ReadFlightRecord(FlightPath(dir_, rank))->beat_ns; };
    for (int i = 0; i < count; ++i) {
      for (const int64_t before = last_beat(); last_beat() == before;) std::this_thread::yield();
    }
  }

  // With clocks that go.
  void CreateTwo() {
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(MakeDirectories(RankDirectory(dir_, rank)).ok());
      recorders_.push_back(
          *FlightRecorder::Create({FlightPath(dir_, rank), rank, 2, "node1"}, Clock::Steady()));
      sums_.push_back(recorders_.back()->Add("sum", FlightOperation::Collective()));
      data_.push_back(recorders_.back()->Add("data", {}));
    }
    FlightRecorder::Begin(data_[1], Clock::Steady().Ticks(), 0);
    FlightRecorder::Begin(sums_[0], Clock::Steady().Ticks(), 0);
  }

  const std::string dir_;
  std::vector<FlightRecorder*> recorders_;
  std::vector<FlightRecorder::Measurement*> sums_;
  std::vector<FlightRecorder::Measurement*> data_;
  std::mutex mutex_;
  std::condition_variable called_;
  std::vector<HangVerdict> verdicts_;
};

TEST(HangWatchdog, DoesWhatIsConfigured) {
  HangConfig config;
  EXPECT_EQ(HangWatchdog::FromConfig(config).reaction, HangWatchdog::Reaction::kGoOn);
  config.set_after_seconds(7);
  config.set_reaction(HangConfig::REACTION_ABORT);
  EXPECT_EQ(HangWatchdog::FromConfig(config).reaction, HangWatchdog::Reaction::kAbort);
  EXPECT_EQ(HangWatchdog::FromConfig(config).after_seconds, 7);
}

TEST_F(WatchdogTest, WithoutAFreeThreadItSaysThatNothingIsWatched) {
  CreateTwo();
  const NoThreads no_threads;
  testing::internal::CaptureStderr();
  { const HangWatchdog watchdog(recorders_[0], Clock::Steady(), Options()); }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("no thread could be started"));
}

TEST_F(WatchdogTest, ARankThatStandsTellsTheProgramWhyAndKeepsTheVerdict) {
  CreateTwo();
  const HangWatchdog watchdog(recorders_[0], Clock::Steady(), Options());
  ASSERT_EQ(WaitForVerdicts(1), 1u);
  EXPECT_THAT(verdicts_[0].culprits(), ElementsAre(1)) << verdicts_[0].verdict();
  EXPECT_THAT(*ReadFile(HangVerdictPath(dir_)), HasSubstr("\"NEVER_CAME\""));
  // Once, however often its heart beats then.
  WaitForBeats(0, 3);
  EXPECT_EQ(WaitForVerdicts(1), 1u);
}

TEST_F(WatchdogTest, ARankThatMovesTellsNothing) {
  CreateTwo();
  HangWatchdog::Options options = Options();
  options.on_hang = [](const HangVerdict& verdict) { ADD_FAILURE() << verdict.verdict(); };
  // By its clock it has just begun something.
  const HangWatchdog moves(recorders_[1], Clock([] { return uint64_t{1}; }), options);
  const HangWatchdog stands(recorders_[0], Clock::Steady(), Options());
  EXPECT_EQ(WaitForVerdicts(1), 1u);
}

TEST_F(WatchdogTest, OneRankTakesTheTurnUntilItEndsItOrIsLongGone) {
  ASSERT_TRUE(MakeDirectories(dir_).ok());
  const RecorderExchange::Answers answers = HangWatchdog::AnswersOf(dir_, 0);
  const auto age_by = [&](int seconds) {
    const auto path = std::filesystem::path(dir_) / "hang.turn";
    std::filesystem::last_write_time(path,
                                     std::filesystem::last_write_time(path) - std::chrono::seconds(seconds));
  };
  EXPECT_TRUE(answers.take_turn());
  EXPECT_FALSE(answers.take_turn());
  age_by(30);
  EXPECT_FALSE(answers.take_turn());
  age_by(31);
  EXPECT_TRUE(answers.take_turn());
  EXPECT_FALSE(answers.take_turn());
  answers.set_verdict("");
  EXPECT_TRUE(answers.take_turn());
  answers.set_verdict("{}");
  EXPECT_EQ(ReadFile(dir_ + "/hang.json").value(), "{}");
  EXPECT_FALSE(answers.take_turn());
}

TEST_F(WatchdogTest, TheVerdictOfAnotherRankIsTakenOver) {
  CreateTwo();
  const HangWatchdog first(recorders_[0], Clock::Steady(), Options());
  const HangWatchdog second(recorders_[1], Clock::Steady(), Options());
  ASSERT_EQ(WaitForVerdicts(2), 2u);
  EXPECT_EQ(verdicts_[0].verdict(), verdicts_[1].verdict());
  for (const int rank : {0, 1}) WaitForBeats(rank, 3);
  EXPECT_EQ(WaitForVerdicts(2), 2u);
}

// Ranks 0 and 1 have a directory of their own, as on another host, and the first of them is gone.
TEST_F(WatchdogTest, RanksOfOtherHostsAreAskedInTheirOrderAndTold) {
  static std::atomic<bool> goes{false};
  std::vector<FlightRecorder*> recorders;
  std::vector<std::string> asked, told;
  std::vector<std::unique_ptr<RecorderExchange>> exchanges(3);
  const auto communicators = CreateSimulatedCommunicators({"node", "node", "node"});
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string path = FlightPath(rank == 2 ? dir_ : dir_ + "_elsewhere", rank);
    ASSERT_TRUE(MakeDirectories(std::filesystem::path(path).parent_path().string()).ok());
    recorders.push_back(*FlightRecorder::Create({path, rank, 3, "node"}, Clock::Steady()));
    FlightRecorder::Begin(rank == 2 ? recorders[rank]->Add("sum", FlightOperation::Collective())
                                    : recorders[rank]->Add(absl::StrCat("data of ", rank), {}),
                          Clock::Steady().Ticks(), 0);
    RecorderExchange::Answers answers;
    answers.recorder = [path] { return ReadFile(path); };
    answers.take_turn = [&asked, rank] {
      asked.push_back(absl::StrCat(rank));
      return true;
    };
    answers.set_verdict = [&told, rank](const std::string& verdict) {
      told.push_back(absl::StrCat(rank, verdict));
    };
    threads.emplace_back([&exchanges, &ranks = *communicators[rank], answers, rank] {
      exchanges[rank] =
          RecorderExchange::Start(ranks, answers, Deadline::After(std::chrono::seconds(60))).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  exchanges[0].reset();
  {
    HangWatchdog watchdog(recorders[2], Clock([] { return goes ? Clock::Steady().Ticks() : 1; }), Options());
    watchdog.SetExchange(exchanges[2].get());
    goes = true;
    ASSERT_EQ(WaitForVerdicts(1), 1u);
  }
  exchanges[1].reset();
  EXPECT_THAT(asked, ElementsAre("1"));
  EXPECT_THAT(told, ElementsAre("1" + *ReadFile(HangVerdictPath(dir_))));
  EXPECT_THAT(told[0], testing::AllOf(HasSubstr("data of 1"), testing::Not(HasSubstr("data of 0"))));
}

TEST_F(WatchdogTest, AJobThatHangsAgainIsJudgedAgain) {
  CreateTwo();
  const HangWatchdog watchdog(recorders_[0], Clock::Steady(), Options());
  ASSERT_EQ(WaitForVerdicts(1), 1u);
  FlightRecorder::End(data_[1], Clock::Steady().Ticks(), 0);
  FlightRecorder::Begin(sums_[1], Clock::Steady().Ticks(), 0);
  FlightRecorder::End(sums_[1], Clock::Steady().Ticks(), 0);
  FlightRecorder::Begin(data_[1], Clock::Steady().Ticks(), 0);
  FlightRecorder::End(sums_[0], Clock::Steady().Ticks(), 0);
  FlightRecorder::Begin(sums_[0], Clock::Steady().Ticks(), 0);
  ASSERT_EQ(WaitForVerdicts(2), 2u);
  EXPECT_EQ(verdicts_[1].causes(0).sequence(), 2u);
}

TEST_F(WatchdogTest, WhatIsFoundLaterDoesNotReplaceWhatStillHolds) {
  CreateTwo();
  const HangWatchdog watchdog(recorders_[0], Clock::Steady(), Options());
  ASSERT_EQ(WaitForVerdicts(1), 1u);
  // Rank 0 gave up, and stands with nobody that waits; rank 1 has not moved.
  FlightRecorder::End(sums_[0], Clock::Steady().Ticks(), 0);
  FlightRecorder::Begin(data_[0], Clock::Steady().Ticks(), 0);
  ASSERT_EQ(WaitForVerdicts(2), 2u);
  EXPECT_EQ(verdicts_[1].verdict(), verdicts_[0].verdict());
  EXPECT_THAT(*ReadFile(HangVerdictPath(dir_)), HasSubstr("\"NEVER_CAME\""));
}

TEST_F(WatchdogTest, EndsTheProcessWhereThatIsAskedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::filesystem::remove_all(dir_);
        CreateTwo();
        HangWatchdog::Options options = Options();
        options.reaction = HangWatchdog::Reaction::kAbort;
        const HangWatchdog watchdog(recorders_[0], Clock::Steady(), options);
        WaitForVerdicts(2);
      },
      "rank 1 \\(node1\\) never came to sum #1 of group world");
}

}  // namespace
}  // namespace ott
