#include "ott/core/flight/flight_recorder.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/flight/flight_record.h"
#include "ott/core/flight/process.h"

namespace {

std::vector<std::tuple<void*, size_t, int>> synchronized;

}  // namespace

// Stands before the C library's.
extern "C" int msync(void* data, size_t bytes, int flags) {
  synchronized.emplace_back(data, bytes, flags);
  return 0;
}

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

auto Fields(const FlightRecord::Measurement& m) {
  return std::make_tuple(m.name, m.kind, m.role, m.role == FlightRole::kWork ? 0 : m.group, m.peer,
                         m.synchronizes, m.size, m.begin_ns, m.end_ns, m.sequence, m.iteration, m.thread,
                         m.runs);
}

auto Fields(const FlightRecord::Event& e) {
  return std::make_tuple(e.ns, e.type, e.measurement, e.thread, e.sequence, e.iteration, e.size);
}

// Returns a list of what Fields() says.
template <typename T>
auto AllFields(const std::vector<T>& list) {
  std::vector<decltype(Fields(list[0]))> all;
  for (const T& one : list) all.push_back(Fields(one));
  return all;
}

TEST_F(FlightRecorderTest, OfAnyOperationsTheFileHoldsWhatWasDone) {
  static uint64_t now;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](uint32_t end) { return static_cast<int>(random() % end); };
    std::filesystem::remove(path_);
    now = 1000;
    uint64_t last_event = 0;
    const int world_size = 4 + below(3), rank = below(4);
    FlightRecord expected;
    expected.iteration = below(2) * below(100);
    FlightRecorder* const recorder = *FlightRecorder::Create(
        {path_, rank, world_size, std::string(seed, 'h'), "job", 7, 32 << 10, expected.iteration},
        Clock([] { return now; }));
    std::vector<FlightRecorder::Measurement*> measurements;
    std::map<std::string, size_t> group_of;
    std::map<std::tuple<std::string, std::string, FlightRole, std::string, int>, size_t> measurement_of;
    const auto add = [&] {
      const std::string name(std::vector<size_t>{0, 1, 1, 2, 70}[random() % 5], 'm');
      FlightOperation operation;
      operation.role = static_cast<FlightRole>(below(4));
      operation.group = std::vector<std::string>{"", "g", "unknown"}[random() % 3];
      if (operation.group == "g") operation.ranks = {3, 1, 0, 1};
      if (operation.role >= FlightRole::kSend) operation.peer = below(3);
      operation.kind = below(2) == 0 ? "" : "kind";
      operation.size = below(3) - 1;
      operation.synchronizes = below(2) == 0;
      std::string group = operation.group.empty() ? "world" : operation.group;
      if (operation.role == FlightRole::kWork) group.clear();
      const auto [of_group, is_new_group] = group_of.try_emplace(group, expected.groups.size());
      if (is_new_group && !group.empty()) expected.groups.emplace_back().name = group;
      FlightRecorder::Measurement* const added = recorder->Add(name, operation);
      ASSERT_EQ(added == nullptr, name.empty());
      expected.num_dropped += name.empty();
      if (name.empty()) return;
      const auto [known, is_new] = measurement_of.try_emplace(
          {name.substr(0, 63), operation.kind, operation.role, group, operation.peer}, measurements.size());
      if (is_new) {
        measurements.push_back(added);
        FlightRecord::Measurement& measurement = expected.measurements.emplace_back();
        measurement.name = name.substr(0, 63);
        measurement.kind = operation.kind;
        measurement.role = operation.role;
        measurement.group = static_cast<int>(of_group->second);
        measurement.peer = operation.peer;
        measurement.synchronizes = operation.synchronizes;
      }
      ASSERT_EQ(added, measurements[known->second]);
      expected.measurements[known->second].size = operation.size;
    };
    for (int i = 0, size = below(1000); i < size; ++i) {
      EXPECT_EQ(recorder->LastEvent(), last_event);
      now += static_cast<uint64_t>(below(3));
      const int thread = below(256);
      if (below(10) == 0 && measurements.size() < 50) add();
      if (below(20) == 0) recorder->Beat();
      FlightRecord::Event event;
      event.ns = static_cast<int64_t>(now);
      event.thread = thread;
      event.iteration = expected.iteration;
      if (below(10) == 0 || measurements.empty()) {
        event.type = FlightEventType::kFinishIter;
        recorder->FinishIter(now, thread);
        ++expected.iteration;
      } else {
        event.measurement = below(static_cast<uint32_t>(measurements.size()));
        FlightRecord::Measurement& of = expected.measurements[static_cast<size_t>(event.measurement)];
        FlightRecorder::Measurement* const measurement = measurements[static_cast<size_t>(event.measurement)];
        const bool counts = of.role == FlightRole::kCollective;
        FlightRecord::Group* const group = counts ? &expected.groups[static_cast<size_t>(of.group)] : nullptr;
        if (below(2) == 0) {
          event.type = FlightEventType::kBegin;
          const int64_t bytes = below(3) - 1;
          FlightRecorder::Begin(measurement, now, thread, bytes);
          of.begin_ns = event.ns;
          of.thread = thread;
          if (counts) {
            of.sequence = ++group->entered;
            of.iteration = expected.iteration;
            if (bytes >= 0) of.size = bytes;
          }
        } else {
          event.type = FlightEventType::kEnd;
          FlightRecorder::End(measurement, now, thread);
          of.end_ns = event.ns;
          if (counts) group->completed = std::max(group->completed, of.sequence);
        }
        of.runs = of.begin_ns > of.end_ns;
        event.sequence = of.sequence;
        event.size = of.size;
        last_event = now;
      }
      expected.last_event_ns = event.ns;
      expected.events.push_back(event);
    }
    const int how = below(4);
    if (how == 1 || how == 2) recorder->SetFinished();
    if (how == 0) recorder->SetTerminated("a process of a long name");
    if (how == 0) recorder->SetTerminated("another");
    if (how != 1) recorder->SetLeft();

    std::string bytes = *ReadFile(path_);
    auto& header = *reinterpret_cast<internal::FlightHeader*>(bytes.data());
    // Threads that were killed had taken places of events, and not written there.
    const int num_unwritten = below(3);
    header.next_event += static_cast<uint64_t>(num_unwritten);
    // Another thread ended an operation after the number of those that were begun was read.
    auto* const groups = reinterpret_cast<internal::FlightGroup*>(
        bytes.data() + internal::kFlightHeaderBytes + internal::kFlightSlots * sizeof(internal::FlightSlot));
    for (size_t i = 0; i < expected.groups.size(); ++i) {
      if (below(4) > 0) continue;
      groups[i].completed = static_cast<uint64_t>(expected.groups[i].entered + 1);
      expected.groups[i].completed = expected.groups[i].entered;
    }
    // A thread was killed between an operation's time and its event.
    if (!measurements.empty() && below(2) == 0) {
      const size_t at = random() % measurements.size();
      auto& slot = reinterpret_cast<internal::FlightSlot*>(bytes.data() + internal::kFlightHeaderBytes)[at];
      FlightRecord::Measurement& of = expected.measurements[at];
      const bool begins = below(2) == 0;
      (begins ? slot.begin : slot.end) = ++now;
      (begins ? of.begin_ns : of.end_ns) = expected.last_event_ns = static_cast<int64_t>(now);
      of.runs = of.begin_ns > of.end_ns;
    }
    FlightRecord record = *ParseFlightRecord(bytes);
    // A tick is a nanosecond; the heartbeat says of which.
    now = 0;
    const int64_t shift = record.beat_ns - static_cast<int64_t>(header.beat_ticks.load());
    for (auto& of : expected.measurements) {
      for (int64_t* const ns : {&of.begin_ns, &of.end_ns}) *ns += *ns > 0 ? shift : 0;
    }
    for (auto& event : expected.events) event.ns += shift;
    const int most = ((32 << 10) - internal::kFlightEventsOffset) / sizeof(internal::FlightEvent);
    const int num_lost = static_cast<int>(expected.events.size()) + num_unwritten - most;
    expected.events.erase(expected.events.begin(), expected.events.begin() + std::max(0, num_lost));
    EXPECT_EQ(AllFields(record.measurements), AllFields(expected.measurements));
    EXPECT_EQ(AllFields(record.events), AllFields(expected.events));
    EXPECT_EQ(record.last_event_ns, expected.last_event_ns + (expected.last_event_ns > 0 ? shift : 0));
    ASSERT_EQ(record.groups.size(), expected.groups.size());
    for (size_t i = 0; i < record.groups.size(); ++i) {
      const FlightRecord::Group& group = record.groups[i];
      EXPECT_EQ(group.name, expected.groups[i].name);
      EXPECT_EQ(group.entered, expected.groups[i].entered);
      EXPECT_EQ(group.completed, expected.groups[i].completed);
      EXPECT_EQ(group.ranges.empty(), group.name == "unknown");
      EXPECT_EQ(group.Ranks().size(), group.name == "world" ? world_size : group.name == "g" ? 3 : 0);
    }
    EXPECT_EQ(record.iteration, expected.iteration);
    EXPECT_EQ(record.num_dropped, expected.num_dropped);
    EXPECT_EQ(std::make_tuple(record.rank, record.world_size, record.host, record.job, record.job_ends_s),
              std::make_tuple(rank, world_size, std::string(std::min(seed, 63u), 'h'), "job", 7));
    EXPECT_EQ(std::make_tuple(record.machine, record.process, record.process_started),
              std::make_tuple(ThisMachine(), getpid(), ReadProcess(getpid()).started));
    EXPECT_EQ(record.end, how == 3               ? internal::FlightEnd::kLeft
                          : how == 1 || how == 2 ? internal::FlightEnd::kFinished
                                                 : internal::FlightEnd::kRuns);
    EXPECT_EQ(record.terminated_by, how == 0 ? "a process of a " : "");
    EXPECT_EQ(record.terminated_ns >= record.beats[0].ns, how == 0);
    EXPECT_TRUE(record.notes_termination);
    const uint64_t num_beats = header.next_beat.load();
    EXPECT_EQ(record.beats.size(), std::min<uint64_t>(num_beats, internal::kFlightBeats));
    EXPECT_EQ(record.beats.back().ns, record.beat_ns);
    for (const FlightRecord::Beat& beat : record.beats) {
      EXPECT_GT(beat.cpu_ns, 0);
      EXPECT_LE(beat.cpu_ns, record.beats.back().cpu_ns);
      EXPECT_LE(beat.ns, record.beat_ns);
    }
  }
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

