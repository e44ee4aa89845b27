// Trainings of other shapes than that of the example, simulated: what their ranks' stopwatches and kept
// iterations say, and what the job's own clock says with and without what is planted.

#ifndef OTT_TESTS_SHAPES_SIMULATED_TRAINING_H_
#define OTT_TESTS_SHAPES_SIMULATED_TRAINING_H_

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/saved/what_if.pb.h"

namespace ott::shapes {

// The acts of one rank, one after the other. Seconds.
class RankProgram {
 public:
  RankProgram(uint64_t seed, double noise) : random_(seed), noise_(noise) {}

  // Measured work, with noise; `excess` is what is planted on top.
  void Work(const std::string& name, double seconds, double excess = 0);
  // Waits for all ranks of the label (empty: all), then takes `seconds`; this rank leaves `late` after that.
  void Collective(const std::string& name, double seconds, const std::string& label = "", double late = 0);
  // Begins a collective beside the work. `measured`: its measurement runs from here to the Wait() for it.
  void Begin(const std::string& name, double seconds, bool measured);
  void Wait(const std::string& name, bool measured);
  // A send takes no time, and a receive waits for it.
  void Send(const std::string& name, int to);
  void Receive(const std::string& name, int from, double seconds);
  void EndIteration();

 private:
  friend class Simulation;
  enum class Kind { kWork, kCollective, kBegin, kWait, kSend, kReceive, kEndIteration };
  struct Operation {
    Kind kind;
    std::string name;
    std::string label;
    double seconds = 0;
    double late = 0;
    bool measured = false;
    int peer = 0;
  };

  std::vector<Operation> operations_;
  std::mt19937_64 random_;
  double noise_;
};

// The place of which a shape's program is asked.
struct Place {
  int rank = 0;
  int num_ranks = 0;
  int iteration = 0;
  int num_iterations = 0;
  // This rank has what is planted.
  bool is_planted = false;
  // 1, 2 or 0.5, the same on all ranks.
  double phase = 1;
  // Random numbers in [0, 1): of this rank and iteration, and the same on all ranks.
  double chance = 0;
  double shared_chance = 0;
};

struct Shape {
  std::string name;
  // Adds one iteration to the program.
  std::function<void(const Place& at, RankProgram& program)> iterate;
  std::vector<std::string> collectives;
  // Returns the groups that the configuration declares; null: none.
  std::function<std::string(const std::string& name, int rank, int num_ranks)> group;
  std::function<std::string(int rank, int num_ranks)> like_work;
  double noise = 0.03;
  int num_iterations = 200;
  int min_ranks = 2;
  // -1: any rank may have what is planted, and of several the next ones, too.
  int planted_rank = -1;
  int num_planted = 1;
  // The share of the run after which what is planted begins.
  double late = 0;
  // A rank is on a CPU for this share of its work; the rest is of a device.
  double cpu_share = 0.1;
  // All ranks' work is uneven by design.
  bool is_uneven = false;
  // Only so many ranks leave what they measured; 0: all.
  int num_present = 0;
  // No work takes longer and nobody comes late, so that a replay alone shows it.
  bool is_of_replay_alone = false;
  // Nobody can tell, so a good answer is false.
  bool cannot_be_told = false;
};

// All of them.
const std::vector<Shape>& Shapes();

// The answers about one run.
struct Told {
  ClusterStats stats;
  WhatIfAnswer what_if;
  // Whom any answer names, and whom the table does, ascending.
  std::vector<int> named;
  std::vector<int> named_by_table;
  // A mean iteration on the job's own clock, in seconds.
  double truth = 0;
  // The table's lines and the answer in words.
  std::string text;
};

// planted: the rank; -1: none.
Told RunAndAsk(const Shape& shape, int num_ranks, int seed, int planted);

// Counts answers that are not true.
struct Rates {
  int num_runs = 0;
  // Names an innocent, or says that all is good where nothing can be told.
  int num_false = 0;
  // Does not name what is planted.
  int num_missed = 0;
  // States a number that is more than a tenth off.
  int num_wrong = 0;
  // By the table, all wait longer for a rank than what if says that mending any rank saves at most.
  int num_contradicted = 0;
  // The text of the first run that is not true.
  std::string first;
};

Rates RatesOf(const Shape& shape, int num_ranks, bool is_planted, int num_runs);

}  // namespace ott::shapes

#endif  // OTT_TESTS_SHAPES_SIMULATED_TRAINING_H_
