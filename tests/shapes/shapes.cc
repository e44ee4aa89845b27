// The shapes of real trainings. Unless it says otherwise, nobody is to be named in the clean ones, and what
// is planted in the others.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/tests/shapes/shape.h"

namespace ott::shapes {
namespace {

constexpr double kMs = 1e-3;

using Iterate = std::function<void(const Place& at, RankProgram& program)>;
// A shape stays where it is while others are added.
using ShapeList = std::deque<Shape>;

// Returns the shape, of which more can be said.
Shape& Add(ShapeList& shapes, const std::string& name, Iterate iterate) {
  Shape& shape = shapes.emplace_back();
  shape.name = name;
  shape.iterate = std::move(iterate);
  return shape;
}

// Forward, backward, a reduction and a step, as the example has them, with what is planted in the passes. The
// passes take `scale` times as long.
void Blocking(RankProgram& program, double in_forward = 0, double in_backward = 0, double scale = 1) {
  program.Work("forward", 4 * kMs * scale, in_forward);
  program.Work("backward", 6 * kMs * scale, in_backward);
  program.Collective("allreduce", 0.5 * kMs);
  program.Work("step", 1 * kMs);
}

// One reduction of all ranks in an iteration, or in some.
void AddReductions(ShapeList& shapes) {
  Add(shapes, "one reduction",
      [](const Place& at, RankProgram& program) { Blocking(program, at.Planted(2 * kMs)); });
  // A rank that waits for a device or a clock loses nothing while others have the CPU.
  Shape& asleep = Add(shapes, "others have the CPU of a rank that sleeps",
                      [](const Place& at, RankProgram& program) { Blocking(program, at.Planted(2 * kMs)); });
  asleep.taken_share = 0.55;
  asleep.planted_rank = 1;
  Add(shapes, "allreduce each 4th iteration", [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs, at.Planted(2 * kMs));
    program.Work("backward", 8 * kMs);
    if (at.iteration % 4 != 3) return;
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 1 * kMs);
  });
  // Gradients, and their norm.
  Add(shapes, "two reductions of one name", [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs, at.Planted(2 * kMs));
    program.Work("backward", 8 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("clipping", 0.5 * kMs);
    program.Collective("allreduce", 0.1 * kMs);
    program.Work("step", 1 * kMs);
  });
  Add(shapes, "a device throttled evenly", [](const Place& at, RankProgram& program) {
    const auto work = [&](const char* name, double seconds) {
      program.Work(name, seconds, at.Planted(0.24 * seconds));
    };
    work("data", 1.2 * kMs);
    work("forward", 5 * kMs);
    work("backward", 5 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
    work("step", 1.2 * kMs);
  });
  Shape& link = Add(shapes, "a slow link", [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs);
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs, Among::kAll, at.Planted(2 * kMs));
    program.Work("step", 1 * kMs);
  });
  link.is_of_replay_alone = true;
  Add(shapes, "8 % more with 10 % noise", [](const Place& at, RankProgram& program) {
    Blocking(program, at.Planted(0.9 * kMs));
  }).noise = 0.1;
  Add(shapes, "phases of 1, 2 and 0.5", [](const Place& at, RankProgram& program) {
    Blocking(program, at.Planted(2 * kMs * at.phase), 0, at.phase);
  });
  // A run of 20 s on CPUs whose speed changes for all ranks alike.
  Shape& small = Add(shapes, "28 % more in a scope of 2 %", [](const Place& at, RankProgram& program) {
    const double speed = 0.8 + 0.4 * at.shared_chance;
    program.Work("forward", 40 * kMs * speed);
    program.Work("norm", 2 * kMs * speed, at.Planted(0.56 * kMs * speed));
    program.Work("backward", 60 * kMs * speed);
    program.Collective("allreduce", 0.5 * kMs);
  });
  small.noise = 0.02;
  small.cpu_share = 1;
  Add(shapes, "25 % more in the last two thirds", [](const Place& at, RankProgram& program) {
    Blocking(program, at.Planted(2.75 * kMs));
  }).late = 1.0 / 3;
  Shape& everywhere =
      Add(shapes, "slow in everything in the last half", [](const Place& at, RankProgram& program) {
        const auto work = [&](const char* name, double seconds) {
          program.Work(name, seconds, at.Planted(0.3 * seconds));
        };
        work("data", 1 * kMs);
        work("forward", 4 * kMs);
        work("backward", 5 * kMs);
        program.Collective("allreduce", 0.5 * kMs);
        work("step", 1 * kMs);
      });
  everywhere.late = 0.5;
  // Sequences of other lengths in each iteration, of which all ranks have the same.
  Add(shapes, "sequences of other lengths", [](const Place& at, RankProgram& program) {
    const double length = 0.3 + 2 * at.shared_chance * at.shared_chance;
    Blocking(program, at.Planted(1.5 * kMs * length), 0, length);
  });
  // The first iterations take longer, on each rank by another factor.
  Add(shapes, "first iterations slow", [](const Place& at, RankProgram& program) {
    if (at.iteration < 10) program.Work("compile", 20 * kMs * (1 + at.chance) / (1 + at.iteration));
    Blocking(program, at.Planted(2 * kMs));
  });
  // As devices that become hot do.
  Add(shapes, "all ranks get slower", [](const Place& at, RankProgram& program) {
    const double slower = 1 + 0.3 * at.iteration / at.num_iterations;
    Blocking(program, at.Planted(2 * kMs * slower), 0, slower);
  });
  // One to six micro steps in an iteration, as many on all ranks, and one reduction.
  Add(shapes, "one to six micro steps an iteration", [](const Place& at, RankProgram& program) {
    const int num_micro_steps = 1 + static_cast<int>(at.shared_chance * 6);
    for (int i = 0; i < num_micro_steps; ++i) {
      program.Work("forward", 1.5 * kMs, at.Planted(0.6 * kMs));
      program.Work("backward", 3 * kMs);
    }
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 0.5 * kMs);
  });
  // The batch grows for all ranks, twice.
  Add(shapes, "a batch that grows twice", [](const Place& at, RankProgram& program) {
    const double scale = 1 + 3 * at.iteration / at.num_iterations;
    Blocking(program, at.Planted(2 * kMs * scale), 0, scale);
  });
  // Ranks train on their own for 16 iterations.
  Add(shapes, "a reduction each 16th iteration", [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs, at.Planted(1.5 * kMs));
    program.Work("backward", 6 * kMs);
    program.Work("step", 1 * kMs);
    if (at.iteration % 16 == 15) program.Collective("average", 3 * kMs);
  });
  Shape& no_collective =
      Add(shapes, "no collective is known", [](const Place&, RankProgram& program) { Blocking(program); });
  no_collective.declares_collectives = false;
  no_collective.cannot_be_told = true;
  Shape& one_of_all =
      Add(shapes, "one rank left statistics", [](const Place&, RankProgram& program) { Blocking(program); });
  one_of_all.num_present = 1;
  one_of_all.cannot_be_told = true;
}