TEST_F(FlightRecorderTest, WhoReadsWithinAHeartbeatGetsTimesOfTheOneBeforeOrAfter) {
  static uint64_t now;
  now = 1000;
  FlightRecorder* const recorder =
      *FlightRecorder::Create({path_, 0, 1, "h", "", 0, 32 << 10}, Clock([] { return now; }));
  FlightRecorder::Begin(recorder->Add("work", {}), now, 0);
  const std::string before = *ReadFile(path_);
  now += 1000000000;
  recorder->Beat();
  const std::string after = *ReadFile(path_);
  constexpr size_t kWord = sizeof(uint64_t);
  std::vector<size_t> changed;
  for (size_t i = 0; i < before.size(); i += kWord) {
    if (before.compare(i, kWord, after, i, kWord) != 0) changed.push_back(i);
  }
  ASSERT_GE(changed.size(), 2u);
  for (uint32_t seen = 0; seen < 1u << changed.size(); ++seen) {
    std::string bytes = before;
    for (size_t i = 0; i < changed.size(); ++i) {
      if ((seen >> i & 1) != 0) bytes.replace(changed[i], kWord, after, changed[i], kWord);
    }
    EXPECT_THAT(
        ParseFlightRecord(bytes)->events[0].ns,
        testing::AnyOf(ParseFlightRecord(before)->events[0].ns, ParseFlightRecord(after)->events[0].ns))
        << seen;
  }
}

