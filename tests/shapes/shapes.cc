// The shapes of real trainings, one after the other.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/tests/shapes/shape.h"

namespace ott::shapes {
namespace {

constexpr double kMs = 1e-3;

// Forward, backward, a reduction and a step, as the example has them; what is planted is in forward.
void Blocking(const Place& at, RankProgram& program, double excess) {
  program.Work("forward", 4 * kMs * at.phase, at.is_planted ? excess * at.phase : 0);
  program.Work("backward", 6 * kMs * at.phase);
  program.Collective("allreduce", 0.5 * kMs);
  program.Work("step", 1 * kMs);
}

Place Steady(Place at) {
  at.phase = 1;
  return at;
}

Shape OneReduction(const std::string& name, double excess) {
  Shape shape;
  shape.name = name;
  shape.iterate = [excess](const Place& at, RankProgram& program) { Blocking(Steady(at), program, excess); };
  shape.collectives = {"allreduce"};
  return shape;
}

Shape Accumulation() {
  Shape shape = OneReduction("allreduce each 4th iteration", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs, at.is_planted ? 2 * kMs : 0);
    program.Work("backward", 8 * kMs);
    if (at.iteration % 4 == 3) {
      program.Collective("allreduce", 0.5 * kMs);
      program.Work("step", 1 * kMs);
    }
  };
  return shape;
}

// Buckets are reduced beside the backward pass.
Shape Overlap(bool measured) {
  Shape shape;
  shape.name = measured ? "buckets that overlap each other" : "allreduce beside backward";
  shape.noise = measured ? 0.03 : 0.1;
  shape.iterate = [measured](const Place& at, RankProgram& program) {
    program.Work("forward", 8 * kMs);
    program.Work("backward", 6 * kMs, at.is_planted ? 10 * kMs : 0);
    program.Begin("bucket0", 2 * kMs, measured);
    if (!measured) program.Work("backward", 6 * kMs);
    program.Begin("bucket1", 2 * kMs, measured);
    program.Wait("bucket0", measured);
    program.Wait("bucket1", measured);
    program.Work("step", 1 * kMs);
  };
  shape.collectives = {"bucket0", "bucket1"};
  return shape;
}

Shape TwoGroups(bool declared) {
  Shape shape = OneReduction(declared ? "two groups, declared" : "two groups, not declared", 0);
  shape.sizes = {4, 8};
  shape.num_parts = 2;
  shape.iterate = [](const Place& at, RankProgram& program) {
    program.Work("forward", 6 * kMs, at.is_planted ? 2 * kMs : 0);
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs, Among::kPart);
    program.Work("step", 1 * kMs);
  };
  if (declared) shape.groups = {{"allreduce", Among::kPart}};
  return shape;
}

// Two stages, whose ranks of one place send to each other; each stage reduces among its ranks.
Shape Pipeline(bool declared) {
  Shape shape;
  shape.name = declared ? "pipeline of 2 stages" : "pipeline, groups not declared";
  shape.sizes = {4, 8};
  shape.num_parts = 2;
  shape.is_pipeline = true;
  shape.iterate = [](const Place& at, RankProgram& program) {
    const int half = at.num_ranks / 2;
    const bool is_first = at.rank < half;
    const int peer = is_first ? at.rank + half : at.rank - half;
    for (int micro = 0; micro < 2; ++micro) {
      if (!is_first) program.Receive("activations", peer, 0.2 * kMs);
      program.Work("forward", 3 * kMs, at.is_planted ? 1.5 * kMs : 0);
      if (is_first) program.Send("activations", peer);
      if (is_first) continue;
      program.Work("backward", 5 * kMs);
      program.Send("gradients", peer);
    }
    for (int micro = 0; micro < 2 && is_first; ++micro) {
      program.Receive("gradients", peer, 0.2 * kMs);
      program.Work("backward", 5 * kMs);
    }
    program.Collective("allreduce", 0.5 * kMs, Among::kPart);
    program.Work("step", 1 * kMs);
  };
  shape.collectives = {"activations", "gradients", "allreduce"};
  if (declared) {
    shape.groups = {
        {"allreduce", Among::kPart}, {"activations", Among::kPlace}, {"gradients", Among::kPlace}};
  }
  return shape;
}

