// The shapes of real trainings, one after the other.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/tests/shapes/simulated_training.h"

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
  const auto label = [](int rank, int num_ranks) {
    return rank < num_ranks / 2 ? "ranks low" : "ranks high";
  };
  shape.min_ranks = 4;
  shape.iterate = [label](const Place& at, RankProgram& program) {
    program.Work("forward", 6 * kMs, at.is_planted ? 2 * kMs : 0);
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs, label(at.rank, at.num_ranks));
    program.Work("step", 1 * kMs);
  };
  if (declared) {
    shape.group = [label](const std::string&, int rank, int num_ranks) { return label(rank, num_ranks); };
  }
  return shape;
}

// Two stages, whose ranks of one place send to each other; each stage reduces among its ranks.
Shape Pipeline(bool declared) {
  Shape shape;
  shape.name = declared ? "pipeline of 2 stages" : "pipeline, groups not declared";
  shape.min_ranks = 4;
  const auto stage = [](int rank, int num_ranks) { return rank < num_ranks / 2 ? "stage 0" : "stage 1"; };
  shape.iterate = [stage](const Place& at, RankProgram& program) {
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
    program.Collective("allreduce", 0.5 * kMs, stage(at.rank, at.num_ranks));
    program.Work("step", 1 * kMs);
  };
  shape.collectives = {"activations", "gradients", "allreduce"};
  shape.like_work = stage;
  if (declared) {
    shape.group = [stage](const std::string& name, int rank, int num_ranks) -> std::string {
      if (name == "allreduce") return stage(rank, num_ranks);
      return absl::StrCat("pair ", rank % (num_ranks / 2));
    };
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
    program.Collective("allreduce", 0.5 * kMs, "", at.is_planted ? 2 * kMs : 0);
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

// Four stages with one forward and one backward pass in turn, and four pieces of a batch. by_link: transfers
// from one stage to the next have a name of their own. Else one name has both what a stage receives and what
// it sends.
Shape OneForwardOneBackward(bool by_link) {
  constexpr int kStages = 4;
  Shape shape;
  shape.name = by_link ? "pipeline of 4 stages, 1F1B" : "1F1B, one name for all stages";
  shape.min_ranks = 2 * kStages;
  const auto stage = [](int rank, int num_ranks) { return rank / (num_ranks / kStages); };
  const auto name_of_stage = [stage](int rank, int num_ranks) {
    return absl::StrCat("stage ", stage(rank, num_ranks));
  };
  const auto link = [by_link](const char* name, int from) {
    return by_link ? absl::StrCat(name, " from ", from) : std::string(name);
  };
  shape.iterate = [=](const Place& at, RankProgram& program) {
    constexpr int kPieces = 4;
    const int replicas = at.num_ranks / kStages;
    const int mine = stage(at.rank, at.num_ranks);
    const auto forward = [&] {
      if (mine > 0) program.Receive(link("activations", mine - 1), at.rank - replicas, 0.1 * kMs);
      program.Work("forward", 3 * kMs, at.is_planted ? 1.5 * kMs : 0);
      if (mine + 1 < kStages) program.Send(link("activations", mine), at.rank + replicas);
    };
    const auto backward = [&] {
      if (mine + 1 < kStages) program.Receive(link("gradients", mine + 1), at.rank + replicas, 0.1 * kMs);
      program.Work("backward", 6 * kMs);
      if (mine > 0) program.Send(link("gradients", mine), at.rank - replicas);
    };
    const int ahead = std::min(kStages - 1 - mine, kPieces);
    for (int i = 0; i < ahead; ++i) forward();
    for (int i = ahead; i < kPieces; ++i) {
      forward();
      backward();
    }
    for (int i = 0; i < ahead; ++i) backward();
    program.Collective("allreduce", 0.5 * kMs, name_of_stage(at.rank, at.num_ranks));
    program.Work("step", 1 * kMs);
  };
  shape.collectives = {"allreduce"};
  for (int from = 0; from < (by_link ? kStages : 1); ++from) {
    shape.collectives.push_back(link("activations", from));
    shape.collectives.push_back(link("gradients", from));
  }
  shape.like_work = name_of_stage;
  shape.group = [name_of_stage](const std::string& name, int rank, int num_ranks) -> std::string {
    if (name == "allreduce") return name_of_stage(rank, num_ranks);
    return absl::StrCat("pipeline ", rank % (num_ranks / kStages));
  };
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
  shape.min_ranks = 4;
  shape.num_planted = 2;
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
  for (const Shape& shape :
       {Rare(), Evaluation(), Phases(), SmallScope(), Late(), NoCollective(), OneOfAll(), Combined(),
        UnevenSteps(), WarmingUp(), WithStalls("a data loader that stalls, on any rank", "data", 20 * kMs),
        WithStalls("pauses of a garbage collector, on any rank", "python", 8 * kMs), checkpoint,
        OneForwardOneBackward(true), OneForwardOneBackward(false), Experts(), SlowBackward(), TwoSlow()}) {
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
