#include "ott/questions/hang/run_state.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/file.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/dist/comm/local_communicator.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/diagnosis.h"
#include "ott/questions/hang/recorded_communicator.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Process = RankState::Process;

constexpr int64_t kSecond = 1000000000;

// Recorders of ranks whose clock stands still until a test moves it.
class RunStateTest : public testing::Test {
 protected:
  RunStateTest() : dir_(testing::TempDir() + "/run") {
    std::filesystem::remove_all(dir_);
    now_ = 1000 * kSecond;
  }

  void CreateRecorders(int world_size, const std::string& host = "node1") {
    for (int rank = 0; rank < world_size; ++rank) {
      ASSERT_TRUE(MakeDirectories(RankDirectory(dir_, rank)).ok());
      recorders_.push_back(*FlightRecorder::Create({FlightPath(dir_, rank), rank, world_size, host},
                                                   Clock([] { return now_; })));
      sums_.push_back(recorders_.back()->Add("sum", FlightOperation::Collective()));
      data_.push_back(recorders_.back()->Add("data", {}));
    }
    RunInfo info;
    info.set_world_size(world_size);
    ASSERT_TRUE(WriteRunInfo(dir_, info).ok());
  }

  void Begin(FlightRecorder::Measurement* measurement) { FlightRecorder::Begin(measurement, now_, 0); }

  // Time goes on, and the hearts of these ranks beat. The recorders' clock and the time of day move apart.
  void Beat(const std::vector<int>& ranks) {
    for (const int rank : ranks) recorders_[rank]->Beat();
  }

  absl::StatusOr<JobState> Read(RunStateEnvironment environment = RunStateEnvironment::Real()) {
    return ReadRunState(dir_, environment);
  }

  static uint64_t now_;
  const std::string dir_;
  std::vector<FlightRecorder*> recorders_;
  std::vector<FlightRecorder::Measurement*> sums_;
  std::vector<FlightRecorder::Measurement*> data_;
};

uint64_t RunStateTest::now_ = 0;

TEST_F(RunStateTest, AProgramsOwnHandlerOfSigtermStays) {
  signal(SIGTERM, SIG_IGN);
  CreateRecorders(1);
  EXPECT_EQ(signal(SIGTERM, SIG_DFL), SIG_IGN);
  EXPECT_FALSE(ReadFlightRecord(FlightPath(dir_, 0))->notes_termination);
}

