// Steps of one worker of a pipeline, made so that it is known what waits for what.

#include "questions/saved/worker_step.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace ott::saved {
namespace {

using Type = OperationType;
using Pairs = std::vector<std::pair<int32_t, int32_t>>;

// Events by type and sequence, and what is expected of them. Events are named by their place in `all` until
// they are sorted.
class StepForTest {
 public:
  StepForTest(int stage, const Pipeline& pipeline) : stage_(stage), pipeline_(pipeline) {}

  int Add(Type type, int sequence, double start, double duration, int chunk = 0) {
    Timeline::Event event;
    event.type = type;
    event.sequence = sequence;
    event.chunk = chunk;
    event.start = start;
    event.duration = duration;
    all_.push_back(event);
    return static_cast<int>(all_.size()) - 1;
  }
  void After(int event, int comes_after) { after_.emplace_back(event, comes_after); }
  void Chain(const std::vector<int>& events) {
    for (size_t i = 1; i < events.size(); ++i) After(events[i], events[i - 1]);
  }
  // Expects that a message carries the ordinal-th output of a chunk of the whole model, if there is such one.
  void Carries(int event, int chunk, int other_chunk, int ordinal) {
    if (other_chunk >= 0 && other_chunk < pipeline_.num_stages * pipeline_.num_chunks)
      messages_.push_back({event, chunk, ordinal});
  }

  void Check() const {
    std::vector<int> order(all_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return std::make_pair(all_[a].type, all_[a].sequence) < std::make_pair(all_[b].type, all_[b].sequence);
    });
    std::vector<Timeline::Event> events;
    std::vector<int32_t> place(order.size());
    for (const int i : order) {
      place[i] = static_cast<int32_t>(events.size());
      events.push_back(all_[i]);
    }
    WorkerStep found = FindDependencies(events, stage_, pipeline_);
    Pairs expected;
    for (const auto& [event, before] : after_) expected.emplace_back(place[event], place[before]);
    std::sort(expected.begin(), expected.end());
    std::sort(found.comes_after.begin(), found.comes_after.end());
    EXPECT_EQ(found.comes_after, expected);
    std::vector<std::vector<int>> carried, expected_carried;
    for (int type = 0; type < 4; ++type) {
      for (const WorkerStep::Message& message : found.messages[type])
        carried.push_back({type, message.event, message.chunk, message.ordinal});
    }
    for (const WorkerStep::Message& message : messages_) {
      const int type = static_cast<int>(all_[message.event].type) - static_cast<int>(Type::kForwardSend);
      expected_carried.push_back({type, place[message.event], message.chunk, message.ordinal});
    }
    std::sort(carried.begin(), carried.end());
    std::sort(expected_carried.begin(), expected_carried.end());
    EXPECT_EQ(carried, expected_carried);
  }

 private:
  const int stage_;
  const Pipeline pipeline_;
  std::vector<Timeline::Event> all_;
  Pairs after_;
  std::vector<WorkerStep::Message> messages_;
};

// Adds the computations of one direction and their messages, of which the first receive may be none, so that
// the second is number 0, or may be lost. Returns the computations.
std::vector<int> AddDirection(bool is_forward, int stage, const Pipeline& pipeline, double begin,
                              int num_computes, bool lacks_first_receive, bool loses_first_receive,
                              int num_early_sends, bool has_late_receive, std::vector<int>& first_messages,
                              StepForTest& step) {
  const Type compute = is_forward ? Type::kForwardCompute : Type::kBackwardCompute;
  const Type send = is_forward ? Type::kForwardSend : Type::kBackwardSend;
  const Type receive = is_forward ? Type::kForwardReceive : Type::kBackwardReceive;
  std::vector<int> computes, sends, receives, ordinals(pipeline.num_chunks);
  for (int i = 0; i < num_early_sends; ++i) sends.push_back(step.Add(send, i, begin, 0.5));
  for (int i = 0; i < num_computes; ++i) {
    const int chunk = i / 2 % pipeline.num_chunks;
    const int ordinal = ordinals[chunk]++;
    const double start = begin + 10 * i + 1;
    // Some profiles name no chunk if a stage has only one.
    const bool names_none = pipeline.num_chunks == 1 && num_computes % 2 == 0;
    computes.push_back(step.Add(compute, i, start, 5, names_none ? -1 : chunk));
    const int of_model = chunk * pipeline.num_stages + stage;
    const int from = is_forward ? of_model - 1 : of_model + 1, to = is_forward ? of_model + 1 : of_model - 1;
    if (i > 0 || !(lacks_first_receive || loses_first_receive)) {
      receives.push_back(step.Add(receive, i - lacks_first_receive, start - 0.9, 0.5));
      step.After(computes[i], receives.back());
      if (i > 0) step.After(receives.back(), computes[i - 1]);
      step.Carries(receives.back(), from, from, ordinal);
    }
    sends.push_back(step.Add(send, i + num_early_sends, start + 5, 1));
    step.After(sends.back(), computes[i]);
    step.Carries(sends.back(), of_model, to, ordinal);
  }
  // A receive of nothing, after the last computation began.
  if (has_late_receive) {
    receives.push_back(
        step.Add(receive, num_computes - lacks_first_receive, begin + 10 * num_computes - 8, 1));
  }
  step.Chain(sends);
  step.Chain(receives);
  first_messages = {sends[0]};
  if (!receives.empty() && !loses_first_receive) first_messages.push_back(receives[0]);
  return computes;
}