// Several slow ranks.
void AddSeveralSlow(ShapeList& shapes) {
  Shape& two = Add(shapes, "two slow ranks",
                   [](const Place& at, RankProgram& program) { Blocking(program, at.Planted(3 * kMs)); });
  two.sizes = {4, 8};
  two.num_planted = 2;
  // Each in another part of what comes before the reduction: mending one saves little.
  Shape& in_parts =
      Add(shapes, "two slow ranks, each in another part", [](const Place& at, RankProgram& program) {
        const double excess = at.Planted(2.5 * kMs);
        const bool is_even = at.rank % 2 == 0;
        Blocking(program, is_even ? excess : 0, is_even ? 0 : excess);
      });
  in_parts.sizes = {4, 8};
  in_parts.num_planted = 2;
  // One in the first half, another one in the second.
  Shape& moves = Add(shapes, "a straggler that moves once", [](const Place& at, RankProgram& program) {
    const bool is_first_half = at.iteration < at.num_iterations / 2;
    Blocking(program, is_first_half == (at.rank % 2 == 0) ? at.Planted(3 * kMs) : 0);
  });
  moves.num_planted = 2;
  moves.moves = 0.5;
}

// Collectives that run beside the work.
void AddOverlaps(ShapeList& shapes) {
  // Buckets are reduced beside the backward pass.
  for (const bool measured : {false, true}) {
    Shape& buckets = Add(shapes, measured ? "buckets that overlap each other" : "allreduce beside backward",
                         [measured](const Place& at, RankProgram& program) {
                           program.Work("forward", 8 * kMs);
                           program.Work("backward", 6 * kMs, at.Planted(10 * kMs));
                           program.Begin("bucket0", 2 * kMs, measured);
                           if (!measured) program.Work("backward", 6 * kMs);
                           program.Begin("bucket1", 2 * kMs, measured);
                           program.Wait("bucket0", measured);
                           program.Wait("bucket1", measured);
                           program.Work("step", 1 * kMs);
                         });
    buckets.noise = measured ? 0.03 : 0.1;
  }
  Add(shapes, "a measured reduction around work", [](const Place& at, RankProgram& program) {
    program.Work("forward", 6 * kMs, at.Planted(5 * kMs));
    program.Begin("bucket", 0.5 * kMs, true);
    program.Work("backward", 4 * kMs);
    program.Wait("bucket", true);
    program.Work("step", 1 * kMs);
    program.Collective("loss", 0.5 * kMs);
  });
  Shape& combined =
      Add(shapes, "accumulation, overlap and evaluation", [](const Place& at, RankProgram& program) {
        const double excess = at.Planted(1.5 * kMs);
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
      });
  combined.num_iterations = 400;
  // The next gather of parameters runs beside the work.
  Add(shapes, "gathers beside the work", [](const Place& at, RankProgram& program) {
    program.Begin("gather0", 1 * kMs, false);
    program.Work("data", 1.5 * kMs);
    program.Wait("gather0", false);
    program.Begin("gather1", 1 * kMs, false);
    program.Work("forward0", 3 * kMs, at.Planted(2 * kMs));
    program.Wait("gather1", false);
    program.Work("forward1", 3 * kMs);
    program.Work("backward", 6 * kMs);
    program.Collective("reduce_scatter", 0.5 * kMs);
  });
  // Of each layer, forward and backward; gradients are scattered beside what follows.
  Add(shapes, "gathers and scatters of four layers beside the work",
      [](const Place& at, RankProgram& program) {
        constexpr int kLayers = 4;
        const auto gather = [&](int layer) {
          program.Begin(absl::StrCat("gather", layer), 0.6 * kMs, false);
        };
        gather(0);
        for (int layer = 0; layer < kLayers; ++layer) {
          program.Wait(absl::StrCat("gather", layer), false);
          if (layer + 1 < kLayers) gather(layer + 1);
          program.Work("forward", 1.5 * kMs, layer == 2 ? at.Planted(2 * kMs) : 0);
        }
        for (int layer = kLayers; layer-- > 0;) {
          program.Work("backward", 2 * kMs);
          program.Begin(absl::StrCat("scatter", layer), 0.6 * kMs, false);
        }
        for (int layer = kLayers; layer-- > 0;) program.Wait(absl::StrCat("scatter", layer), false);
        program.Work("step", 0.5 * kMs);
      });
}

