// From a timeline to an answer.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/statistics/location.h"
#include "ott/questions/saved/ideal_timeline.h"
#include "ott/questions/saved/timeline.h"
#include "ott/questions/saved/timeline_job.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A pipeline of two stages in two replicas that does two microbatches forward and back. Times are
// microseconds.
struct Training {
  int num_steps = 3;
  int forward = 100;
  int backward = 200;
  int transfer = 10;
  int optimizer = 50;
  // Added to each forward computation of a stage and replica.
  int excess_stage = -1;
  int excess_replica = -1;
  int excess = 0;
  int excess_step = -1;

  std::vector<std::string> events;

  int Forward(int stage, int replica, int step) const {
    const bool has_excess = (excess_stage < 0 || stage == excess_stage) &&
                            (excess_replica < 0 || replica == excess_replica) &&
                            (excess_step < 0 || step == excess_step);
    return forward + (has_excess ? excess : 0);
  }

  void Add(int stage, int replica, int step, const std::string& name, int sequence, int64_t start,
           int64_t duration, int track) {
    const int rank = stage * 2 + replica;
    events.push_back(absl::StrCat(R"({"name":")", name, R"(","cat":")", name, R"(","ph":"X","pid":)", replica,
                                  R"(,"tid":)", rank * 5 + track, R"(,"ts":)", start, R"(,"dur":)", duration,
                                  R"(,"args":{"step":)", step, R"(,"model_chunk":0,"mb_id":)", sequence,
                                  R"(,"seq_id":)", sequence, "}}"));
  }

  void AddStep(int step) {
    const int64_t begin = step * 100000;
    int64_t all_done = 0;
    std::vector<int64_t> done;
    for (int replica = 0; replica < 2; ++replica) {
      int64_t end[2] = {begin, begin};
      const int64_t forward0 = Forward(0, replica, step);
      const int64_t forward1 = Forward(1, replica, step);
      // Stage 0 forward twice, each sent to stage 1.
      for (int i = 0; i < 2; ++i) {
        Add(0, replica, step, "forward-compute", i, end[0], forward0, 0);
        end[0] += forward0;
        const int64_t send = end[0];
        const int64_t both = std::max(send, end[1]);
        Add(0, replica, step, "forward-send", i, send, both - send + transfer, 1);
        Add(1, replica, step, "forward-recv", i, end[1], both - end[1] + transfer, 1);
        Add(1, replica, step, "forward-compute", i, both + transfer, forward1, 0);
        end[1] = both + transfer + forward1;
      }
      for (int i = 0; i < 2; ++i) {
        Add(1, replica, step, "backward-compute", i, end[1], backward, 0);
        end[1] += backward;
        const int64_t both = std::max(end[0], end[1]);
        Add(1, replica, step, "backward-send", i, end[1], both - end[1] + transfer, 1);
        Add(0, replica, step, "backward-recv", i, end[0], both - end[0] + transfer, 1);
        const int64_t start = both + transfer;
        Add(0, replica, step, "backward-compute", i, start, backward, 0);
        end[0] = start + backward;
      }
      for (const int64_t at : end) {
        done.push_back(at);
        all_done = std::max(all_done, at);
      }
    }
    for (int i = 0; i < 4; ++i) {
      Add(i % 2, i / 2, step, "optimizer-clip-main-grad", 0, done[i], all_done + transfer - done[i], 3);
      Add(i % 2, i / 2, step, "optimizer", 0, all_done + transfer, optimizer, 0);
    }
  }

  void AddNames() {
    for (int rank = 0; rank < 4; ++rank) {
      for (int track = 0; track < 5; ++track) {
        events.push_back(absl::StrCat(R"({"ph":"M","name":"thread_name","pid":)", rank % 2, R"(,"tid":)",
                                      rank * 5 + track, R"(,"args":{"name":"PP rank )", rank / 2,
                                      R"(, TP rank 0, compute"}})"));
      }
    }
  }

  std::string Json() {
    for (int step = 0; step < num_steps; ++step) AddStep(step);
    AddNames();
    return absl::StrCat("[", absl::StrJoin(events, ","), "]");
  }
};

