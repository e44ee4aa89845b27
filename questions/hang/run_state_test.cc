#include "ott/questions/hang/run_state.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

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

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Process = RankState::Process;

constexpr uint64_t kSecond = 1000000000;

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

TEST_F(RunStateTest, WhoNeverCameIsNamedFromRecorders) {
  CreateRecorders(4);
  for (const int rank : {0, 1, 3}) Begin(sums_[rank]);
  Begin(data_[2]);
  now_ += 90 * kSecond;
  Beat({0, 1, 2, 3});
  const absl::StatusOr<JobState> job = Read();
  ASSERT_TRUE(job.ok()) << job.status();
  const HangVerdict verdict = DiagnoseHang(*job, HangOptions());
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_THAT(verdict.verdict(),
              StartsWith("rank 2 (node1) never came to sum #1 of group world (iteration 0), where "
                         "ranks 0, 1, 3 have waited for 90 s; it is in \"data\" since 90 s"));
}

// A process that records and is then ended by SIGTERM from here.
TEST_F(RunStateTest, SigtermIsNotedWithItsSenderAndEndsTheProcessAsBefore) {
  const pid_t child = fork();
  if (child == 0) {
    ASSERT_TRUE(MakeDirectories(RankDirectory(dir_, 0)).ok());
    FlightRecorder::Options options = {FlightPath(dir_, 0), 0, 1, "node1", "Slurm job 7.0"};
    options.job_ends_s = time(nullptr);
    FlightRecorder* const recorder = *FlightRecorder::Create(options, Clock([] { return now_; }));
    FlightRecorder::Begin(recorder->Add("data", {}), now_, 0);
    for (;;) pause();
  }
  while (!ReadFlightRecord(FlightPath(dir_, 0)).ok() ||
         ReadFlightRecord(FlightPath(dir_, 0))->measurements.empty()) {
    std::this_thread::yield();
  }
  kill(child, SIGTERM);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  const absl::StatusOr<FlightRecord> record = ReadFlightRecord(FlightPath(dir_, 0));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_TRUE(record->notes_termination);
  EXPECT_EQ(record->terminated_by, std::string(program_invocation_short_name).substr(0, 15));
  const HangVerdict verdict = DiagnoseHang(*Read(), HangOptions());
  EXPECT_EQ(verdict.answer(), HangVerdict::NOT_HANGING);
  EXPECT_THAT(
      verdict.verdict(),
      AllOf(StartsWith("not hanging: "), HasSubstr(" ended the job by SIGTERM at "),
            HasSubstr("Z, when the time of Slurm job 7.0 was over, and no rank had waited for long")));
}

TEST_F(RunStateTest, AProgramsOwnHandlerOfSigtermStays) {
  signal(SIGTERM, SIG_IGN);
  CreateRecorders(1);
  EXPECT_EQ(signal(SIGTERM, SIG_DFL), SIG_IGN);
  EXPECT_FALSE(ReadFlightRecord(FlightPath(dir_, 0))->notes_termination);
}

TEST_F(RunStateTest, AGroupIsDeclaredWhereTheProgramSaidWhoIsInIt) {
  CreateRecorders(2);
  EXPECT_FALSE(Read()->groups[0].is_declared);
  recorders_[0]->Add("pair", FlightOperation::Collective("pair", {0, 1}));
  EXPECT_TRUE(Read()->groups.back().is_declared);
}

TEST_F(RunStateTest, ASkipLongAgoIsFoundAsFarBackAsItIsRecorded) {
  CreateRecorders(3);
  for (int i = 0; i < 200; ++i) {
    for (int rank = 0; rank < 3; ++rank) {
      if (i != 40 || rank != 1) Begin(sums_[rank]);
      if (i == 199 && rank != 1) continue;
      now_ += kSecond / 1000;
      if (i != 40 || rank != 1) FlightRecorder::End(sums_[rank], now_, 0);
      recorders_[rank]->FinishIter(now_, 0);
    }
  }
  now_ += 90 * kSecond;
  Beat({0, 1, 2});
  const HangVerdict verdict = DiagnoseHang(*Read(), HangOptions());
  EXPECT_THAT(verdict.culprits(), ElementsAre(1));
  EXPECT_THAT(verdict.verdict(),
              StartsWith("rank 1 (node1) in iteration 41 called #41 of group world, which ranks "
                         "0, 2 in iteration 40 called: there it left out one before"));
}

