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
  // Its forward computations take 300 more.
  int slow_rank = -1;

  std::vector<std::string> events;

  int Forward(int stage, int replica) const { return forward + (stage * 2 + replica == slow_rank ? 300 : 0); }

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
      const int64_t forward0 = Forward(0, replica);
      const int64_t forward1 = Forward(1, replica);
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

class WhatIfTest : public ::testing::Test {
 protected:
  WhatIfTest() { std::filesystem::create_directories(dir_); }

  absl::StatusOr<ReplayJob> Read(const std::string& json) {
    EXPECT_TRUE(WriteFileAtomically(path_, json).ok());
    absl::StatusOr<Timeline> timeline = ReadTimeline(path_);
    if (!timeline.ok()) return timeline.status();
    return MakeJob(*std::move(timeline));
  }

  WhatIfAnswer Ask(Training training) { return AnswerWhatIf(Read(training.Json()).value()); }

  const std::string dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = dir_ + "/timeline-x.json";
};

// The whole trace's figures are compared by questions/saved/compare_with_published.
TEST_F(WhatIfTest, StepsOfAPublishedTraceTakeWhatWasPublished) {
  Timeline timeline = ReadTimeline("questions/saved/testdata/straggler_analysis_cut.json.gz").value();
  const ReplayJob job = MakeJob(std::move(timeline)).value();
  const WhatIfAnswer answer = AnswerWhatIf(job);
  ASSERT_EQ(answer.by_step_size(), 2);
  EXPECT_NEAR(answer.by_step(0).measured_seconds(), 2.3816521167755127, 1e-3 * 2.38);
  EXPECT_NEAR(answer.by_step(1).measured_seconds(), 2.3754515647888184, 1e-3 * 2.38);
  EXPECT_NEAR(answer.by_step(0).replayed_seconds(), 2.339666260908416, 1e-5);
  EXPECT_NEAR(answer.by_step(1).replayed_seconds(), 2.3333837408972613, 1e-5);
  EXPECT_EQ(answer.verdict(), WHAT_IF_LAST_STAGE);
  EXPECT_LT(answer.replay_error(), 1e-6);
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

TEST_F(WhatIfTest, SizesBesideTheTimelineSayWhatIsMissing) {
  ASSERT_TRUE(WriteFileAtomically(dir_ + "/meta-x.yaml", "trial_name: x\ndp_size: 3\npp_size: 2\n").ok());
  const ReplayJob job = Read(Training().Json()).value();
  EXPECT_TRUE(job.incomplete);
  EXPECT_THAT(job.notes, Contains(HasSubstr("2 ranks are missing: stage 0 of replica 2")));
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
  Training training;
  training.slow_rank = 1;
  const ReplayJob job = Read(training.Json()).value();
  ASSERT_TRUE(WriteIdealTimeline(job, dir_ + "/ideal.json").ok());
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
  for (const ReplayJob::Operation& operation : job.operations) {
    own.push_back(operation.own);
    delays.push_back(operation.delay);
    ideal.push_back(operation.ideal);
  }
  const DependencyGraph::Times measured = job.graph.ReplayInFull(own, delays);
  const DependencyGraph::Times alike = job.graph.ReplayInFull(ideal, {});
  double begin = 0;
  for (int step = 0; step < job.graph.num_steps(); ++step) {
    const auto [first, last] = job.graph.OperationsOf(step);
    double end = 0;
    for (int32_t i = first; i < last; ++i) {
      for (const auto* const times : {&measured, &alike}) {
        const ReplayJob::Operation& operation = job.operations[i];
        const int64_t start = std::llround(1e9 * (begin + times->start[i]));
        expected.emplace_back(2 * operation.rank + (times == &alike), job.kinds[operation.kind].name, step,
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

}  // namespace
}  // namespace ott::saved