Training WithSlowRank() {
  Training training;
  training.excess_stage = 0;
  training.excess_replica = 1;
  training.excess = 300;
  return training;
}

class WhatIfTest : public ::testing::Test {
 protected:
  WhatIfTest() { std::filesystem::create_directories(dir_); }

  absl::StatusOr<ReplayJob> Read(const std::string& json) {
    EXPECT_TRUE(WriteFileAtomically(path_, json).ok());
    absl::StatusOr<Timeline> timeline = ReadTimeline(path_);
    if (!timeline.ok()) return timeline.status();
    return MakeJob(*std::move(timeline));
  }

  WhatIfAnswer Ask(Training training) {
    const absl::StatusOr<ReplayJob> job = Read(training.Json());
    EXPECT_TRUE(job.ok()) << job.status();
    return AnswerWhatIf(*job);
  }

  const std::string dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = dir_ + "/timeline-x.json";
};

// The whole trace's figures are compared by questions/saved/compare_with_published.
TEST_F(WhatIfTest, StepsOfAPublishedTraceTakeWhatWasPublished) {
  absl::StatusOr<Timeline> timeline = ReadTimeline("questions/saved/testdata/straggler_analysis_cut.json.gz");
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  const absl::StatusOr<ReplayJob> job = MakeJob(*std::move(timeline));
  ASSERT_TRUE(job.ok()) << job.status();
  const WhatIfAnswer answer = AnswerWhatIf(*job);
  ASSERT_EQ(answer.by_step_size(), 2);
  EXPECT_NEAR(answer.by_step(0).measured_seconds(), 2.3816521167755127, 1e-3 * 2.38);
  EXPECT_NEAR(answer.by_step(1).measured_seconds(), 2.3754515647888184, 1e-3 * 2.38);
  EXPECT_NEAR(answer.by_step(0).replayed_seconds(), 2.339666260908416, 1e-5);
  EXPECT_NEAR(answer.by_step(1).replayed_seconds(), 2.3333837408972613, 1e-5);
  EXPECT_EQ(answer.verdict(), WHAT_IF_LAST_STAGE);
  EXPECT_LT(answer.replay_error(), 1e-6);
  // If all ranks were alike, work would take its mean, and messages, of which few are late, their median.
  std::map<int32_t, std::vector<double>> of_kind;
  for (const ReplayJob::Operation& operation : job->operations)
    of_kind[operation.kind].push_back(operation.own);
  for (const ReplayJob::Operation& operation : job->operations) {
    const std::vector<double>& own = of_kind[operation.kind];
    EXPECT_NEAR(operation.ideal, job->kinds[operation.kind].communicates ? Median(own) : Mean(own), 1e-9);
  }
  // Savings are of the measured time, in which launches are delayed.
  EXPECT_GT(answer.by_rank_size(), 0);
  for (const WhatIfPart& part : answer.by_rank()) {
    EXPECT_NEAR(part.seconds(), answer.measured_seconds() * (1 - part.saved()), 1e-9) << part.name();
    EXPECT_LE(part.saved_low(), part.saved());
    EXPECT_GE(part.saved_high(), part.saved());
  }
  double most = 0;
  for (const WhatIfPart& part : answer.by_rank()) most = std::max(most, part.saved());
  EXPECT_GT(most, 0);
}

TEST_F(WhatIfTest, NothingIsToBeMendedWhereAllAreAlike) {
  const WhatIfAnswer answer = Ask({});
  EXPECT_EQ(answer.verdict(), WHAT_IF_EVEN);
  EXPECT_NEAR(answer.slowdown(), 1, 1e-6);
  EXPECT_LT(answer.replay_error(), 1e-6);
  EXPECT_EQ(answer.repairs_size(), 0);
  EXPECT_EQ(answer.num_steps(), 3);
  EXPECT_NEAR(answer.measured_seconds(), answer.replayed_seconds(), 1e-9);
  // Forward on stage 0, then both on stage 1, each after its transfer; backward on stage 1, then both on
  // stage 0, each after its transfer; the last reduction and the optimizer.
  const int microseconds = 100 + 2 * (10 + 100) + 200 + 2 * (10 + 200) + 10 + 50;
  EXPECT_NEAR(answer.measured_seconds(), microseconds * 1e-6, 1e-9);
}

