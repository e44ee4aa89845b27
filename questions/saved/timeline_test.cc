#include "ott/questions/saved/timeline.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"

namespace ott::saved {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr int64_t kMost = 1 << 20;

absl::StatusOr<Timeline> Read(const std::vector<std::string>& events, const std::string& sizes = "") {
  const std::string dir = ::testing::TempDir();
  EXPECT_TRUE(
      WriteFileAtomically(dir + "/timeline.json", absl::StrCat("[", absl::StrJoin(events, ","), "]")).ok());
  EXPECT_TRUE(WriteFileAtomically(dir + "/sizes.yaml", sizes).ok());
  return ReadTimeline(dir + "/timeline.json", sizes.empty() ? "" : dir + "/sizes.yaml");
}

std::string Name(const char* of, int64_t process, int64_t thread, const std::string& label) {
  return absl::StrCat(R"({"ph":"M","name":")", of, R"(","pid":)", process, R"(,"tid":)", thread,
                      R"(,"args":{"name":")", label, R"("}})");
}

// Writes an operation with these fields, each as JSON; "" leaves one out.
std::string Operation(const std::string& name, const std::map<std::string, std::string>& fields) {
  std::vector<std::string> args;
  for (const char* const arg : {"step", "seq_id", "model_chunk"}) {
    const auto found = fields.find(arg);
    if (found != fields.end()) args.push_back(absl::StrCat("\"", arg, "\":", found->second));
  }
  std::string text =
      absl::StrCat(R"({"ph":"X","name":")", name, R"(","args":{)", absl::StrJoin(args, ","), "}");
  for (const char* const field : {"pid", "tid", "ts", "dur", "cat"}) {
    const auto found = fields.find(field);
    if (found != fields.end()) absl::StrAppend(&text, ",\"", field, "\":", found->second);
  }
  return text + "}";
}

std::string Describe(const Timeline::Event& event, const Timeline::Worker& worker) {
  return absl::StrCat(worker.rank, ": ", worker.replica, " ", worker.stage, " ", worker.tensor, " ",
                      std::string(OperationTypeName(event.type)), " ", event.sequence, " ", event.chunk, " ",
                      event.step, " ", event.start, " ", event.duration);
}

// What a file says of any workers, which have any ranks, in the order of the file.
TEST(Timeline, HasTheOperationsOfAllWorkers) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    const int num_stages = 1 + trial % 3, num_replicas = 1 + trial / 3 % 3, num_tensors = 1 + trial / 9 % 2;
    const bool have_names = random() % 2 == 0;
    std::vector<int> ranks;
    for (int i = 0; i < num_stages * num_replicas * num_tensors; ++i) ranks.push_back(i);
    std::shuffle(ranks.begin(), ranks.end(), random);
    std::vector<std::string> events, expected;
    for (size_t i = 0; i < ranks.size(); ++i) {
      Timeline::Worker worker;
      worker.rank = ranks[i];
      worker.tensor = static_cast<int>(i) % num_tensors;
      worker.stage = static_cast<int>(i) / num_tensors % num_stages;
      worker.replica = static_cast<int>(i) / num_tensors / num_stages;
      // Processes have the numbers of replicas, or are named after them.
      const int process = have_names ? 50 - worker.replica : worker.replica;
      if (have_names)
        events.push_back(Name("process_name", process, 0, absl::StrCat("DP rank [", worker.replica, "]")));
      for (int k = 0; k < 5; ++k) {
        const int thread = 5 * worker.rank + k;
        events.push_back(Name("thread_name", process, thread,
                              absl::StrCat("PP rank ", worker.stage, ", TP rank ", worker.tensor, ", x")));
        Timeline::Event event;
        event.type = static_cast<OperationType>(random() % kNumOperationTypes);
        event.step = static_cast<int64_t>(random() % 9);
        event.sequence = std::vector<int32_t>{-kMost, 0, 7, kMost}[random() % 4];
        const int64_t chunk = std::vector<int64_t>{-kMost - 1, 0, 3, kMost, kMost + 1}[random() % 5];
        event.chunk = std::abs(chunk) > kMost ? -1 : static_cast<int32_t>(chunk);
        const auto start = static_cast<int>(random() % 1000), duration = static_cast<int>(random() % 1000);
        event.start = 1e-6 * start;
        event.duration = 1e-6 * duration;
        expected.push_back(Describe(event, worker));
        const std::string type(OperationTypeName(event.type));
        std::map<std::string, std::string> fields = {{"pid", absl::StrCat(process)},
                                                     {"tid", absl::StrCat(thread)},
                                                     {"ts", absl::StrCat(start)},
                                                     {"dur", absl::StrCat(duration)},
                                                     {"step", absl::StrCat(event.step)},
                                                     {"model_chunk", absl::StrCat(chunk)},
                                                     {"seq_id", absl::StrCat(event.sequence)}};
        const bool is_category = random() % 2 == 0;
        if (is_category) fields["cat"] = absl::StrCat("\"", type, "\"");
        events.push_back(Operation(is_category ? "any" : type, fields));
      }
    }
    const Timeline timeline = Read(events).value();
    std::vector<std::string> found;
    for (const Timeline::Event& event : timeline.events) {
      found.push_back(Describe(event, timeline.workers[event.worker]));
    }
    EXPECT_THAT(found, ElementsAreArray(expected)) << trial;
    EXPECT_FALSE(timeline.incomplete);
    EXPECT_TRUE(timeline.notes.empty());
    for (size_t i = 0; i < timeline.workers.size(); ++i) EXPECT_EQ(timeline.workers[i].rank, i);
  }
}