TEST_F(RunStateTest, WhoWaitsInACheckOfThisLibraryIsNoCulprit) {
  CreateRecorders(3);
  std::vector<FlightRecorder::Measurement*> checks;
  for (FlightRecorder* const recorder : recorders_) {
    checks.push_back(AddObserverOperation(recorder, "cross-check", 3, "ott"));
  }
  for (const int rank : {0, 1, 2}) Begin(sums_[rank]);
  now_ += kSecond;
  for (const int rank : {0, 1, 2}) FlightRecorder::End(sums_[rank], now_, 0);
  // Rank 2 stands before the check. Rank 1 gives up there, and waits in the next iteration.
  Begin(data_[2]);
  for (const int rank : {0, 1}) Begin(checks[rank]);
  now_ += 90 * kSecond;
  Beat({0, 1, 2});
  EXPECT_THAT(DiagnoseHang(*Read(), HangOptions()).culprits(), ElementsAre(2));
  FlightRecorder::End(checks[1], now_, 0);
  Begin(sums_[1]);
  now_ += 90 * kSecond;
  Beat({0, 1, 2});
  EXPECT_THAT(DiagnoseHang(*Read(), HangOptions()).culprits(), ElementsAre(2));
}

TEST_F(RunStateTest, CpuTimeTellsWhoComputes) {
  CreateRecorders(1);
  Begin(data_[0]);
  Beat({0});
  now_ += 90 * kSecond;
  Beat({0});
  EXPECT_LT(Read()->ranks[0].cpu_share, 0.1);
  // Ends at what the clock that stands shows.
  FlightRecorder::End(data_[0], now_, 0);
  now_ += 1;
  Begin(data_[0]);
  Beat({0});
  const std::clock_t start = std::clock();
  while (std::clock() - start < CLOCKS_PER_SEC / 100) {
  }
  now_ += kSecond / 100;
  Beat({0});
  EXPECT_GT(Read()->ranks[0].cpu_share, 0.5);
}

TEST_F(RunStateTest, WhoEndsItsTrainingEarlyHasLeftIt) {
  CreateRecorders(3);
  for (const int rank : {0, 1}) Begin(sums_[rank]);
  recorders_[2]->SetLeft();
  now_ += 90 * kSecond;
  Beat({0, 1});
  const HangVerdict verdict = DiagnoseHang(*Read(), HangOptions());
  EXPECT_THAT(verdict.culprits(), ElementsAre(2));
  EXPECT_EQ(verdict.causes(0).kind(), HangCause::LEFT);
  EXPECT_EQ(verdict.ranks(2).state(), HangRank::LEFT);
  for (FlightRecorder* const recorder : recorders_) recorder->SetFinished();
  recorders_[0]->SetLeft();
  EXPECT_TRUE(Read()->ranks[0].finished);
}

TEST_F(RunStateTest, WhoCallsExitHasLeft) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::filesystem::remove_all(dir_);
        CreateRecorders(1);
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
  EXPECT_TRUE(Read()->ranks[0].left);
}

TEST_F(RunStateTest, WhoseProcessEndsWithoutAWordHasNotLeft) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        std::filesystem::remove_all(dir_);
        CreateRecorders(1);
        _exit(3);
      },
      testing::ExitedWithCode(3), "");
  EXPECT_FALSE(Read()->ranks[0].left);
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