// Several collectives in an iteration, of all ranks.
void AddSeveralCollectives(ShapeList& shapes) {
  Add(shapes, "one slow in backward alone", [](const Place& at, RankProgram& program) {
    program.Work("forward", 4 * kMs);
    program.Collective("sum_loss", 0.1 * kMs);
    program.Work("backward", 8 * kMs, at.Planted(1.6 * kMs));
    program.Collective("allreduce", 0.5 * kMs);
  });
  // Parameters are gathered for each layer, forward and backward, and gradients scattered.
  Add(shapes, "parameters gathered by layer", [](const Place& at, RankProgram& program) {
    constexpr int kLayers = 4;
    for (int layer = 0; layer < kLayers; ++layer) {
      program.Collective("all_gather", 0.2 * kMs);
      program.Work("forward", 1 * kMs, layer == 1 ? at.Planted(1.5 * kMs) : 0);
    }
    for (int layer = kLayers; layer-- > 0;) {
      program.Collective("all_gather", 0.2 * kMs);
      program.Work("backward", 2 * kMs);
      program.Collective("reduce_scatter", 0.2 * kMs);
    }
    program.Work("step", 0.5 * kMs);
  });
  Add(shapes, "a broadcast, then a reduction", [](const Place& at, RankProgram& program) {
    program.Work("data", 2 * kMs, at.Planted(2 * kMs));
    program.Broadcast("broadcast", 0, 0.1 * kMs);
    program.Work("forward", 3 * kMs);
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
  });
  // Normalisation over all ranks in each layer: many short collectives.
  Add(shapes, "twenty collectives an iteration", [](const Place& at, RankProgram& program) {
    for (int layer = 0; layer < 20; ++layer) {
      program.Work("layer", 0.5 * kMs, layer == 7 ? at.Planted(1.5 * kMs) : 0);
      program.Collective("syncbn", 0.05 * kMs);
    }
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
  });
  // As in adversarial training.
  Add(shapes, "two models that take turns", [](const Place& at, RankProgram& program) {
    const bool is_generator = at.iteration % 2 == 0;
    program.Work(is_generator ? "generator" : "discriminator", (is_generator ? 9 : 5) * kMs,
                 is_generator ? 0 : at.Planted(3 * kMs));
    program.Collective(is_generator ? "reduce_generator" : "reduce_discriminator", 0.5 * kMs);
    program.Work("step", 0.5 * kMs);
  });
  // Keys and values go round a ring of all ranks: each waits for its neighbour alone.
  Add(shapes, "attention over a ring", [](const Place& at, RankProgram& program) {
    const int next = (at.rank + 1) % at.num_ranks;
    const int previous = (at.rank + at.num_ranks - 1) % at.num_ranks;
    for (int hop = 1; hop < at.num_ranks; ++hop) {
      program.Send("ring", next);
      program.Work("attention", 4 * kMs / at.num_ranks);
      program.Receive("ring", previous, 0.05 * kMs);
    }
    Blocking(program, at.Planted(2 * kMs));
  });
}