TEST_F(RunStateTest, ALastRankThatLeftNothingIsMissedWithoutRunJsonToo) {
  CreateRecorders(3);
  for (FlightRecorder* recorder : recorders_) recorder->SetFinished();
  ASSERT_EQ(DiagnoseHang(*Read(), HangOptions()).answer(), HangVerdict::NOT_HANGING);
  std::filesystem::remove_all(RankDirectory(dir_, 2));
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/run.json", "{").ok());
  const HangVerdict verdict = DiagnoseHang(*Read(), HangOptions());
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
  EXPECT_THAT(verdict.unknown(), ElementsAre(2));
}

TEST_F(RunStateTest, ARankOfAMachineWhoseClockIsApartIsNotBlamed) {
  CreateRecorders(2);
  RunStateEnvironment environment = RunStateEnvironment::Real();
  environment.machine = "another";
  const int64_t now = environment.now_ns;
  environment.wait_for_beats = [] { ADD_FAILURE() << "in vain"; };
  for (const int64_t apart : {0, 5, -3602, 3601}) {
    environment.now_ns = now + apart * kSecond;
    EXPECT_TRUE(Read(environment).ok());
  }
  for (const int64_t apart : {-70, 70}) {
    environment.now_ns = RunStateEnvironment::Real().now_ns + apart * kSecond;
    int num_waits = 0;
    environment.wait_for_beats = [&] {
      ++num_waits;
      now_ += kSecond;
      Beat({0, 1});
    };
    Begin(sums_[0]);
    const absl::StatusOr<JobState> job = Read(environment);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(num_waits, 1);
    EXPECT_EQ(job->ranks[0].process, Process::kAlive);
    // It has waited for a second, whatever the other clock says.
    EXPECT_EQ(DiagnoseHang(*job, HangOptions()).answer(), HangVerdict::NOT_HANGING);
    // A rank that does not beat is dead or stopped; if nobody does, the job has ended.
    if (apart < 0) continue;
    environment.wait_for_beats = [this] { Beat({0}); };
    EXPECT_THAT(DiagnoseHang(*Read(environment), HangOptions()).culprits(), ElementsAre(1));
    environment.wait_for_beats = [this] { std::filesystem::remove(FlightPath(dir_, 1)); };
    EXPECT_THAT(Read(environment)->ranks[1].problem, HasSubstr("no recorder"));
  }
  for (FlightRecorder* const recorder : recorders_) recorder->SetFinished();
  environment.wait_for_beats = [] { ADD_FAILURE() << "for ranks that have finished"; };
  EXPECT_TRUE(Read(environment).ok());
}

TEST_F(RunStateTest, ARecorderThatIsMissingCutOrOfAnotherRankIsNamed) {
  CreateRecorders(4);
  std::filesystem::remove(FlightPath(dir_, 3));
  EXPECT_THAT(Read()->ranks[3].problem, HasSubstr("rank_00003/flight: no recorder"));
  ASSERT_TRUE(WriteFileAtomically(FlightPath(dir_, 3), ReadFile(FlightPath(dir_, 0))->substr(0, 5000)).ok());
  EXPECT_THAT(Read()->ranks[3].problem, HasSubstr("truncated at byte 5000"));
  ASSERT_TRUE(WriteFileAtomically(FlightPath(dir_, 3), *ReadFile(FlightPath(dir_, 0))).ok());
  EXPECT_THAT(Read()->ranks[3].problem, HasSubstr("of rank 0"));
}

TEST_F(RunStateTest, NamesThatAreNoUtf8StayOutOfTheVerdict) {
  CreateRecorders(3, "node\x80");
  const FlightOperation operation = FlightOperation::Collective("data \xff", {0, 1});
  Begin(recorders_[0]->Add("reduce \xc3", operation));
  recorders_[1]->Add("reduce \xc3", operation);
  Begin(recorders_[1]->Add("norm \xe2\x82", {}));
  now_ += 90 * kSecond;
  Beat({0, 1});
  std::filesystem::remove(FlightPath(dir_, 2));
  RunStateEnvironment environment = RunStateEnvironment::Real();
  environment.ask_for_recorder = [](int) { return absl::UnavailableError("gone \xff"); };
  const absl::StatusOr<JobState> job = Read(environment);
  EXPECT_THAT(job->ranks[2].problem, EndsWith("gone \uFFFD"));
  const HangVerdict verdict = DiagnoseHang(*job, HangOptions());
  EXPECT_THAT(verdict.verdict(),
              StartsWith("rank 1 (node\uFFFD) never came to reduce \uFFFD #1 of group data \uFFFD"));
  EXPECT_EQ(verdict.ranks(1).place(), "norm \uFFFD\uFFFD");
}

TEST_F(RunStateTest, NoRunDirectoryIsAnError) {
  for (const bool is_empty : {false, true}) {
    if (is_empty) std::filesystem::create_directories(dir_);
    EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
  }
}

TEST_F(RunStateTest, WhatCommunicatorsDoIsRecorded) {
  CreateRecorders(1);
  const std::unique_ptr<Communicator> local = CreateLocalCommunicator();
  const std::unique_ptr<Communicator> ranks =
      MakeRecordedCommunicator(*local, recorders_[0], Clock([] { return ++now_; }), "ott");
  const RecordedOperation without_room(nullptr, Clock::Steady());
  ASSERT_TRUE(ranks->Barrier(Deadline::Never()).ok());
  ASSERT_TRUE(ranks->AllGather("x", Deadline::Never()).ok());
  const absl::StatusOr<JobState> job = Read();
  ASSERT_EQ(job->ranks[0].operations.size(), 2u);
  EXPECT_EQ(job->names[job->ranks[0].operations[0].name], "Barrier");
  EXPECT_EQ(job->ranks[0].operations[1].sequence, 2);
  EXPECT_FALSE(job->ranks[0].operations[1].synchronizes);
  EXPECT_EQ(job->ranks[0].last_completed, "AllGather #2");
}

// Reads records in memory, by the clock of a machine "here" at 1000 s.
JobState JobOf(const std::vector<absl::StatusOr<FlightRecord>>& records) {
  RunStateEnvironment environment;
  environment.now_ns = 1000 * kSecond;
  environment.machine = "here";
  environment.read_process = [](int64_t state) { return ProcessStatus{static_cast<char>(state), 1}; };
  return MakeJobState(records, environment);
}

// Returns any record of a rank that may still live.
FlightRecord AnyRecord(std::mt19937& random) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  const auto any = [&](std::initializer_list<double> seconds) {
    return static_cast<int64_t>(*(seconds.begin() + random() % seconds.size()) * kSecond);
  };
  FlightRecord record;
  record.machine = one_in(3) ? "a" : "here";
  record.host = one_in(3) ? "b" : record.machine;
  record.process = std::string_view("\0RTtZX", 6)[random() % 6];
  record.process_started = one_in(8) ? 2 : 1;
  record.beat_ns = any({980, 986.9, 987, 987.1, 989.9, 990, 990.1, 997, 999, 1001});
  record.last_event_ns = any({0, 0, 970, 989.9, 1000});
  record.end = static_cast<internal::FlightEnd>(random() % 3);
  record.notes_termination = !one_in(4);
  record.terminated_ns = any({0, 0, 0, 980, 990, 992});
  record.terminated_by = one_in(2) ? "somebody" : "";
  record.iteration = static_cast<int64_t>(random() % 3);
  record.num_dropped = static_cast<int64_t>(random() % 3);
  record.job_ends_s = static_cast<int64_t>(random() % 3);
  // The members of "b" and "world" are known, of which rank 4 is none of the job.
  for (const auto& [name, ranges] : std::vector<std::pair<std::string, std::vector<internal::FlightRange>>>{
           {"a", {}}, {"b", {{0, 5, 1}}}, {"world", {{0, 5, 1}}}}) {
    record.groups.push_back(
        {name, ranges, static_cast<int64_t>(random() % 9), static_cast<int64_t>(random() % 9)});
  }
  std::shuffle(record.groups.begin(), record.groups.end(), random);
  for (size_t i = random() % 5; i > 0; --i) {
    record.measurements.push_back(
        {absl::StrCat("m", i), one_in(3) ? "kind" : "", static_cast<FlightRole>(random() % 4),
         static_cast<int>(random() % 3), static_cast<int>(random() % 3), one_in(2),
         static_cast<int64_t>(random() % 9), any({0, 930, 940, 950, 988}), any({0, 945, 970}),
         static_cast<int64_t>(random() % 3), static_cast<int64_t>(random() % 9),
         static_cast<int>(random() % 3), one_in(2)});
  }
  for (size_t i = random() % 6; i > 0; --i) {
    const bool is_of_none = record.measurements.empty() || one_in(3);
    record.events.push_back({any({935, 960, 980}),
                             is_of_none  ? internal::FlightEventType::kFinishIter
                             : one_in(2) ? internal::FlightEventType::kBegin
                                         : internal::FlightEventType::kEnd,
                             is_of_none ? -1 : static_cast<int>(random() % record.measurements.size()),
                             static_cast<int>(random() % 3), static_cast<int64_t>(random() % 3),
                             static_cast<int64_t>(random() % 9), static_cast<int64_t>(random() % 9)});
  }
  for (int64_t ns = any({940, 960}); !one_in(4) || record.beats.empty(); ns += any({0, 10, 20}))
    record.beats.push_back({ns, ns / 2 + any({0, 1})});
  return record;
}