Shape Throttled() {
  Shape shape = OneReduction("a device throttled evenly", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    const double slower = at.is_planted ? 0.24 : 0;
    const auto work = [&](const char* name, double seconds) {
      program.Work(name, seconds, slower * seconds);
    };
    work("data", 1.2 * kMs);
    work("forward", 5 * kMs);
    work("backward", 5 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
    work("step", 1.2 * kMs);
  };
  return shape;
}

Shape SlowLink() {
  Shape shape = OneReduction("a slow link", 0);
  shape.is_of_replay_alone = true;
  shape.iterate = [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs);
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs, Among::kAll, at.is_planted ? 2 * kMs : 0);
    program.Work("step", 1 * kMs);
  };
  return shape;
}

Shape Alone(const std::string& name, int every, double seconds) {
  Shape shape = OneReduction(name, 0);
  shape.planted_rank = 0;
  shape.iterate = [every, seconds](const Place& at, RankProgram& program) {
    Blocking(Steady(at), program, 0);
    if (at.is_planted && at.iteration % every == every - 1) program.Work("checkpoint", 0, seconds);
  };
  return shape;
}

Shape Rare() {
  Shape shape = OneReduction("200 ms in each 50th iteration", 0);
  shape.num_iterations = 400;
  shape.iterate = [](const Place& at, RankProgram& program) {
    Blocking(Steady(at), program, at.iteration % 50 == 25 ? 200 * kMs : 0);
  };
  return shape;
}

Shape Evaluation() {
  Shape shape = OneReduction("late in an evaluation each 50th iteration", 0);
  shape.num_iterations = 400;
  shape.collectives = {"allreduce", "metrics"};
  shape.iterate = [](const Place& at, RankProgram& program) {
    Blocking(Steady(at), program, 0);
    if (at.iteration % 50 != 49) return;
    program.Work("evaluation", 100 * kMs, at.is_planted ? 90 * kMs : 0);
    program.Collective("metrics", 0.5 * kMs);
  };
  return shape;
}

Shape Phases() {
  Shape shape = OneReduction("phases of 1, 2 and 0.5", 0);
  shape.iterate = [](const Place& at, RankProgram& program) { Blocking(at, program, 2 * kMs); };
  return shape;
}

// A run of 20 s on CPUs whose speed changes for all ranks alike.
Shape SmallScope() {
  Shape shape = OneReduction("28 % more in a scope of 2 %", 0);
  shape.noise = 0.02;
  shape.cpu_share = 1;
  shape.iterate = [](const Place& at, RankProgram& program) {
    const double speed = 0.8 + 0.4 * at.shared_chance;
    program.Work("forward", 40 * kMs * speed);
    program.Work("norm", 2 * kMs * speed, at.is_planted ? 0.56 * kMs * speed : 0);
    program.Work("backward", 60 * kMs * speed);
    program.Collective("allreduce", 0.5 * kMs);
  };
  return shape;
}

Shape Late() {
  Shape shape = OneReduction("25 % more in the last two thirds", 2.75 * kMs);
  shape.late = 1.0 / 3;
  return shape;
}

// From here on: shapes that the rules were not made by. Nobody is to be named in the clean ones.

Shape Combined() {
  Shape shape = OneReduction("accumulation, overlap and evaluation", 0);
  shape.num_iterations = 400;
  shape.collectives = {"bucket", "metrics"};
  shape.iterate = [](const Place& at, RankProgram& program) {
    const double excess = at.is_planted ? 1.5 * kMs : 0;
    program.Work("forward", 4 * kMs);
    program.Work("backward", 4 * kMs, excess / 2);
    const bool reduces = at.iteration % 4 == 3;
    if (reduces) program.Begin("bucket", 2 * kMs, false);
    program.Work("backward", 4 * kMs, excess / 2);
    if (reduces) {
      program.Wait("bucket", false);
      program.Work("step", 1 * kMs);
    }
    if (at.iteration % 50 != 49) return;
    program.Work("evaluation", 60 * kMs);
    program.Collective("metrics", 0.5 * kMs);
  };
  return shape;
}