// Groups that do not wait for each other.
void AddGroups(ShapeList& shapes) {
  for (const bool declared : {true, false}) {
    Shape& groups = Add(shapes, declared ? "two groups, declared" : "two groups, not declared",
                        [](const Place& at, RankProgram& program) {
                          program.Work("forward", 6 * kMs, at.Planted(2 * kMs));
                          program.Work("backward", 6 * kMs);
                          program.Collective("allreduce", 0.5 * kMs, Among::kPart);
                          program.Work("step", 1 * kMs);
                        });
    groups.num_parts = 2;
    groups.declares_groups = declared;
  }
  // Other jobs slow down one group, then the other one.
  Shape& turns = Add(shapes, "two groups that are slow in turn", [](const Place& at, RankProgram& program) {
    const bool is_first = at.rank < at.num_ranks / 2;
    const double scale = is_first == (at.iteration / 20 % 2 == 0) ? 1.5 : 1;
    program.Work("forward", 6 * kMs * scale, at.Planted(3 * kMs));
    program.Work("backward", 6 * kMs * scale);
    program.Collective("allreduce", 0.5 * kMs, Among::kPart);
    program.Work("step", 1 * kMs);
  });
  turns.sizes = {4, 8};
  turns.num_parts = 2;
  turns.is_uneven = true;
  // Pairs reduce activations in each layer, and the ranks of one place in the pairs gradients.
  for (const bool declared : {true, false}) {
    Shape& parallel =
        Add(shapes, declared ? "tensor and data parallel" : "tensor and data parallel, not declared",
            [](const Place& at, RankProgram& program) {
              for (int layer = 0; layer < 4; ++layer) {
                program.Work("forward", 1 * kMs, at.Planted(0.5 * kMs));
                program.Collective("tp_allreduce", 0.2 * kMs, Among::kPart);
              }
              for (int layer = 0; layer < 4; ++layer) {
                program.Work("backward", 1.5 * kMs);
                program.Collective("tp_allreduce", 0.2 * kMs, Among::kPart);
              }
              program.Collective("dp_allreduce", 0.5 * kMs, Among::kPlace);
              program.Work("step", 0.5 * kMs);
            });
    parallel.ranks_of_part = 2;
    parallel.declares_groups = declared;
  }
}