TEST(FindDependencies, MessagesBelongToTheComputationsThatTheyAreForOrOf) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 400; ++trial) {
    Pipeline pipeline;
    pipeline.num_stages = 2 + static_cast<int>(random() % 3);
    pipeline.num_chunks = 1 + static_cast<int>(random() % 2);
    const int stage = static_cast<int>(random() % static_cast<unsigned>(pipeline.num_stages));
    const bool is_edge = stage == 0 || stage == pipeline.num_stages - 1;
    const int num_computes = 1 + static_cast<int>(random() % 6);
    StepForTest step(stage, pipeline);
    std::vector<int> computes, unused, first_messages;
    for (const bool is_forward : {true, false}) {
      const bool lacks_first = is_edge && random() % 2 == 0;
      const std::vector<int> some = AddDirection(
          is_forward, stage, pipeline, is_forward ? 0 : 1000, num_computes, lacks_first,
          /*loses_first_receive=*/!lacks_first && random() % 3 == 0, static_cast<int>(random() % 2),
          random() % 2 == 0, is_forward ? unused : first_messages, step);
      computes.insert(computes.end(), some.begin(), some.end());
    }
    step.Chain(computes);
    // The first ones of the way back come after the computation that is two before the first one back.
    if (num_computes < 2) first_messages.clear();
    for (const int message : first_messages) step.After(message, computes[num_computes - 2]);
    step.Check();
  }
}

TEST(FindDependencies, WhatComesBesideAndAfterTheComputations) {
  for (const bool overlaps : {false, true}) {
    Pipeline pipeline;
    pipeline.num_chunks = 2;
    pipeline.overlaps_gradients = overlaps;
    StepForTest step(0, pipeline);
    const int gather0 = step.Add(Type::kParamsAllGather, 0, 0, 1, 0);
    const int gather1 = step.Add(Type::kParamsAllGather, 1, 1, 1, 0);
    const int gather2 = step.Add(Type::kParamsAllGather, 2, 2, 1, 1);
    std::vector<int> computes;
    for (const int chunk : {0, 0, 1, 1}) {
      const int i = static_cast<int>(computes.size());
      computes.push_back(step.Add(Type::kForwardCompute, i, 10 + i, 1, chunk));
    }
    for (const int chunk : {1, 1, 0, 0}) {
      const int i = static_cast<int>(computes.size()) - 4;
      computes.push_back(step.Add(Type::kBackwardCompute, i, 20 + i, 1, chunk));
    }
    step.Chain(computes);
    step.After(computes[0], gather1);
    step.After(computes[2], gather2);
    const int scatter0 = step.Add(Type::kGradsReduceScatter, 0, 22, 1, 1);
    const int scatter1 = step.Add(Type::kGradsReduceScatter, 1, 24, 1, 0);
    const int scatter2 = step.Add(Type::kGradsReduceScatter, 2, 25, 1, 0);
    step.Chain({gather0, gather1, gather2, scatter0, scatter1, scatter2});
    const int collect = step.Add(Type::kGc, 0, 30, 1);
    const int layernorm = step.Add(Type::kLayernormGradsAllReduce, 0, 31, 1);
    const int embedding = step.Add(Type::kEmbeddingGradsAllReduce, 0, 32, 1);
    const int clip = step.Add(Type::kClipMainGrad, 0, 34, 1);
    const int optimizer = step.Add(Type::kOptimizer, 0, 35, 1);
    std::vector<int> after = {computes.back(), collect, layernorm, embedding};
    if (overlaps) {
      after.push_back(step.Add(Type::kSeparateGradsAllReduce, 0, 33, 1));
      step.After(scatter0, computes[5]);
      step.After(scatter1, computes[7]);
      step.After(layernorm, scatter2);
    } else {
      after.insert(after.end(), {scatter0, scatter1, scatter2});
    }
    after.insert(after.end(), {clip, optimizer});
    step.Chain(after);
    step.Check();
  }
}

}  // namespace
}  // namespace ott::saved