// Sequences of other lengths in each iteration, of which all ranks have the same.
Shape UnevenSteps() {
  Shape shape = OneReduction("sequences of other lengths", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    const double length = 0.3 + 2 * at.shared_chance * at.shared_chance;
    program.Work("forward", 4 * kMs * length, at.is_planted ? 1.5 * kMs * length : 0);
    program.Work("backward", 6 * kMs * length);
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 1 * kMs);
  };
  return shape;
}

// The first iterations take longer, on each rank by another factor.
Shape WarmingUp() {
  Shape shape = OneReduction("first iterations slow", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    if (at.iteration < 10) program.Work("compile", 20 * kMs * (1 + at.chance) / (1 + at.iteration));
    Blocking(Steady(at), program, 2 * kMs);
  };
  return shape;
}

// Any rank, in one of fifty iterations, takes so long for what it does at the beginning.
Shape WithStalls(const std::string& name, const std::string& work, double seconds) {
  Shape shape = OneReduction(name, 0);
  shape.is_uneven = true;
  shape.iterate = [work, seconds](const Place& at, RankProgram& program) {
    program.Work(work, 0.1 * kMs + (at.chance < 0.02 ? seconds : 0));
    Blocking(Steady(at), program, 2 * kMs);
  };
  return shape;
}

// Stages with one forward and one backward pass in turn, and four pieces of a batch. by_link: transfers
// from one stage to the next have a name of their own. Else one name has both what a stage receives and what
// it sends.
Shape OneForwardOneBackward(int num_stages, bool by_link) {
  Shape shape;
  shape.name =
      by_link ? absl::StrCat("pipeline of ", num_stages, " stages, 1F1B") : "1F1B, one name for all stages";
  shape.sizes = {2 * num_stages};
  shape.num_parts = num_stages;
  shape.is_pipeline = true;
  const auto link = [by_link](const char* name, int from) {
    return by_link ? absl::StrCat(name, " from ", from) : std::string(name);
  };
  shape.iterate = [=](const Place& at, RankProgram& program) {
    constexpr int kPieces = 4;
    const int replicas = at.num_ranks / num_stages;
    const int mine = at.rank / replicas;
    const auto forward = [&] {
      if (mine > 0) program.Receive(link("activations", mine - 1), at.rank - replicas, 0.1 * kMs);
      program.Work("forward", 3 * kMs, at.is_planted ? 1.5 * kMs : 0);
      if (mine + 1 < num_stages) program.Send(link("activations", mine), at.rank + replicas);
    };
    const auto backward = [&] {
      if (mine + 1 < num_stages) program.Receive(link("gradients", mine + 1), at.rank + replicas, 0.1 * kMs);
      program.Work("backward", 6 * kMs);
      if (mine > 0) program.Send(link("gradients", mine), at.rank - replicas);
    };
    const int ahead = std::min(num_stages - 1 - mine, kPieces);
    for (int i = 0; i < ahead; ++i) forward();
    for (int i = ahead; i < kPieces; ++i) {
      forward();
      backward();
    }
    for (int i = 0; i < ahead; ++i) backward();
    program.Collective("allreduce", 0.5 * kMs, Among::kPart);
    program.Work("step", 1 * kMs);
  };
  shape.collectives = {"allreduce"};
  shape.groups = {{"allreduce", Among::kPart}};
  for (int from = 0; from < (by_link ? num_stages : 1); ++from) {
    for (const char* const name : {"activations", "gradients"}) {
      shape.collectives.push_back(link(name, from));
      shape.groups[link(name, from)] = Among::kPlace;
    }
  }
  return shape;
}

// In each iteration another rank's experts get half as many tokens again.
Shape Experts() {
  Shape shape = OneReduction("experts, imbalance that moves", 0);
  shape.is_uneven = true;
  shape.collectives = {"dispatch", "combine", "allreduce"};
  shape.iterate = [](const Place& at, RankProgram& program) {
    const bool has_more = static_cast<int>(at.shared_chance * at.num_ranks) == at.rank;
    const double tokens = has_more ? 1.5 : 1;
    program.Work("attention", 3 * kMs);
    program.Collective("dispatch", 0.3 * kMs);
    program.Work("experts", 4 * kMs * tokens, at.is_planted ? 2 * kMs * tokens : 0);
    program.Collective("combine", 0.3 * kMs);
    program.Work("backward", 8 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
  };
  return shape;
}

Shape SlowBackward() {
  Shape shape = OneReduction("one slow in backward alone", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs);
    program.Collective("sum_loss", 0.1 * kMs);
    program.Work("backward", 8 * kMs, at.is_planted ? 1.6 * kMs : 0);
    program.Collective("allreduce", 0.5 * kMs);
  };
  shape.collectives = {"sum_loss", "allreduce"};
  return shape;
}