// Stages with one forward and one backward pass in turn, and four pieces of a batch. by_link: transfers
// from one stage to the next have a name of their own. Else one name has both what a stage receives and what
// it sends.
void AddOneForwardOneBackward(ShapeList& shapes, int num_stages, bool by_link) {
  const auto link = [by_link](const char* name, int from) {
    return by_link ? absl::StrCat(name, " from ", from) : std::string(name);
  };
  const std::string name =
      by_link ? absl::StrCat("pipeline of ", num_stages, " stages, 1F1B") : "1F1B, one name for all stages";
  Shape& shape = Add(shapes, name, [=](const Place& at, RankProgram& program) {
    constexpr int kPieces = 4;
    const int replicas = at.num_ranks / num_stages;
    const int mine = at.rank / replicas;
    const auto forward = [&] {
      if (mine > 0) program.Receive(link("activations", mine - 1), at.rank - replicas, 0.1 * kMs);
      program.Work("forward", 3 * kMs, at.Planted(1.5 * kMs));
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
  });
  shape.sizes = {2 * num_stages};
  shape.num_parts = num_stages;
  shape.is_pipeline = true;
}

void AddPipelines(ShapeList& shapes) {
  // Two stages, whose ranks of one place send to each other; each stage reduces among its ranks.
  for (const bool declared : {true, false}) {
    Shape& pipeline = Add(shapes, declared ? "pipeline of 2 stages" : "pipeline, groups not declared",
                          [](const Place& at, RankProgram& program) {
                            const int half = at.num_ranks / 2;
                            const bool is_first = at.rank < half;
                            const int peer = is_first ? at.rank + half : at.rank - half;
                            for (int micro = 0; micro < 2; ++micro) {
                              if (!is_first) program.Receive("activations", peer, 0.2 * kMs);
                              program.Work("forward", 3 * kMs, at.Planted(1.5 * kMs));
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
                          });
    pipeline.sizes = {4, 8};
    pipeline.num_parts = 2;
    pipeline.is_pipeline = true;
    pipeline.declares_groups = declared;
  }
  AddOneForwardOneBackward(shapes, 4, true);
  AddOneForwardOneBackward(shapes, 4, false);
  AddOneForwardOneBackward(shapes, 3, true);
  // Two stages of two replicas of two tensor parallel ranks.
  Shape& three_axes =
      Add(shapes, "tensor, pipeline and data parallel", [](const Place& at, RankProgram& program) {
        const int half = at.num_ranks / 2;
        const bool is_first = at.rank < half;
        const int peer = is_first ? at.rank + half : at.rank - half;
        const auto layers = [&](const char* name, double seconds, double excess) {
          for (int layer = 0; layer < 2; ++layer) {
            program.Work(name, seconds, excess);
            program.Collective("tp_allreduce", 0.1 * kMs, Among::kPair);
          }
        };
        if (!is_first) program.Receive("activations", peer, 0.2 * kMs);
        layers("forward", 1.5 * kMs, at.Planted(1 * kMs));
        if (is_first) program.Send("activations", peer);
        if (is_first) program.Receive("gradients", peer, 0.2 * kMs);
        layers("backward", 3 * kMs, 0);
        if (!is_first) program.Send("gradients", peer);
        program.Collective("dp_allreduce", 0.5 * kMs, Among::kAcrossPairs);
        program.Work("step", 0.5 * kMs);
      });
  three_axes.sizes = {8};
  three_axes.num_parts = 2;
  three_axes.is_pipeline = true;
}

// Work that one rank alone has, or some iterations.
void AddRareWork(ShapeList& shapes) {
  const auto alone = [&](const std::string& name, int every, double seconds) -> Shape& {
    Shape& shape = Add(shapes, name, [every, seconds](const Place& at, RankProgram& program) {
      Blocking(program);
      if (at.is_planted && at.iteration % every == every - 1) program.Work("checkpoint", 0, seconds);
    });
    shape.planted_rank = 0;
    return shape;
  };
  alone("a checkpoint of one rank", 20, 36 * kMs);
  alone("logging of one rank", 1, 2 * kMs);
  alone("a checkpoint each 50th iteration", 50, 100 * kMs).num_iterations = 400;
  Add(shapes, "200 ms in each 50th iteration", [](const Place& at, RankProgram& program) {
    Blocking(program, at.iteration % 50 == 25 ? at.Planted(200 * kMs) : 0);
  }).num_iterations = 400;
  Add(shapes, "late in an evaluation each 50th iteration", [](const Place& at, RankProgram& program) {
    Blocking(program);
    if (at.iteration % 50 != 49) return;
    program.Work("evaluation", 100 * kMs, at.Planted(90 * kMs));
    program.Collective("metrics", 0.5 * kMs);
  }).num_iterations = 400;
  // Evaluations are of other batches than training, and not always of as many.
  Add(shapes, "evaluations of other lengths", [](const Place& at, RankProgram& program) {
    Blocking(program);
    if (at.iteration % 40 != 39) return;
    const int num_batches = 3 + static_cast<int>(at.shared_chance * 20);
    for (int i = 0; i < num_batches; ++i) program.Work("evaluate", 5 * kMs, at.Planted(4 * kMs));
    program.Collective("metrics", 0.2 * kMs);
  }).num_iterations = 400;
  // The others wait for it.
  Shape& evaluates = Add(shapes, "an evaluation of one rank", [](const Place& at, RankProgram& program) {
    Blocking(program);
    if (at.iteration % 40 != 39) return;
    if (at.is_planted) program.Work("evaluation", 0, 80 * kMs);
    program.Collective("barrier", 0.05 * kMs);
  });
  evaluates.planted_rank = 0;
  evaluates.num_iterations = 400;
  // A thread of one rank writes a checkpoint, and its work takes longer for three iterations.
  Shape& beside =
      Add(shapes, "a checkpoint written beside the work", [](const Place& at, RankProgram& program) {
        const bool writes = at.iteration % 20 >= 17;
        Blocking(program, writes ? at.Planted(3 * kMs) : 0, writes ? at.Planted(5 * kMs) : 0);
      });
  beside.planted_rank = 0;
  beside.num_iterations = 400;
  Add(shapes, "a loader that is slow each 8th iteration", [](const Place& at, RankProgram& program) {
    program.Work("data", 0.3 * kMs, at.iteration % 8 == 5 ? at.Planted(9 * kMs) : 0);
    Blocking(program);
  });
  Add(shapes, "a loader whose queue is empty at times", [](const Place& at, RankProgram& program) {
    program.Work("data", 0.3 * kMs, at.chance < 0.25 ? at.Planted(8 * kMs) : 0);
    Blocking(program);
  });
  Shape& throttled =
      Add(shapes, "throttled for 30 of each 100 iterations", [](const Place& at, RankProgram& program) {
        const bool is_hot = at.iteration % 100 >= 70;
        Blocking(program, is_hot ? at.Planted(2 * kMs) : 0, is_hot ? at.Planted(3 * kMs) : 0);
      });
  throttled.num_iterations = 400;
  // The table knows bursts from chance only if there are more of them.
  throttled.is_of_replay_alone = true;
}

// The work of all ranks is uneven by design, or by what else the machine does.
void AddUneven(ShapeList& shapes) {
  const auto add = [&](const std::string& name, Iterate iterate) -> Shape& {
    Shape& shape = Add(shapes, name, std::move(iterate));
    shape.is_uneven = true;
    return shape;
  };
  // Any rank, in one of fifty iterations, takes so long for what it does at the beginning.
  const auto stalls = [&](const std::string& name, const char* work, double seconds) {
    add(name, [=](const Place& at, RankProgram& program) {
      program.Work(work, 0.1 * kMs + (at.chance < 0.02 ? seconds : 0));
      Blocking(program, at.Planted(2 * kMs));
    });
  };
  stalls("a data loader that stalls, on any rank", "data", 20 * kMs);
  stalls("pauses of a garbage collector, on any rank", "python", 8 * kMs);
  // In each iteration another rank's experts get half as many tokens again.
  add("experts, imbalance that moves", [](const Place& at, RankProgram& program) {
    const bool has_more = static_cast<int>(at.shared_chance * at.num_ranks) == at.rank;
    const double tokens = has_more ? 1.5 : 1;
    program.Work("attention", 3 * kMs);
    program.Collective("dispatch", 0.3 * kMs);
    program.Work("experts", 4 * kMs * tokens, at.Planted(2 * kMs * tokens));
    program.Collective("combine", 0.3 * kMs);
    program.Work("backward", 8 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
  });
  // One of ten pieces of work takes a time with a heavy tail.
  add("heavy tails", [](const Place& at, RankProgram& program) {
    const double tail = std::min(0.5 * std::pow(1 - at.chance, -0.7), 40.0);
    program.Work("data", tail * kMs);
    Blocking(program, at.Planted(4 * kMs));
  });
  // Another job has CPUs of this one for twenty iterations, on any rank, in one of five such times.
  add("another job on the machine", [](const Place& at, RankProgram& program) {
    const uint64_t which = static_cast<uint64_t>(at.iteration / 20 * 64 + at.rank + 1);
    std::mt19937_64 random(which * 2654435761);
    const bool is_there = random() % 5 == 0;
    Blocking(program, at.Planted(4 * kMs), 0, is_there ? 1.8 : 1);
  }).num_iterations = 400;
  // Each rank's batch has sequences of its own bucket.
  add("buckets of lengths, each rank its own", [](const Place& at, RankProgram& program) {
    const double length = at.chance < 0.25 ? 0.5 : at.chance < 0.75 ? 1 : 2;
    Blocking(program, at.Planted(3 * kMs), 0, length);
  });
  // Four micro batches of each rank's own lengths, then a reduction.
  add("uneven micro batches", [](const Place& at, RankProgram& program) {
    for (int micro = 1; micro <= 4; ++micro) {
      const double length = 0.5 + std::fmod(at.chance * 7.13 * micro, 1);
      program.Work("forward", 1 * kMs * length, at.Planted(0.6 * kMs * length));
      program.Work("backward", 2 * kMs * length);
    }
    program.Collective("allreduce", 0.5 * kMs);
    program.Work("step", 0.5 * kMs);
  });
  // A thread writes each rank's checkpoint in turn.
  add("checkpoints beside the work, in turn", [](const Place& at, RankProgram& program) {
    const bool writes = at.iteration % 25 < 3 && at.iteration / 25 % at.num_ranks == at.rank;
    Blocking(program, at.Planted(2.5 * kMs), 0, writes ? 1.4 : 1);
  }).num_iterations = 400;
  // Rank 1 compiles again, once.
  add("one rank compiles again, once", [](const Place& at, RankProgram& program) {
    if (at.iteration == 60 && at.rank == 1) program.Work("compile", 300 * kMs);
    Blocking(program, at.Planted(2.5 * kMs));
  });
  // No rank is slow for long; what one rank is slow with for good is to be seen all the same.
  add("a straggler that moves on", [](const Place& at, RankProgram& program) {
    const bool is_slow = at.iteration / 10 % at.num_ranks == at.rank;
    Blocking(program, at.Planted(4 * kMs), 0, is_slow ? 1.2 : 1);
  });
  // Expert parallel ranks differ by a few percent for good, less than processes of one program do.
  add("experts, a few percent uneven for good", [](const Place& at, RankProgram& program) {
    const double tokens = 1 + 0.05 * (at.rank * 5 % at.num_ranks) / at.num_ranks;
    program.Work("attention", 3 * kMs);
    program.Collective("dispatch", 0.3 * kMs);
    program.Work("experts", 4 * kMs * tokens, at.Planted(2.5 * kMs));
    program.Collective("combine", 0.3 * kMs);
    program.Work("backward", 6 * kMs);
    program.Collective("allreduce", 0.5 * kMs);
  });
}

ShapeList MakeShapes() {
  ShapeList shapes;
  AddReductions(shapes);
  AddSeveralSlow(shapes);
  AddOverlaps(shapes);
  AddSeveralCollectives(shapes);
  AddGroups(shapes);
  AddPipelines(shapes);
  AddRareWork(shapes);
  AddUneven(shapes);
  for (Shape& shape : shapes) shape.Complete();
  return shapes;
}

}  // namespace

const std::deque<Shape>& Shapes() {
  static const auto* const shapes = new ShapeList(MakeShapes());
  return *shapes;
}

}  // namespace ott::shapes