TEST_F(WhatIfTest, UnknownNamesInAQuestionAreRefusedWithWhatThereIs) {
  const absl::StatusOr<ReplayJob> job = Read(Training().Json());
  ASSERT_TRUE(job.ok());
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"rank=9,0.5", "no rank=9 here; there are 0, 1, 2, 3"},
           {"measurement=nothing,0.5", "no measurement=nothing here; there are backward-compute"},
           {"colour=1,0.5", "no \"colour\" here; there are measurement"},
           {"rank=1", "ends with no factor"},
           {"rank=1,-1", "ends with no factor"},
           {"rank=1,nan", "ends with no factor"}}) {
    const auto question = ParseScaleQuestion(*job, text);
    EXPECT_EQ(question.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(question.status().message()), HasSubstr(message));
  }
}

TEST_F(WhatIfTest, SizesBesideTheTimelineSayWhatIsMissing) {
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/meta-x.yaml", "trial_name: x\ndp_size: 3\npp_size: 2\n").ok());
  const absl::StatusOr<ReplayJob> job = Read(Training().Json());
  ASSERT_TRUE(job.ok());
  EXPECT_TRUE(job->incomplete);
  EXPECT_THAT(job->notes, Contains(HasSubstr("2 ranks are missing: stage 0 of replica 2")));
}

TEST_F(WhatIfTest, MissingOperationsAreNotedAndTheRestIsReplayed) {
  Training training;
  training.Json();
  const auto second_receive =
      std::find_if(training.events.begin(), training.events.end(), [](const std::string& event) {
        return event.find("forward-recv") != std::string::npos &&
               event.find("\"seq_id\":0") != std::string::npos &&
               event.find("\"step\":1,") != std::string::npos;
      });
  ASSERT_NE(second_receive, training.events.end());
  training.events.erase(second_receive);
  const absl::StatusOr<ReplayJob> job = Read(absl::StrCat("[", absl::StrJoin(training.events, ","), "]"));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->notes, Contains(HasSubstr("step 1: rank 2 has 9 operations")));
  EXPECT_THAT(job->notes, Contains(HasSubstr("1 sends and receives without their partner")));
  EXPECT_NEAR(AnswerWhatIf(*job).replay_error(), 0, 1e-6);
}

TEST_F(WhatIfTest, OperationsThatWaitForEachOtherInACircleAreNamed) {
  Training training;
  training.Json();
  // Rank 2 computes the second microbatch first, which it receives after it computed the first.
  for (std::string& event : training.events) {
    const auto has = [&](std::string_view part) { return event.find(part) != std::string::npos; };
    if (!has("\"tid\":10,") || !has("forward-compute")) continue;
    const char number = has("\"seq_id\":0") ? '1' : '0';
    for (const std::string_view name : {"\"mb_id\":", "\"seq_id\":"})
      event[event.find(name) + name.size()] = number;
  }
  const absl::Status status = Read(absl::StrCat("[", absl::StrJoin(training.events, ","), "]")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("operations wait for each other in a circle: "));
  EXPECT_THAT(std::string(status.message()),
              testing::ContainsRegex(R"(forward-compute on rank 2 \(step 0, seq_id [01]\))"));
}