TEST_F(FlightRecorderTest, GroupsOfEightRangesAtMostKeepTheirMembers) {
  std::vector<int> all_of_stage, blocks, squares;
  for (int i = 0; i < 2048; ++i) all_of_stage.push_back(8 * i + 3);
  for (int i = 0; i < 64; ++i) blocks.push_back(i < 32 ? i : 1000 + i);
  // No three of them are one range.
  for (int i = 0; i < 17; ++i) squares.push_back(i * i);
  const std::vector<int> fewer(squares.begin(), squares.end() - 1);
  FlightRecorder* const recorder = Create(3, 16384);
  for (const auto& ranks : {all_of_stage, blocks, fewer, squares, {}})
    recorder->Add("a", FlightOperation::Collective(std::to_string(ranks.size()), ranks));
  std::vector<std::vector<int>> kept;
  for (const FlightRecord::Group& group : Read().groups) kept.push_back(group.Ranks());
  EXPECT_THAT(kept, ElementsAre(all_of_stage, blocks, fewer, std::vector<int>(), std::vector<int>()));
}

TEST_F(FlightRecorderTest, RanksThatTheJobHasNotLeaveTheRecordReadable) {
  FlightRecorder* const recorder = Create();
  for (const int rank : {-1, 4, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}) {
    recorder->Add("a", FlightOperation::Collective("of " + std::to_string(rank), {0, rank}));
    EXPECT_EQ(recorder->Add("b", FlightOperation::Send(rank)), nullptr);
    EXPECT_EQ(recorder->Add("b", FlightOperation::Receive(rank)), nullptr);
  }
  recorder->Add("c", FlightOperation::Send(2));
  recorder->Add("d", FlightOperation::Receive(3));
  const FlightRecord record = Read();
  EXPECT_EQ(record.measurements[4].peer, 2);
  EXPECT_EQ(record.measurements[5].peer, 3);
  ASSERT_EQ(record.groups.size(), 5);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(record.groups[i].ranges.empty());
  EXPECT_EQ(record.num_dropped, 8);
}