TEST_F(RunStateTest, AProcessIsDeadStoppedOrAliveAsTheKernelSays) {
  CreateRecorders(1);
  EXPECT_EQ(Read()->ranks[0].process, Process::kAlive);
  RunStateEnvironment environment = RunStateEnvironment::Real();
  // Nobody else lives who could have missed one that is dead.
  static char reported;
  environment.read_process = [](int64_t number) {
    ProcessStatus status = ReadProcess(number);
    status.state = reported;
    return status;
  };
  for (const auto& [state, process] : {std::pair('R', Process::kAlive),
                                       {'S', Process::kAlive},
                                       {'D', Process::kAlive},
                                       {'T', Process::kStopped},
                                       {'t', Process::kStopped},
                                       {'Z', Process::kUnknown},
                                       {'X', Process::kUnknown},
                                       {'\0', Process::kUnknown}}) {
    reported = state;
    EXPECT_EQ(Read(environment)->ranks[0].process, process) << state;
  }
  // The number was used again: this job is over.
  environment.read_process = [](int64_t) { return ProcessStatus{'R', 1}; };
  EXPECT_EQ(Read(environment)->ranks[0].process, Process::kUnknown);
}

TEST_F(RunStateTest, ARankOfAMachineWhoseClockIsApartIsNotBlamed) {
  CreateRecorders(2);
  RunStateEnvironment environment = RunStateEnvironment::Real();
  environment.machine = "another";
  const int64_t now = environment.now_ns;
  environment.wait_for_beats = [] { ADD_FAILURE() << "in vain"; };
  for (const int64_t apart : {0, 5, -3602, 3601}) {
    environment.now_ns = now + apart * static_cast<int64_t>(kSecond);
    EXPECT_TRUE(Read(environment).ok());
  }
  for (const int64_t apart : {-70, 70}) {
    environment.now_ns = RunStateEnvironment::Real().now_ns + apart * static_cast<int64_t>(kSecond);
    environment.wait_for_beats = [this] {
      now_ += kSecond;
      Beat({0, 1});
    };
    Begin(sums_[0]);
    const absl::StatusOr<JobState> job = Read(environment);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->ranks[0].process, Process::kAlive);
    // It has waited for a second, whatever the other clock says.
    EXPECT_EQ(DiagnoseHang(*job, HangOptions()).answer(), HangVerdict::NOT_HANGING);
    // A rank that does not beat is dead or stopped; if nobody does, the job has ended.
    environment.wait_for_beats = [this] { Beat({0}); };
    if (apart > 0) {
      EXPECT_THAT(DiagnoseHang(*Read(environment), HangOptions()).culprits(), ElementsAre(1));
    }
  }
  for (FlightRecorder* const recorder : recorders_) recorder->SetFinished();
  environment.wait_for_beats = [] { ADD_FAILURE() << "for ranks that have finished"; };
  EXPECT_TRUE(Read(environment).ok());
}

TEST_F(RunStateTest, ARecorderThatIsMissingCutOrOfAnotherRankIsNamed) {
  CreateRecorders(4);
  for (const int rank : {0, 1, 2}) Begin(sums_[rank]);
  now_ += 90 * kSecond;
  Beat({0, 1, 2});
  std::filesystem::remove(FlightPath(dir_, 3));
  EXPECT_THAT(Read()->ranks[3].problem, HasSubstr("rank_00003/flight: no recorder"));
  const HangVerdict verdict = DiagnoseHang(*Read(), HangOptions());
  EXPECT_EQ(verdict.answer(), HangVerdict::CANNOT_TELL);
  EXPECT_THAT(verdict.unknown(), ElementsAre(3));
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
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RunStateTest, WhatCommunicatorsDoIsRecorded) {
  CreateRecorders(1);
  const std::unique_ptr<Communicator> local = CreateLocalCommunicator();
  const std::unique_ptr<Communicator> ranks =
      MakeRecordedCommunicator(*local, recorders_[0], Clock([] { return ++now_; }), "ott");
  ASSERT_TRUE(ranks->Barrier(Deadline::Never()).ok());
  ASSERT_TRUE(ranks->AllGather("x", Deadline::Never()).ok());
  const absl::StatusOr<JobState> job = Read();
  ASSERT_EQ(job->ranks[0].operations.size(), 2u);
  EXPECT_EQ(job->names[job->ranks[0].operations[0].name], "Barrier");
  EXPECT_EQ(job->ranks[0].operations[1].sequence, 2);
  EXPECT_EQ(job->ranks[0].last_completed, "AllGather #2");
}