Shape TwoSlow() {
  Shape shape = OneReduction("two slow ranks", 3 * kMs);
  shape.sizes = {4, 8};
  shape.num_planted = 2;
  return shape;
}

// From here on: the second lot of those.

// Evaluations are of other batches than training, and not always of as many.
Shape EvaluationsOfOtherLengths() {
  Shape shape = OneReduction("evaluations of other lengths", 0);
  shape.num_iterations = 400;
  shape.collectives = {"allreduce", "metrics"};
  shape.iterate = [](const Place& at, RankProgram& program) {
    Blocking(Steady(at), program, 0);
    if (at.iteration % 40 != 39) return;
    const int num_batches = 3 + static_cast<int>(at.shared_chance * 20);
    for (int i = 0; i < num_batches; ++i) program.Work("evaluate", 5 * kMs, at.is_planted ? 4 * kMs : 0);
    program.Collective("metrics", 0.2 * kMs);
  };
  return shape;
}

// One to six micro steps in an iteration, as many on all ranks, and one reduction.
Shape UnevenAccumulation() {
  Shape shape = OneReduction("one to six micro steps an iteration", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    const int num_micro_steps = 1 + static_cast<int>(at.shared_chance * 6);
    for (int i = 0; i < num_micro_steps; ++i) {
      program.Work("forward", 1.5 * kMs, at.is_planted ? 0.6 * kMs : 0);
      program.Work("backward", 3 * kMs);
    }
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 0.5 * kMs);
  };
  return shape;
}

// Parameters are gathered for each layer, forward and backward, and gradients scattered.
Shape ShardedParameters() {
  Shape shape = OneReduction("parameters gathered by layer", 0);
  shape.collectives = {"all_gather", "reduce_scatter"};
  shape.iterate = [](const Place& at, RankProgram& program) {
    constexpr int kLayers = 4;
    for (int layer = 0; layer < kLayers; ++layer) {
      program.Collective("all_gather", 0.2 * kMs);
      program.Work("forward", 1 * kMs, at.is_planted && layer == 1 ? 1.5 * kMs : 0);
    }
    for (int layer = kLayers; layer-- > 0;) {
      program.Collective("all_gather", 0.2 * kMs);
      program.Work("backward", 2 * kMs);
      program.Collective("reduce_scatter", 0.2 * kMs);
    }
    program.Work("step", 0.5 * kMs);
  };
  return shape;
}

// Pairs reduce activations in each layer, and the ranks of one place in the pairs gradients.
Shape TensorAndDataParallel(bool declared) {
  Shape shape;
  shape.name = declared ? "tensor and data parallel" : "tensor and data parallel, not declared";
  shape.sizes = {4, 8};
  shape.ranks_of_part = 2;
  shape.collectives = {"tp_allreduce", "dp_allreduce"};
  if (declared) shape.groups = {{"tp_allreduce", Among::kPart}, {"dp_allreduce", Among::kPlace}};
  shape.iterate = [](const Place& at, RankProgram& program) {
    for (int layer = 0; layer < 4; ++layer) {
      program.Work("forward", 1 * kMs, at.is_planted ? 0.5 * kMs : 0);
      program.Collective("tp_allreduce", 0.2 * kMs, Among::kPart);
    }
    for (int layer = 0; layer < 4; ++layer) {
      program.Work("backward", 1.5 * kMs);
      program.Collective("tp_allreduce", 0.2 * kMs, Among::kPart);
    }
    program.Collective("dp_allreduce", 0.5 * kMs, Among::kPlace);
    program.Work("step", 0.5 * kMs);
  };
  return shape;
}