TEST_F(FlightRecorderTest, WhatDoesNotFitIsCounted) {
  FlightRecorder* const recorder = Create();
  constexpr uint32_t kGroups = internal::kFlightGroups;
  for (uint32_t i = 0; i <= kGroups; ++i)
    EXPECT_EQ(recorder->Add("a", FlightOperation::Collective(std::to_string(i))) == nullptr, i == kGroups);
  for (uint32_t i = kGroups; i <= internal::kFlightSlots; ++i)
    EXPECT_EQ(recorder->Add("m" + std::to_string(i), {}) == nullptr, i == internal::kFlightSlots);
  EXPECT_EQ(Read().num_dropped, 2);
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
  EXPECT_TRUE(Read().measurements.at(0).runs);
}

TEST_F(FlightRecorderTest, ATerminationIsNotedByItsSenderAndEndsTheProcess) {
  for (const char* const name : {"a", "fifteen letters"}) {
    std::filesystem::remove(path_);
    const int status = RunInChild([this, name] {
      prctl(PR_SET_NAME, name);
      Create();
      kill(getpid(), SIGTERM);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
    EXPECT_EQ(Read().terminated_by, name);
    EXPECT_GE(Read().terminated_ns, Read().beat_ns);
  }
}

TEST_F(FlightRecorderTest, ProgramsKeepTheirOwnHandlersOfTerminations) {
  for (const int own : {0, 1, 2}) {
    std::filesystem::remove(path_);
    const int status = RunInChild([this, own] {
      struct sigaction action = {};
      action.sa_handler = own == 0 ? SIG_IGN : [](int) { _exit(1); };
      if (own == 2) {
        action.sa_sigaction = [](int, siginfo_t*, void*) { _exit(2); };
        action.sa_flags = SA_SIGINFO;
      }
      sigaction(SIGTERM, &action, nullptr);
      Create();
      kill(getpid(), SIGTERM);
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == own) << status;
    EXPECT_FALSE(Read().notes_termination);
  }
}

TEST_F(FlightRecorderTest, WhoseTrainingThreadExitsHasLeftUnlessItFinished) {
  for (const auto& [how, end] : {std::pair(0, internal::FlightEnd::kLeft),
                                 {1, internal::FlightEnd::kRuns},
                                 {2, internal::FlightEnd::kFinished}}) {
    std::filesystem::remove(path_);
    EXPECT_EQ(RunInChild([this, how = how] {
                FlightRecorder* const recorder = Create();
                if (how == 1) std::thread([] { exit(0); }).join();
                if (how == 2) recorder->SetFinished();
                exit(0);
              }),
              0);
    EXPECT_EQ(Read().end, end) << how;
  }
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
              const auto made = FlightRecorder::Create({path_, 0, 1, ""}, Clock::Steady());
              if (made.status().message() != path_ + ": cannot be allocated: File too large") _exit(1);
            }),
            0);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(RunInChild([this] {
              rlim_t num_pages = 0;
              std::ifstream("/proc/self/statm") >> num_pages;
              const rlim_t few_more =
                  num_pages * static_cast<rlim_t>(getpagesize()) + FlightRecorder::kMaxBytes / 2;
              const rlimit limit = {few_more, few_more};
              setrlimit(RLIMIT_AS, &limit);
              const auto made = FlightRecorder::Create({path_, 0, 1, "", "", 0, FlightRecorder::kMaxBytes},
                                                       Clock::Steady());
              if (made.status().message() != path_ + ": cannot be allocated: Cannot allocate memory")
                _exit(1);
            }),
            0);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_THAT(
      FlightRecorder::Create({path_ + "/absent/flight", 0, 1, ""}, Clock::Steady()).status().message(),
      HasSubstr("/absent/flight: cannot be created"));
}