TEST_F(WhatIfTest, WhatIsNoTimelineIsRefused) {
  const std::string whole = Training().Json();
  const std::string gzip = *ReadFile("questions/saved/testdata/straggler_analysis_cut.json.gz");
  for (const auto& [text, code] : std::vector<std::pair<std::string, absl::StatusCode>>{
           {"", absl::StatusCode::kDataLoss},
           {whole.substr(0, whole.size() / 2), absl::StatusCode::kDataLoss},
           {gzip.substr(0, gzip.size() / 2), absl::StatusCode::kDataLoss},
           {std::string(100000, '['), absl::StatusCode::kDataLoss},
           {"[]", absl::StatusCode::kInvalidArgument},
           {"{\"traceEvents\": 3}", absl::StatusCode::kInvalidArgument},
           {R"([{"ph":"X","cat":"optimizer","pid":0,"tid":0,"ts":NaN,"dur":1,"args":{"step":0,"seq_id":0}}])",
            absl::StatusCode::kInvalidArgument}}) {
    EXPECT_EQ(Read(text).status().code(), code) << text.substr(0, 50);
  }
  EXPECT_EQ(ReadTimeline(dir_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadTimeline(dir_ + "/nothing").status().code(), absl::StatusCode::kNotFound);
}

// Every operation of both runs, and the critical path, stands at the time of its replay.
TEST_F(WhatIfTest, TimelineHoldsBothRuns) {
  const absl::StatusOr<ReplayJob> job = Read(WithSlowRank().Json());
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(WriteIdealTimeline(*job, dir_ + "/ideal.json").ok());
  google::protobuf::Value json;
  const std::string text = ReadFile(dir_ + "/ideal.json").value();
  ASSERT_TRUE(JsonToProto(text, &json).ok());
  // Process, name and step, and nanoseconds of start and duration.
  using Slice = std::tuple<int64_t, std::string, int64_t, int64_t, int64_t>;
  std::vector<Slice> there, expected;
  std::map<std::pair<int64_t, int64_t>, std::string> names;
  std::map<int64_t, std::set<std::string>> tracks;
  for (const auto& event : json.struct_value().fields().at("traceEvents").list_value().values()) {
    const auto& fields = event.struct_value().fields();
    const auto number = [&](const char* name) {
      return static_cast<int64_t>(
          std::llround(fields.at(name).number_value() * (name[0] == 't' && name[1] == 's' ? 1000 : 1)));
    };
    const std::string& phase = fields.at("ph").string_value();
    if (phase == "M" && fields.at("name").string_value() == "process_name")
      names[{number("pid"), -1}] = fields.at("args").struct_value().fields().at("name").string_value();
    if (phase == "M" && fields.at("name").string_value() == "thread_name")
      tracks[number("pid")].insert(fields.at("args").struct_value().fields().at("name").string_value());
    if (phase != "X") continue;
    there.emplace_back(
        number("pid"), fields.at("name").string_value(),
        static_cast<int64_t>(fields.at("args").struct_value().fields().at("step").number_value()),
        number("ts"), std::llround(fields.at("dur").number_value() * 1000));
  }
  std::vector<double> own, delays, ideal;
  for (const ReplayJob::Operation& operation : job->operations) {
    own.push_back(operation.own);
    delays.push_back(operation.delay);
    ideal.push_back(operation.ideal);
  }
  const DependencyGraph::Times measured = job->graph.ReplayInFull(own, delays);
  const DependencyGraph::Times alike = job->graph.ReplayInFull(ideal, {});
  double begin = 0;
  for (int step = 0; step < job->graph.num_steps(); ++step) {
    const auto [first, last] = job->graph.OperationsOf(step);
    double end = 0;
    for (int32_t i = first; i < last; ++i) {
      for (const auto* const times : {&measured, &alike}) {
        const ReplayJob::Operation& operation = job->operations[i];
        const int64_t start = std::llround(1e9 * (begin + times->start[i]));
        expected.emplace_back(2 * operation.rank + (times == &alike), job->kinds[operation.kind].name, step,
                              start, std::llround(1e9 * (begin + times->end[i])) - start);
        end = std::max(end, times->end[i]);
      }
    }
    begin += end;
  }
  std::sort(there.begin(), there.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(there, expected);
  for (int process = 0; process < 8; ++process) {
    EXPECT_THAT(tracks[process], ElementsAre("backward-recv", "backward-send", "forward-recv", "forward-send",
                                             "optimizer-clip-main-grad", "work"));
  }
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ((names[{2 * rank, -1}]), absl::StrCat("rank ", rank, " measured"));
    EXPECT_EQ((names[{2 * rank + 1, -1}]), absl::StrCat("rank ", rank, " ideal"));
  }
  EXPECT_EQ((names[{8, -1}]), "critical path");
  EXPECT_THAT(text, HasSubstr("forward-compute on rank 1"));
}

TEST_F(WhatIfTest, StepsAddUpToTheAnswer) {
  Training training = WithSlowRank();
  training.excess_step = 1;
  absl::StatusOr<ReplayJob> job = Read(training.Json());
  ASSERT_TRUE(job.ok()) << job.status();
  const WhatIfAnswer answer = AnswerWhatIf(*job);
  const auto num_steps = static_cast<double>(answer.num_steps());
  ASSERT_EQ(answer.by_step_size(), answer.num_steps());
  double measured = 0, replayed = 0, ideal = 0;
  std::map<std::string, double> of_part;
  for (int i = 0; i < answer.by_step_size(); ++i) {
    const WhatIfStep& step = answer.by_step(i);
    EXPECT_EQ(step.step(), answer.first_step() + i);
    EXPECT_NEAR(step.slowdown(), step.replayed_seconds() / step.ideal_seconds(), 1e-9);
    measured += step.measured_seconds() / num_steps;
    replayed += step.replayed_seconds() / num_steps;
    ideal += step.ideal_seconds() / num_steps;
    for (const auto* const parts : {&step.by_operation(), &step.by_stage(), &step.by_replica()}) {
      for (const WhatIfStepPart& part : *parts)
        of_part[part.name()] += part.slowdown() * step.ideal_seconds() / num_steps;
    }
  }
  // A rank that is slow in one step alone is no repair.
  EXPECT_GT(answer.by_rank(1).saved(), 0.03);
  EXPECT_LE(answer.by_rank(1).saved_low(), 0);
  EXPECT_EQ(answer.repairs_size(), 0);
  EXPECT_EQ(answer.last_step(), answer.first_step() + answer.num_steps() - 1);
  EXPECT_NEAR(answer.measured_seconds(), measured, 1e-12);
  EXPECT_NEAR(answer.replayed_seconds(), replayed, 1e-12);
  EXPECT_NEAR(answer.ideal_seconds(), ideal, 1e-12);
  EXPECT_NEAR(answer.slowdown(), replayed / ideal, 1e-9);
  EXPECT_NEAR(answer.launch_slowdown(), measured / replayed, 1e-9);
  size_t num_parts = 0;
  for (const auto* const parts : {&answer.by_operation(), &answer.by_stage(), &answer.by_replica()}) {
    for (const WhatIfPart& part : *parts) {
      EXPECT_NEAR(part.slowdown(), of_part[part.name()] / ideal, 1e-6) << part.name();
      ++num_parts;
    }
  }
  EXPECT_EQ(num_parts, of_part.size());
  EXPECT_GT(num_parts, 6);
  // A rank's is the smaller one of its stage's and its replica's.
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(answer.by_rank(rank).slowdown(),
              std::min(answer.by_stage(rank / 2).slowdown(), answer.by_replica(rank % 2).slowdown()));
  }
  // Parts say whose times they are, and of which operation, unless they are of all.
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_THAT(answer.by_rank(rank).ranks(), ElementsAre(rank));
    EXPECT_EQ(answer.by_rank(rank).operation(), "");
  }
  for (const int stage : {0, 1})
    EXPECT_THAT(answer.by_stage(stage).ranks(), ElementsAre(2 * stage, 2 * stage + 1));
  for (const WhatIfPart& part : answer.by_operation()) {
    EXPECT_EQ(part.ranks_size(), 0);
    EXPECT_EQ(part.operation(), part.name());
  }
  for (ReplayJob::Kind& kind : job->kinds) kind.operation = "all";
  EXPECT_EQ(AnswerWhatIf(*job).by_operation(0).operation(), "");
  EXPECT_EQ(answer.notes_size(), 0);
  double share = 0;
  for (const CriticalPart& part : answer.critical_path()) share += part.share();
  EXPECT_NEAR(share, 1, 1e-6);
}

}  // namespace
}  // namespace ott::saved
