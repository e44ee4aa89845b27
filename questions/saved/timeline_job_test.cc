// Jobs of timelines of which anything may be missing, against the rules, written once more.

#include "ott/questions/saved/timeline_job.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/location.h"
#include "questions/saved/worker_step.h"

namespace ott::saved {
namespace {

using Type = OperationType;
using Event = Timeline::Event;

// A few steps of a pipeline whose stages hold chunks of the model, of which operations and ranks are missing.
Timeline DrawTimeline(std::mt19937& random) {
  const auto draw = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  const int num_stages = 1 + draw(3), num_chunks = 1 + draw(2), num_batches = 1 + draw(3);
  const bool overlaps = draw(2) == 0, lacks = draw(3) > 0;
  Timeline timeline;
  timeline.notes = {"known before"};
  for (int replica = 1 + draw(2); replica > 0; --replica) {
    for (int stage = 0; stage < num_stages; ++stage) {
      for (int tensor = 1 + draw(2); tensor > 0; --tensor)
        timeline.workers.push_back({7 + static_cast<int>(timeline.workers.size()), replica, stage, tensor});
    }
  }
  const int num_workers = static_cast<int>(timeline.workers.size());
  for (int64_t step = 3; step < 8; step += 1 + draw(3)) {
    for (int worker = 0; worker < num_workers; ++worker) {
      if (lacks && draw(8) == 0) continue;
      std::map<Type, int> next;
      double now = static_cast<double>(step);
      const auto add = [&](Type type, int chunk) {
        now += 0.001 * draw(20);
        const Event event = {worker, type, next[type]++, chunk, step, now, 0.0003 + 0.001 * draw(30)};
        if (lacks && draw(60) == 0) return;
        timeline.events.push_back(event);
        if (lacks && draw(60) == 0) timeline.events.push_back(event);
        timeline.events.back().start += 0.001 * draw(3);
      };
      for (int chunk = 0; chunk < num_chunks; ++chunk) add(Type::kParamsAllGather, chunk);
      for (const bool is_forward : {true, false}) {
        for (int i = 0; i < num_chunks * num_batches; ++i) {
          const int chunk = is_forward ? i / num_batches : num_chunks - 1 - i / num_batches;
          add(is_forward ? Type::kForwardReceive : Type::kBackwardReceive, chunk);
          add(is_forward ? Type::kForwardCompute : Type::kBackwardCompute, chunk);
          add(is_forward ? Type::kForwardSend : Type::kBackwardSend, chunk);
        }
      }
      add(Type::kGradsReduceScatter, 0);
      for (const Type type : {Type::kGc, Type::kLayernormGradsAllReduce, Type::kEmbeddingGradsAllReduce,
                              Type::kSeparateGradsAllReduce, Type::kClipMainGrad, Type::kOptimizer}) {
        if (type != Type::kSeparateGradsAllReduce || overlaps) add(type, -1);
      }
    }
  }
  std::shuffle(timeline.events.begin(), timeline.events.end(), random);
  return timeline;
}

struct ExpectedJob {
  std::vector<Event> events;
  std::vector<std::set<int32_t>> after, group;
  std::vector<std::string> notes;
};

void Join(const std::vector<int32_t>& members, ExpectedJob& expected) {
  for (const int32_t member : members) {
    if (members.size() > 1) expected.group[member].insert(members.begin(), members.end());
  }
}

using Work = std::vector<std::tuple<Type, int32_t, int32_t>>;  // type, sequence and chunk of each operation

// Adds a note for each step in which a rank of a stage does not do what most do.
void NoteOddSteps(const Timeline& timeline, ExpectedJob& expected) {
  std::map<int64_t, std::vector<Work>> work;  // by step and worker
  for (const Event& event : expected.events) {
    std::vector<Work>& of_step = work[event.step];
    of_step.resize(timeline.workers.size());
    of_step[event.worker].emplace_back(event.type, event.sequence, event.chunk);
  }
  std::map<int, std::vector<std::tuple<int64_t, int, Work>>> of_stage;
  for (const auto& [step, of_workers] : work) {
    for (const bool is_there : {true, false}) {
      for (size_t worker = 0; worker < of_workers.size(); ++worker) {
        if (of_workers[worker].empty() == is_there) continue;
        of_stage[timeline.workers[worker].stage].emplace_back(step, timeline.workers[worker].rank,
                                                              of_workers[worker]);
      }
    }
  }
  std::vector<std::string> notes;
  for (const auto& [stage, all] : of_stage) {
    std::map<Work, int> count;
    const Work* usual = nullptr;
    for (const auto& [step, rank, done] : all) count[done] += done.empty() ? 0 : 1;
    for (const auto& [step, rank, done] : all) {
      if (usual == nullptr || count[done] > count[*usual]) usual = &done;
    }
    for (const auto& [step, rank, done] : all) {
      if (done == *usual) continue;
      notes.push_back(absl::StrCat("step ", step, ": rank ", rank, " has ", done.size(),
                                   " operations, and other steps of stage ", stage, " have ", usual->size()));
    }
  }
  const size_t num_odd = notes.size();
  if (num_odd > 8) {
    notes.resize(8);
    notes.push_back(absl::StrCat(num_odd - 8, " more steps of ranks have other operations than most"));
  }
  expected.notes.insert(expected.notes.end(), notes.begin(), notes.end());
}

ExpectedJob Expect(const Timeline& timeline) {
  ExpectedJob expected;
  expected.notes = timeline.notes;
  std::map<std::tuple<int64_t, int32_t, Type, int32_t>, Event> earliest;
  for (const Event& event : timeline.events) {
    const auto [known, is_new] =
        earliest.emplace(std::tuple(event.step, event.worker, event.type, event.sequence), event);
    if (event.start < known->second.start) known->second = event;
  }
  Pipeline pipeline;
  for (const Timeline::Worker& worker : timeline.workers)
    pipeline.num_stages = std::max(pipeline.num_stages, worker.stage + 1);
  for (const auto& [unused, event] : earliest) {
    expected.events.push_back(event);
    pipeline.num_chunks = std::max(pipeline.num_chunks, event.chunk + 1);
    pipeline.overlaps_gradients |= event.type == Type::kSeparateGradsAllReduce;
  }
  const size_t size = expected.events.size();
  expected.after.resize(size);
  expected.group.resize(size);
  if (const size_t num_dropped = timeline.events.size() - size; num_dropped > 0)
    expected.notes.push_back(
        absl::StrCat(num_dropped, " operations not used: another has their rank, step, name and seq_id"));

  // Collectives by who is in them, and messages by step, direction, replica, tensor and the stage that sends.
  std::map<std::tuple<int64_t, Type, int, int, int, int>, std::vector<int32_t>> groups;
  std::map<std::tuple<int64_t, bool, int, int, int>, std::vector<WorkerStep::Message>>
      messages[2];  // sends, receives
  std::map<std::pair<int, Work>, WorkerStep> known;
  for (size_t begin = 0, end = 0; begin < size; begin = end) {
    const Event& first = expected.events[begin];
    while (end < size && expected.events[end].step == first.step &&
           expected.events[end].worker == first.worker)
      ++end;
    const Timeline::Worker& worker = timeline.workers[first.worker];
    // Workers of a stage that do the same wait for the same.
    Work work;
    for (size_t i = begin; i < end; ++i)
      work.emplace_back(expected.events[i].type, expected.events[i].sequence, expected.events[i].chunk);
    const auto events = absl::MakeConstSpan(expected.events).subspan(begin, end - begin);
    const WorkerStep& found =
        known.emplace(std::pair(worker.stage, work), FindDependencies(events, worker.stage, pipeline))
            .first->second;
    const auto offset = static_cast<int32_t>(begin);
    for (const auto& [event, before] : found.comes_after)
      expected.after[offset + event].insert(offset + before);
    for (int type = 0; type < 4; ++type) {
      const bool is_forward = type < 2, receives = type % 2 == 1;
      const int from = !receives ? worker.stage : worker.stage + (is_forward ? pipeline.num_stages - 1 : 1);
      auto& of_edge = messages[receives][{first.step, is_forward, worker.replica, worker.tensor,
                                          from % pipeline.num_stages}];
      for (WorkerStep::Message message : found.messages[type]) {
        message.event += offset;
        of_edge.push_back(message);
      }
      messages[!receives]
              [{first.step, is_forward, worker.replica, worker.tensor, from % pipeline.num_stages}];
    }
    for (size_t i = begin; i < end; ++i) {
      const Event& event = expected.events[i];
      const bool is_of_all = event.type == Type::kClipMainGrad,
                 is_of_ends = event.type == Type::kEmbeddingGradsAllReduce;
      if (!is_of_all && !is_of_ends && event.type != Type::kParamsAllGather &&
          event.type != Type::kGradsReduceScatter && event.type != Type::kSeparateGradsAllReduce)
        continue;
      groups[{event.step, event.type, event.sequence, is_of_all ? -1 : worker.tensor,
              is_of_ends ? worker.replica : -1, is_of_all || is_of_ends ? -1 : worker.stage}]
          .push_back(static_cast<int32_t>(i));
    }
  }
  for (const auto& [unused, members] : groups) Join(members, expected);
  int num_unpaired = 0;
  for (const auto& [edge, sends] : messages[0]) {
    const std::vector<WorkerStep::Message>& receives = messages[1][edge];
    num_unpaired += static_cast<int>(sends.size() + receives.size());
    for (size_t i = 0; i < sends.size(); ++i) {
      for (size_t j = 0; j < receives.size(); ++j) {
        const bool is_pair = sends.size() == receives.size()
                                 ? i == j
                                 : std::pair(sends[i].chunk, sends[i].ordinal) ==
                                       std::pair(receives[j].chunk, receives[j].ordinal);
        if (!is_pair) continue;
        Join({sends[i].event, receives[j].event}, expected);
        num_unpaired -= 2;
      }
    }
  }
  NoteOddSteps(timeline, expected);
  if (num_unpaired > 0)
    expected.notes.push_back(
        absl::StrCat(num_unpaired, " sends and receives without their partner: they wait for nobody"));
  return expected;
}

TEST(MakeJob, OfAnyTimelineIsAsTheRulesSay) {
  std::mt19937 random(1);
  int num_jobs = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const Timeline timeline = DrawTimeline(random);
    const absl::StatusOr<ReplayJob> job = MakeJob(timeline);
    if (absl::IsFailedPrecondition(job.status()))
      continue;  // where messages are missing they may wait in a circle
    ASSERT_TRUE(job.ok()) << job.status();
    ++num_jobs;
    const ExpectedJob expected = Expect(timeline);
    EXPECT_THAT(job->notes, testing::ElementsAreArray(expected.notes)) << trial;
    for (size_t i = 0; i < timeline.workers.size(); ++i) {
      const Timeline::Worker& worker = timeline.workers[i];
      EXPECT_EQ(std::tuple(job->ranks[i].rank, job->ranks[i].stage, job->ranks[i].replica),
                std::tuple(worker.rank, worker.stage, worker.replica));
    }
    const size_t size = expected.events.size();
    ASSERT_EQ(job->operations.size(), size);
    std::map<int64_t, std::pair<double, double>> spans;  // of steps
    for (const Event& event : expected.events) {
      auto& [first, last] = spans.emplace(event.step, std::pair(INFINITY, 0)).first->second;
      first = std::min(first, event.start);
      last = std::max(last, event.start + event.duration);
    }
    ASSERT_EQ(job->steps.size(), spans.size());
    size_t at = 0;
    for (const auto& [step, span] : spans) {
      EXPECT_EQ(job->steps[at].number, step);
      EXPECT_EQ(job->steps[at].batch, step);
      EXPECT_NEAR(job->steps[at++].measured_seconds, span.second - span.first, 1e-12);
    }
    std::map<int32_t, std::vector<double>> own_of_kind;
    for (size_t i = 0; i < size; ++i) {
      const Event& event = expected.events[i];
      const ReplayJob::Operation& operation = job->operations[i];
      const auto set_of = [](absl::Span<const int32_t> all) {
        return std::set<int32_t>(all.begin(), all.end());
      };
      ASSERT_EQ(set_of(job->graph.ComesAfter(static_cast<int32_t>(i))), expected.after[i]) << trial;
      ASSERT_EQ(set_of(job->graph.GroupOf(static_cast<int32_t>(i))), expected.group[i]) << trial;
      EXPECT_EQ(std::tuple(operation.rank, operation.kind, operation.place),
                std::tuple(event.worker, static_cast<int32_t>(event.type), -1));
      const double first = spans[event.step].first;
      EXPECT_NEAR(operation.start, event.start - first, 1e-12);
      EXPECT_NEAR(operation.end, event.start + event.duration - first, 1e-12);
      // Clocks may be wrong by a hundredth of a second.
      const auto without_errors = [](double seconds) { return seconds > -0.01 + 1e-9 ? seconds : 0; };
      double latest = operation.start, ready = expected.after[i].empty() ? 0 : -INFINITY;
      for (const int32_t member : expected.group[i]) latest = std::max(latest, job->operations[member].start);
      for (const int32_t before : expected.after[i]) ready = std::max(ready, job->operations[before].end);
      EXPECT_NEAR(operation.own, without_errors(operation.end - latest), 1e-12);
      EXPECT_NEAR(operation.delay, without_errors(operation.start - ready), 1e-12);
      own_of_kind[operation.kind].push_back(operation.own);
    }
    for (const ReplayJob::Operation& operation : job->operations) {
      const std::vector<double>& own = own_of_kind[operation.kind];
      EXPECT_NEAR(operation.ideal, job->kinds[operation.kind].communicates ? Median(own) : Mean(own), 1e-12);
    }
  }
  EXPECT_GT(num_jobs, 60);
}

TEST(MakeJob, KindsAreThoseOfTheTimeline) {
  Timeline timeline;
  timeline.workers.emplace_back();
  timeline.events.emplace_back();
  const ReplayJob job = MakeJob(timeline).value();
  std::vector<std::tuple<std::string, std::string, bool>> kinds;
  for (const ReplayJob::Kind& kind : job.kinds)
    kinds.emplace_back(kind.name, kind.operation, kind.communicates);
  using testing::FieldsAre;
  EXPECT_THAT(
      kinds, testing::ElementsAre(FieldsAre("forward-compute", "forward-compute", false),
                                  FieldsAre("backward-compute", "backward-compute", false),
                                  FieldsAre("forward-send", "forward-pp-comm", true),
                                  FieldsAre("forward-recv", "forward-pp-comm", true),
                                  FieldsAre("backward-send", "backward-pp-comm", true),
                                  FieldsAre("backward-recv", "backward-pp-comm", true),
                                  FieldsAre("params-all-gather", "params-all-gather", true),
                                  FieldsAre("grads-reduce-scatter", "grads-reduce-scatter", true),
                                  FieldsAre("separate-grads-all-reduce", "separate-grads-all-reduce", true),
                                  FieldsAre("layernorm-grads-all-reduce", "layernorm-grads-all-reduce", true),
                                  FieldsAre("embedding-grads-all-reduce", "embedding-grads-all-reduce", true),
                                  FieldsAre("optimizer-clip-main-grad", "optimizer-clip-main-grad", true),
                                  FieldsAre("optimizer", "optimizer", false), FieldsAre("gc", "gc", false)));
}

}  // namespace
}  // namespace ott::saved