TEST_F(FlightRecorderTest, AFileCutAnywhereIsAnError) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Begin(recorder->Add("sum", FlightOperation::Collective("dp0")), Now(), 0);
  const std::string whole = *ReadFile(path_);
  ASSERT_TRUE(ParseFlightRecord(whole).ok());
  for (size_t size = 0; size + 64 < whole.size(); size += size < internal::kFlightHeaderBytes ? 1 : 97) {
    const absl::Status status = ParseFlightRecord(whole.substr(0, size)).status();
    const bool begins_as_one = size >= sizeof(internal::kFlightMagic);
    ASSERT_EQ(status.code(),
              size == 0 || begins_as_one ? absl::StatusCode::kDataLoss : absl::StatusCode::kInvalidArgument);
    if (begins_as_one) {
      ASSERT_EQ(status.message(), "truncated at byte " + std::to_string(size));
    }
  }
  // A record of which a byte is damaged is read, or refused with a reason.
  for (size_t at = 0; at < internal::kFlightEventsOffset; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    const absl::Status status = ParseFlightRecord(damaged).status();
    ASSERT_EQ(status.ok(), status.message().empty());
  }
}

TEST_F(FlightRecorderTest, WhatNoJobHasIsRefusedAndNamed) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Begin(recorder->Add("sum", FlightOperation::Collective("dp0", {0, 2})), Now(), 0);
  const std::string whole = *ReadFile(path_);
  using Damage = std::function<void(internal::FlightHeader&, internal::FlightSlot&, internal::FlightGroup&)>;
  const std::string no_ranks = "group dp0 has ranks that the job has not";
  const std::pair<Damage, std::string> damages[] = {
      {[](auto& header, auto&, auto&) { header.num_events = 0; }, "of another version"},
      {[](auto& header, auto&, auto&) { header.num_slots = 0; }, "of another version"},
      {[](auto& header, auto&, auto&) { header.num_groups = 0; }, "of another version"},
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
      {[](auto&, auto& slot, auto&) { slot.role = FlightRole::kReceive; }, "with a peer that is not there"},
      {[](auto&, auto& slot, auto&) { slot.role = FlightRole::kSend, slot.peer = 4; },
       "with a peer that is not"},
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

TEST_F(FlightRecorderTest, NumbersThatNoRecorderWritesAreBroughtIntoTheirRange) {
  FlightRecorder* const recorder = Create();
  FlightRecorder::Begin(recorder->Add("sum", FlightOperation::Collective("dp0")), Now(), 300);
  std::string bytes = *ReadFile(path_);
  auto& header = *reinterpret_cast<internal::FlightHeader*>(bytes.data());
  auto& slot = *reinterpret_cast<internal::FlightSlot*>(bytes.data() + internal::kFlightHeaderBytes);
  auto& event = *reinterpret_cast<internal::FlightEvent*>(bytes.data() + internal::kFlightEventsOffset);
  header.iteration = slot.iteration = -1;
  event.iteration = -1;
  header.terminated_ns = header.job_ends_s = header.beats[0].cpu_ns = -1;
  header.end = static_cast<internal::FlightEnd>(3);
  slot.sequence = (uint64_t{7} << 32) + 5;
  FlightRecord record = *ParseFlightRecord(bytes);
  EXPECT_THAT(
      (std::vector<int64_t>{record.iteration, record.measurements[0].iteration, record.events[0].iteration,
                            record.terminated_ns, record.job_ends_s, record.beats[0].cpu_ns}),
      testing::Each(0));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  header.terminated_ns = header.beats[0].cpu_ns = kMost;
  EXPECT_EQ(ParseFlightRecord(bytes)->terminated_ns, kMost / 4);
  EXPECT_EQ(ParseFlightRecord(bytes)->beats[0].cpu_ns, kMost / 4);
  EXPECT_EQ(record.end, internal::FlightEnd::kFinished);
  EXPECT_EQ(record.measurements[0].sequence, 5);
  EXPECT_EQ(record.measurements[0].thread, 300 & 0xff);
  // Events of a measurement that is not there, or of an unknown type, are left out; the end of an iteration
  // is of none.
  for (const auto& [slot_of_event, type, is_kept] :
       {std::tuple(0, 2, true), {1, 1, false}, {1, 2, false}, {1, 3, true}, {0, 4, false}, {0, 9, false}}) {
    event.slot = static_cast<uint16_t>(slot_of_event);
    event.type = static_cast<uint8_t>(type);
    EXPECT_EQ(ParseFlightRecord(bytes)->events.size(), is_kept ? 1u : 0u) << slot_of_event << " " << type;
  }
}

TEST_F(FlightRecorderTest, FlushingWaitsForTheWholeFileToBeOnTheDisk) {
  FlightRecorder* const recorder = Create();
  recorder->Flush();
  ASSERT_EQ(synchronized.size(), 1u);
  const auto& [data, bytes, flags] = synchronized[0];
  EXPECT_EQ(std::memcmp(data, internal::kFlightMagic, sizeof(internal::kFlightMagic)), 0);
  EXPECT_EQ(*ReadFile(path_), std::string(static_cast<const char*>(data), std::filesystem::file_size(path_)));
  EXPECT_GT(bytes + sizeof(internal::FlightEvent), std::filesystem::file_size(path_));
  EXPECT_EQ(flags, MS_SYNC);
}

TEST_F(FlightRecorderTest, WhatIsNoFileOfItsOwnIsRefused) {
  for (const size_t bytes : {FlightRecorder::kMinBytes - 1, FlightRecorder::kMaxBytes + 1})
    EXPECT_EQ(FlightRecorder::Create({path_, 0, 1, "h", "", 0, bytes}, Clock::Fastest()).status().message(),
              "a flight recorder of " + std::to_string(bytes) + " bytes; it has from 32768 to 16777216");
  EXPECT_EQ(ReadFlightRecord(path_).status().code(), absl::StatusCode::kNotFound);
  // Reading leaves no file open.
  const int next_file = dup(0);
  close(next_file);
  Create();
  Read();
  ThisMachine();
  EXPECT_EQ(dup(0), next_file);
  std::filesystem::remove(path_);
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