// Records in memory, by the clock of a machine "here" at 1000 s. Process 0 is gone, others live.
class RecordsTest : public testing::Test {
 protected:
  static constexpr int64_t kAt = 1000 * static_cast<int64_t>(kSecond);

  static FlightRecord Record(double beat_seconds, const std::string& machine = "here", int64_t process = 0) {
    FlightRecord record;
    record.host = "host of " + machine;
    record.machine = machine;
    record.process = process;
    record.process_started = 1;
    record.beat_ns = static_cast<int64_t>(beat_seconds * kSecond);
    record.notes_termination = true;
    return record;
  }

  static JobState Job(const std::vector<FlightRecord>& records, int64_t now_ns = kAt) {
    RunStateEnvironment environment;
    environment.now_ns = now_ns;
    environment.machine = "here";
    environment.read_process = [](int64_t process) {
      return process == 0 ? ProcessStatus() : ProcessStatus{'R', 1};
    };
    return MakeJobState({records.begin(), records.end()}, environment);
  }

  static std::vector<Process> Processes(const JobState& job) {
    std::vector<Process> processes;
    for (const RankState& rank : job.ranks) processes.push_back(rank.process);
    return processes;
  }
};

TEST_F(RecordsTest, WhoFellSilentBeforeTheRestIsGoneAndOthersEndedTheJob) {
  constexpr auto kUnknown = Process::kUnknown;
  EXPECT_THAT(Processes(Job({Record(990), Record(987.1)})), ElementsAre(kUnknown, kUnknown));
  EXPECT_THAT(Processes(Job({Record(990), Record(987)})), ElementsAre(kUnknown, Process::kDead));
  EXPECT_THAT(Processes(Job({Record(990, "a"), Record(980.1, "b")})), ElementsAre(kUnknown, kUnknown));
  EXPECT_THAT(Processes(Job({Record(990, "a"), Record(980, "b")})), ElementsAre(kUnknown, Process::kSilent));
  // While one lives, who is silent is gone, and the time of those that live here is this machine's.
  EXPECT_THAT(Processes(Job({Record(999, "here", 7), Record(999)})),
              ElementsAre(Process::kAlive, Process::kDead));
  EXPECT_THAT(Processes(Job({Record(990.1, "a"), Record(990, "b")})),
              ElementsAre(Process::kAlive, Process::kSilent));
  const JobState job = Job({Record(995, "here", 7), Record(994), Record(993, "a"), Record(1001, "here", 7)});
  std::vector<double> seconds;
  for (const RankState& rank : job.ranks) seconds.push_back(static_cast<double>(rank.now_ns) / kSecond);
  EXPECT_THAT(seconds, ElementsAre(1000, 994, 993, 1001));
  EXPECT_EQ(DiagnoseHang(Job({Record(995, "here", 7), Record(999)}), HangOptions()).verdict(),
            "rank 1 (host of here) is dead: its process is gone");
}

TEST_F(RecordsTest, WhoWasGoneBeforeTheFirstOfItsHostWasEndedIsDead) {
  std::vector<FlightRecord> records = {Record(990), Record(989), Record(990), Record(980)};
  records[0].terminated_ns = kAt - 8 * static_cast<int64_t>(kSecond);
  records[2].terminated_ns = kAt - 10 * static_cast<int64_t>(kSecond);
  constexpr auto kUnknown = Process::kUnknown;
  EXPECT_THAT(Processes(Job(records)), ElementsAre(kUnknown, Process::kDead, kUnknown, Process::kDead));
  // It lived when the first was ended, or would have noted nothing, or is of another host.
  records[1] = Record(990);
  EXPECT_EQ(Job(records).ranks[1].process, kUnknown);
  records[1] = Record(989.9);
  EXPECT_EQ(Job(records).ranks[1].process, Process::kDead);
  records[1].notes_termination = false;
  EXPECT_EQ(Job(records).ranks[1].process, kUnknown);
  records[1] = Record(989.9);
  records[1].host = "another";
  EXPECT_EQ(Job(records).ranks[1].process, kUnknown);
}