std::vector<std::string> OfTwoStages() {
  return {Name("thread_name", 0, 0, "PP rank 0"), Name("thread_name", 0, 5, "PP rank 1, TP rank 0")};
}

const std::map<std::string, std::string> kFields = {{"pid", "0"}, {"tid", "5"},  {"ts", "1"},
                                                    {"dur", "1"}, {"step", "1"}, {"seq_id", "0"}};

TEST(Timeline, CountsOperationsThatLackWhatTheyNeed) {
  int num_unusable = 0;
  std::vector<std::string> events = OfTwoStages();
  for (const int thread : {0, 5}) {
    std::map<std::string, std::string> fields = kFields;
    fields["tid"] = absl::StrCat(thread);
    events.push_back(Operation("gc", fields));
  }
  for (const char* const field : {"pid", "ts", "dur", "step", "seq_id"}) {
    std::map<std::string, std::string> fields = kFields;
    fields.erase(field);
    events.push_back(Operation("gc", fields));
    ++num_unusable;
  }
  for (const char* const number : {"1048577", "-1048577", "\"x\"", "[1]", "null"}) {
    std::map<std::string, std::string> fields = kFields;
    fields["seq_id"] = number;
    events.push_back(Operation("gc", fields));
    ++num_unusable;
  }
  std::map<std::string, std::string> of_nobody = kFields;
  of_nobody["tid"] = "77";
  events.push_back(Operation("gc", of_nobody));
  of_nobody.erase("tid");
  events.push_back(Operation("gc", of_nobody));
  for (int i = 0; i < 3; ++i) events.push_back(Operation("load", kFields));
  const Timeline timeline = Read(events).value();
  EXPECT_EQ(timeline.events.size(), 2U);
  EXPECT_FALSE(timeline.incomplete);
  EXPECT_THAT(timeline.notes,
              testing::UnorderedElementsAre(
                  "2 operations not used: no thread_name says whose they are",
                  "3 operations not used: \"load\" is no operation of a training step",
                  absl::StrCat(num_unusable,
                               " operations not used: without pid, ts, dur, args.step or args.seq_id")));
  EXPECT_THAT(std::string(Read({Operation("load", kFields)}).status().message()),
              HasSubstr("no operations of a training step: 1 operations not used: \"load\""));
}

TEST(Timeline, NamesWorkersThatAreMissing) {
  std::vector<std::string> events = OfTwoStages();
  events.push_back(Operation("gc", kFields));
  EXPECT_THAT(Read(events)->notes,
              Contains("1 rank is missing: stage 0 of replica 0; what waits for them is not known"));
  EXPECT_TRUE(Read(events)->incomplete);
  EXPECT_THAT(Read(events, "pp_size: 3\nnone\n dp_size : 2\n")->notes,
              Contains(HasSubstr(
                  "5 ranks are missing: stage 0 of replica 0, stage 0 of replica 1, stage 1 of replica 1, "
                  "stage 2 of replica 0, stage 2 of replica 1; ")));
  EXPECT_THAT(Read(events, "pp_size: 5\ndp_size: 2\n")->notes,
              Contains(HasSubstr(
                  "9 ranks are missing: stage 0 of replica 0, stage 0 of replica 1, stage 1 of replica 1, "
                  "stage 2 of replica 0, stage 2 of replica 1, stage 3 of replica 0, stage 3 of replica 1, "
                  "stage 4 of replica 0, ...; ")));
  EXPECT_THAT(Read(events, "pp_size: 0\ndp_size: 9999999\n")->notes,
              Contains(HasSubstr("1 rank is missing")));
}

}  // namespace
}  // namespace ott::saved