TEST(JobState, OfAnyRecordsIsAsTheRulesSay) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<absl::StatusOr<FlightRecord>> records;
    for (size_t i = 1 + random() % 4; i > 0; --i) {
      records.push_back(AnyRecord(random));
      if (random() % 8 == 0) records.back() = absl::NotFoundError("no recorder \xff");
    }
    const auto sign_of = [](const FlightRecord& record) {
      return std::max({record.beat_ns, record.last_event_ns, record.terminated_ns});
    };
    const auto process_of = [](const FlightRecord& record) {
      if (record.machine != "here")
        return record.beat_ns > 990 * kSecond ? Process::kAlive : Process::kSilent;
      const bool is_there =
          record.process_started == 1 && std::string_view("RTt").find(static_cast<char>(record.process)) < 3;
      return !is_there ? Process::kDead : record.process == 'R' ? Process::kAlive : Process::kStopped;
    };
    int64_t last = 0, num_dropped = 0, job_ends_s = 0;
    bool any_lives = false;
    std::map<std::string, int64_t> first_end;  // by SIGTERM, of each host
    for (const absl::StatusOr<FlightRecord>& record : records) {
      if (!record.ok()) continue;
      last = std::max(last, sign_of(*record));
      any_lives |= process_of(*record) == Process::kAlive || process_of(*record) == Process::kStopped;
      num_dropped = std::max(num_dropped, record->num_dropped);
      job_ends_s = std::max(job_ends_s, record->job_ends_s);
      if (record->terminated_ns == 0) continue;
      int64_t& first = first_end.emplace(record->host, record->terminated_ns).first->second;
      first = std::min(first, record->terminated_ns);
    }
    const JobState job = JobOf(records);
    EXPECT_EQ(job.job_ends_s, job_ends_s);
    EXPECT_EQ(
        job.notes.empty() ? "" : job.notes[0],
        num_dropped == 0
            ? ""
            : absl::StrCat(num_dropped, " measurements found no place in the recorders and are not seen"));
    std::map<std::string, std::vector<int>> members;
    for (size_t rank = 0; rank < records.size(); ++rank) {
      const RankState& state = job.ranks[rank];
      if (!records[rank].ok()) {
        EXPECT_EQ(state.problem, "no recorder \uFFFD");
        continue;
      }
      const FlightRecord& record = *records[rank];
      members["a"].push_back(static_cast<int>(rank));
      RankState expected;
      expected.process = process_of(record);
      const bool is_here = record.machine == "here";
      expected.now_ns =
          is_here && (expected.process == Process::kAlive || expected.process == Process::kStopped)
              ? std::max(1000 * kSecond, sign_of(record))
              : sign_of(record);
      // If nobody lives, those that were there until the end ended with the job; who went before its host's
      // first was ended was dead.
      const bool is_last = last - sign_of(record) < (is_here ? 3 : 10) * kSecond;
      const auto end = first_end.find(record.host);
      const bool went_before =
          end != first_end.end() && record.notes_termination && sign_of(record) < end->second;
      if (!any_lives && (is_last || record.terminated_ns > 0) && !went_before)
        expected.process = Process::kUnknown;

      int main_thread = record.measurements.empty() ? 0 : record.measurements[0].thread;
      for (size_t i = record.measurements.size(); i-- > 0;) {
        const FlightRecord::Measurement& measurement = record.measurements[i];
        if (measurement.role != FlightRole::kWork && measurement.begin_ns > 0)
          main_thread = measurement.thread;
      }
      for (const FlightRecord::Event& event : record.events) {
        if (event.type == internal::FlightEventType::kFinishIter) main_thread = event.thread;
      }
      std::vector<std::tuple<std::string, std::string, int64_t, int64_t, int64_t, int64_t, int32_t,
                             JobOperation::Direction, JobOperation::Progress, bool>>
          operations, found;
      const auto add = [&](const FlightRecord::Measurement& of, const auto& call, int64_t ns, bool is_over) {
        operations.emplace_back(
            of.kind.empty() ? of.name : of.kind, record.groups[of.group].name, call.sequence, call.size,
            of.role == FlightRole::kCollective ? call.iteration : -1, ns, of.peer,
            of.role == FlightRole::kSend      ? JobOperation::Direction::kSend
            : of.role == FlightRole::kReceive ? JobOperation::Direction::kReceive
                                              : JobOperation::Direction::kCollective,
            is_over ? JobOperation::Progress::kCompleted : JobOperation::Progress::kEntered, of.synchronizes);
      };
      for (const FlightRecord::Event& event : record.events) {
        const bool is_main = event.thread == main_thread;
        if (is_main) expected.last_event_ns = std::max(expected.last_event_ns, event.ns);
        if (event.measurement < 0) continue;
        const FlightRecord::Measurement& of = record.measurements[event.measurement];
        const bool is_collective = of.role == FlightRole::kCollective;
        if (event.type == internal::FlightEventType::kEnd && is_main)
          expected.last_completed = of.name + (is_collective ? absl::StrCat(" #", event.sequence) : "");
        if (event.type == internal::FlightEventType::kBegin && is_collective &&
            !(of.runs && of.sequence == event.sequence))
          add(of, event, event.ns, true);
      }
      for (const FlightRecord::Measurement& measurement : record.measurements) {
        if (measurement.thread == main_thread)
          expected.last_event_ns =
              std::max({expected.last_event_ns, measurement.begin_ns, measurement.end_ns});
        if (!measurement.runs) continue;
        if (measurement.role != FlightRole::kWork) add(measurement, measurement, measurement.begin_ns, false);
        if (measurement.thread != main_thread || measurement.begin_ns <= expected.place_since_ns) continue;
        expected.place = measurement.name;
        expected.place_since_ns = measurement.begin_ns;
      }
      for (const FlightRecord::Beat& beat : record.beats) {
        const FlightRecord::Beat& end = record.beats.back();
        if (beat.ns < std::max(expected.place_since_ns, expected.last_event_ns)) continue;
        if (end.ns > beat.ns)
          expected.cpu_share =
              static_cast<double>(end.cpu_ns - beat.cpu_ns) / static_cast<double>(end.ns - beat.ns);
        break;
      }
      for (const JobOperation& one : state.operations)
        found.emplace_back(job.names[one.name], job.groups[one.group].name, one.sequence, one.size,
                           one.iteration, one.entered_ns, one.peer, one.direction, one.progress,
                           one.synchronizes);
      EXPECT_EQ(found, operations);
      EXPECT_EQ(std::tie(state.process, state.now_ns, state.place, state.place_since_ns, state.last_event_ns,
                         state.last_completed, state.cpu_share),
                std::tie(expected.process, expected.now_ns, expected.place, expected.place_since_ns,
                         expected.last_event_ns, expected.last_completed, expected.cpu_share));
      EXPECT_EQ(std::make_tuple(state.problem, state.host, state.terminated_ns, state.terminated_by,
                                state.iteration, state.finished, state.left),
                std::make_tuple("", record.host, record.terminated_ns, record.terminated_by, record.iteration,
                                record.end == internal::FlightEnd::kFinished,
                                record.end == internal::FlightEnd::kLeft));
      ASSERT_EQ(state.positions.size(), 3);
      for (const FlightRecord::Group& group : record.groups) {
        const auto of = std::find_if(job.groups.begin(), job.groups.end(),
                                     [&](const JobGroup& other) { return other.name == group.name; });
        const GroupPosition* const position = state.Position(static_cast<int32_t>(of - job.groups.begin()));
        EXPECT_EQ(std::make_tuple(position->enqueued, position->entered, position->completed),
                  std::make_tuple(group.entered, group.entered, group.completed));
      }
    }
    for (const JobGroup& group : job.groups) {
      EXPECT_EQ(group.is_declared, group.name == "b");
      std::vector<int> all(records.size());
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(group.ranks, group.name == "a" ? members["a"] : all);
    }
  }
}

TEST(JobState, OfEachOfManyRanksTheLatestOperationsAreRead) {
  std::vector<FlightRecord> records(5000);
  records[1].groups.resize(1);
  records[1].measurements.resize(1);
  records[1].measurements[0].role = FlightRole::kCollective;
  for (int i = 1; i <= 100; ++i) {
    FlightRecord::Event& event = records[1].events.emplace_back();
    event.type = internal::FlightEventType::kBegin;
    event.measurement = 0;
    event.sequence = i;
  }
  const JobState job = JobOf({records.begin(), records.end()});
  ASSERT_EQ(job.ranks[1].operations.size(), 64u);
  EXPECT_EQ(job.ranks[1].operations.front().sequence, 37);
}

}  // namespace
}  // namespace ott