// A checkpoint is written by a thread of one rank, whose work takes longer for three iterations.
Shape CheckpointBeside() {
  Shape shape = OneReduction("a checkpoint written beside the work", 0);
  shape.planted_rank = 0;
  shape.num_iterations = 400;
  shape.iterate = [](const Place& at, RankProgram& program) {
    const bool writes = at.is_planted && at.iteration % 20 >= 17;
    program.Work("forward", 4 * kMs, writes ? 3 * kMs : 0);
    program.Work("backward", 6 * kMs, writes ? 5 * kMs : 0);
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 1 * kMs);
  };
  return shape;
}

Shape SlowLoader() {
  Shape shape = OneReduction("a loader that is slow each 8th iteration", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    program.Work("data", 0.3 * kMs, at.is_planted && at.iteration % 8 == 5 ? 9 * kMs : 0);
    Blocking(Steady(at), program, 0);
  };
  return shape;
}

// One of ten pieces of work takes a time with a heavy tail.
Shape HeavyTails() {
  Shape shape = OneReduction("heavy tails", 0);
  shape.is_uneven = true;
  shape.iterate = [](const Place& at, RankProgram& program) {
    const double tail = std::min(0.5 * std::pow(1 - at.chance, -0.7), 40.0);
    program.Work("data", tail * kMs);
    Blocking(Steady(at), program, 4 * kMs);
  };
  return shape;
}

// All ranks get slower, as devices that become hot do.
Shape Drift() {
  Shape shape = OneReduction("all ranks get slower", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    const double slower = 1 + 0.3 * at.iteration / at.num_iterations;
    program.Work("forward", 4 * kMs * slower, at.is_planted ? 2 * kMs * slower : 0);
    program.Work("backward", 6 * kMs * slower);
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 1 * kMs);
  };
  return shape;
}

// Another job has CPUs of this one for twenty iterations, on any rank, in one of five such times.
Shape AnotherJob() {
  Shape shape = OneReduction("another job on the machine", 0);
  shape.is_uneven = true;
  shape.num_iterations = 400;
  shape.iterate = [](const Place& at, RankProgram& program) {
    const uint64_t which = static_cast<uint64_t>(at.iteration / 20 * 64 + at.rank + 1);
    std::mt19937_64 random(which * 2654435761);
    const bool is_there = random() % 5 == 0;
    program.Work("forward", 4 * kMs * (is_there ? 1.8 : 1), at.is_planted ? 4 * kMs : 0);
    program.Work("backward", 6 * kMs * (is_there ? 1.8 : 1));
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 1 * kMs);
  };
  return shape;
}

Shape BroadcastFromRankZero() {
  Shape shape = OneReduction("a broadcast, then a reduction", 0);
  shape.collectives = {"broadcast", "allreduce"};
  shape.iterate = [](const Place& at, RankProgram& program) {
    program.Work("data", 2 * kMs, at.is_planted ? 2 * kMs : 0);
    program.Broadcast("broadcast", 0, 0.1 * kMs);
    program.Work("forward", 3 * kMs);
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
  };
  return shape;
}

// Normalisation over all ranks in each layer: many short collectives.
Shape ManyCollectives() {
  Shape shape = OneReduction("twenty collectives an iteration", 0);
  shape.collectives = {"syncbn", "allreduce"};
  shape.iterate = [](const Place& at, RankProgram& program) {
    for (int layer = 0; layer < 20; ++layer) {
      program.Work("layer", 0.5 * kMs, at.is_planted && layer == 7 ? 1.5 * kMs : 0);
      program.Collective("syncbn", 0.05 * kMs);
    }
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
  };
  return shape;
}

// Ranks train on their own for 16 iterations.
Shape LocalSteps() {
  Shape shape = OneReduction("a reduction each 16th iteration", 0);
  shape.iterate = [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs, at.is_planted ? 1.5 * kMs : 0);
    program.Work("backward", 6 * kMs);
    program.Work("step", 1 * kMs);
    if (at.iteration % 16 == 15) program.Collective("average", 3 * kMs);
  };
  shape.collectives = {"average"};
  return shape;
}