TEST_F(RecordsTest, ARankIsWhereTheThreadThatTrainsIs) {
  FlightRecord record = Record(999, "here", 7);
  const auto add = [&](const char* name, FlightRole role, int64_t seconds, int thread) {
    FlightRecord::Measurement& measurement = record.measurements.emplace_back();
    measurement.name = name;
    measurement.role = role;
    measurement.thread = thread;
    measurement.begin_ns = seconds * static_cast<int64_t>(kSecond);
    measurement.runs = seconds > 0;
  };
  const auto place = [&] {
    const RankState rank = Job({record}).ranks[0];
    return rank.place + " " + std::to_string(rank.last_event_ns / static_cast<int64_t>(kSecond));
  };
  record.groups.resize(1);
  add("load", FlightRole::kWork, 940, 5);
  EXPECT_EQ(place(), "load 940") << "of the only thread";
  add("declared", FlightRole::kCollective, 0, 6);
  add("forward", FlightRole::kWork, 930, 2);
  add("step", FlightRole::kWork, 910, 2);
  add("sum", FlightRole::kCollective, 920, 2);
  EXPECT_EQ(place(), "forward 930") << "of the one that is in a collective";
  record.events.push_back({kAt, internal::FlightEventType::kFinishIter, -1, 5});
  record.events.push_back({kAt + kSecond, internal::FlightEventType::kBegin, -1, 2});
  EXPECT_EQ(place(), "load 1000") << "of the one that ends iterations";
  record.num_dropped = 3;
  record.job_ends_s = 5;
  FlightRecord other = Record(999);
  other.num_dropped = 2;
  const JobState job = Job({record, other});
  EXPECT_THAT(job.notes, ElementsAre("3 measurements found no place in the recorders and are not seen"));
  EXPECT_EQ(job.job_ends_s, 5);
}

TEST_F(RecordsTest, CpuTimeIsOfWhatRunsSinceTheLastEvent) {
  FlightRecord record = Record(999, "here", 7);
  const auto seconds = [](int64_t count) { return count * static_cast<int64_t>(kSecond); };
  record.beats = {{seconds(990), 0}, {seconds(995), seconds(5)}, {seconds(999), seconds(6)}};
  FlightRecord::Measurement& load = record.measurements.emplace_back();
  load.runs = true;
  for (const auto& [begin, end, share] :
       {std::tuple(989, 0, 6.0 / 9), {990, 0, 6.0 / 9}, {980, 991, 0.25}, {995, 0, 0.25}, {996, 0, -1.0}}) {
    load.begin_ns = seconds(begin);
    load.end_ns = seconds(end);
    EXPECT_EQ(Job({record}).ranks[0].cpu_share, share) << begin << ", " << end;
  }
}

TEST_F(RecordsTest, OfEachOfManyRanksTheLatestOperationsAreRead) {
  std::vector<FlightRecord> records(5000, Record(999, "here", 7));
  records[1].groups.resize(1);
  records[1].measurements.resize(1);
  records[1].measurements[0].role = FlightRole::kCollective;
  for (int i = 1; i <= 100; ++i) {
    FlightRecord::Event& event = records[1].events.emplace_back();
    event.type = internal::FlightEventType::kBegin;
    event.measurement = 0;
    event.sequence = i;
  }
  const JobState job = Job(records);
  ASSERT_EQ(job.ranks[1].operations.size(), 64u);
  EXPECT_EQ(job.ranks[1].operations.front().sequence, 37);
}

}  // namespace
}  // namespace ott