// Two ranks, each slow in another part of what comes before the reduction: mending one saves little.
Shape TwoSlowInOtherParts() {
  Shape shape = OneReduction("two slow ranks, each in another part", 0);
  shape.sizes = {4, 8};
  shape.num_planted = 2;
  shape.iterate = [](const Place& at, RankProgram& program) {
    const bool is_even = at.rank % 2 == 0;
    program.Work("forward", 4 * kMs, at.is_planted && is_even ? 2.5 * kMs : 0);
    program.Work("backward", 6 * kMs, at.is_planted && !is_even ? 2.5 * kMs : 0);
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 1 * kMs);
  };
  return shape;
}

Shape LateAndEverywhere() {
  Shape shape = OneReduction("slow in everything in the last half", 0);
  shape.late = 0.5;
  shape.iterate = [](const Place& at, RankProgram& program) {
    const auto work = [&](const char* name, double seconds) {
      program.Work(name, seconds, at.is_planted ? 0.3 * seconds : 0);
    };
    work("data", 1 * kMs);
    work("forward", 4 * kMs);
    work("backward", 5 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
    work("step", 1 * kMs);
  };
  return shape;
}

// The next gather of parameters runs beside the work.
Shape Prefetch() {
  Shape shape = OneReduction("gathers beside the work", 0);
  shape.collectives = {"gather0", "gather1", "reduce_scatter"};
  shape.iterate = [](const Place& at, RankProgram& program) {
    program.Begin("gather0", 1 * kMs, false);
    program.Work("data", 1.5 * kMs);
    program.Wait("gather0", false);
    program.Begin("gather1", 1 * kMs, false);
    program.Work("forward0", 3 * kMs, at.is_planted ? 2 * kMs : 0);
    program.Wait("gather1", false);
    program.Work("forward1", 3 * kMs);
    program.Work("backward", 6 * kMs);
    program.Collective("reduce_scatter", 0.5 * kMs);
  };
  return shape;
}

Shape NoCollective() {
  Shape shape = OneReduction("no collective is known", 0);
  shape.collectives = {};
  shape.cannot_be_told = true;
  return shape;
}

Shape OneOfAll() {
  Shape shape = OneReduction("one rank left statistics", 0);
  shape.num_present = 1;
  shape.cannot_be_told = true;
  return shape;
}

std::vector<Shape> MakeShapes() {
  std::vector<Shape> shapes = {OneReduction("one reduction", 2 * kMs),
                               Accumulation(),
                               Overlap(false),
                               Overlap(true),
                               TwoGroups(true),
                               TwoGroups(false),
                               Pipeline(true),
                               Pipeline(false),
                               Throttled(),
                               SlowLink(),
                               Alone("a checkpoint of one rank", 20, 36 * kMs),
                               Alone("logging of one rank", 1, 2 * kMs)};
  Shape noisy = OneReduction("8 % more with 10 % noise", 0.9 * kMs);
  noisy.noise = 0.1;
  shapes.push_back(noisy);
  Shape checkpoint = Alone("a checkpoint each 50th iteration", 50, 100 * kMs);
  checkpoint.num_iterations = 400;
  for (const Shape& shape : {Rare(),
                             Evaluation(),
                             Phases(),
                             SmallScope(),
                             Late(),
                             NoCollective(),
                             OneOfAll(),
                             Combined(),
                             UnevenSteps(),
                             WarmingUp(),
                             WithStalls("a data loader that stalls, on any rank", "data", 20 * kMs),
                             WithStalls("pauses of a garbage collector, on any rank", "python", 8 * kMs),
                             checkpoint,
                             OneForwardOneBackward(4, true),
                             OneForwardOneBackward(4, false),
                             Experts(),
                             SlowBackward(),
                             TwoSlow(),
                             EvaluationsOfOtherLengths(),
                             UnevenAccumulation(),
                             ShardedParameters(),
                             TensorAndDataParallel(true),
                             TensorAndDataParallel(false),
                             OneForwardOneBackward(3, true),
                             CheckpointBeside(),
                             SlowLoader(),
                             HeavyTails(),
                             Drift(),
                             AnotherJob(),
                             BroadcastFromRankZero(),
                             ManyCollectives(),
                             LocalSteps(),
                             TwoSlowInOtherParts(),
                             LateAndEverywhere(),
                             Prefetch()}) {
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace

const std::vector<Shape>& Shapes() {
  static const auto* const shapes = new std::vector<Shape>(MakeShapes());
  return *shapes;
}

}  // namespace ott::shapes
