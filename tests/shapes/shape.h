// Trainings of other shapes than that of the example: what each rank does, one act after the other. They are
// simulated (simulated_training.h) and run by real processes (live_training.cc).

#ifndef OTT_TESTS_SHAPES_SHAPE_H_
#define OTT_TESTS_SHAPES_SHAPE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace ott::shapes {

// The ranks that meet: all, those of one part, those of one place in their parts, ranks 2 n and 2 n + 1, or
// those of one part and one place in their pairs.
enum class Among { kAll, kPart, kPlace, kPair, kAcrossPairs };

// What a rank does next. Seconds.
struct Act {
  enum class Kind { kWork, kCollective, kBroadcast, kBegin, kWait, kSend, kReceive, kEndIteration };
  Kind kind;
  std::string name;
  double seconds = 0;
  Among among = Among::kAll;
  double late = 0;
  // Of `seconds`, what is planted.
  double excess = 0;
  bool measured = false;
  // The rank that sends, or is sent to.
  int peer = 0;
};

// The acts of one rank, one after the other. Seconds.
class RankProgram {
 public:
  RankProgram(uint64_t seed, double noise) : random_(seed), noise_(noise) {}

  // Measured work, with noise; `excess` is what is planted on top.
  void Work(const std::string& name, double seconds, double excess = 0);
  // Waits for all ranks among which it is, then takes `seconds`; this rank leaves `late` after that.
  void Collective(const std::string& name, double seconds, Among among = Among::kAll, double late = 0);
  // All ranks wait for the root alone, which waits for nobody.
  void Broadcast(const std::string& name, int root, double seconds);
  // Begins a collective of all ranks beside the work. `measured`: its measurement runs from here to the
  // Wait() for it; else in the Wait() alone.
  void Begin(const std::string& name, double seconds, bool measured);
  void Wait(const std::string& name, bool measured);
  // A send takes no time, and a receive waits for it.
  void Send(const std::string& name, int to);
  void Receive(const std::string& name, int from, double seconds);
  void EndIteration();

  const std::vector<Act>& acts() const { return acts_; }
  // Lets its work take so long, each act of it. What is planted stays in it.
  void SetWork(const std::vector<double>& seconds);
  // Returns the same without what is planted.
  RankProgram WithoutPlanted() const;

 private:
  std::vector<Act> acts_;
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

  // Returns the excess on a rank that has what is planted; else 0.
  double Planted(double excess) const { return is_planted ? excess : 0; }
};

struct Shape {
  std::string name;
  // Adds one iteration to the program.
  std::function<void(const Place& at, RankProgram& program)> iterate;
  // Ranks in a row are a part; so many parts of the job, or ranks of a part if that is not 0.
  int num_parts = 1;
  int ranks_of_part = 0;
  // The ranks of other parts do other work.
  bool is_pipeline = false;
  // The configuration declares the collectives, and which ranks come to each together.
  bool declares_collectives = true;
  bool declares_groups = true;
  double noise = 0.03;
  int num_iterations = 200;
  // The numbers of ranks to run it with.
  std::vector<int> sizes = {2, 4, 8};
  // -1: any rank may have what is planted, and of several the next ones, too.
  int planted_rank = -1;
  int num_planted = 1;
  // The share of the run after which what is planted begins.
  double late = 0;
  // The share after which it goes from one rank to the other; -1: it stays.
  double moves = -1;
  // A rank is on a CPU for this share of its work; the rest is of a device.
  double cpu_share = 0.1;
  // Others have the first rank's CPU for this share of its work, which takes no longer, as it sleeps
  // meanwhile.
  double taken_share = 0;
  // All ranks' work is uneven by design.
  bool is_uneven = false;
  // Only so many ranks leave what they measured; 0: all.
  int num_present = 0;
  // The table does not show it, but a replay.
  bool is_of_replay_alone = false;
  // Nobody can tell, so a good answer is false.
  bool cannot_be_told = false;
  // What the configuration declares: measurements in which ranks wait for each other, and those to which not
  // all ranks come together.
  std::vector<std::string> collectives;
  std::map<std::string, Among> groups;

  int RanksOfPart(int num_ranks) const { return ranks_of_part > 0 ? ranks_of_part : num_ranks / num_parts; }
  int PartOf(int rank, int num_ranks) const { return rank / RanksOfPart(num_ranks); }
  // Returns true if the rank has what is planted, first of all on `planted`; -1: nothing is.
  bool IsPlanted(int rank, int num_ranks, int planted) const;
  // Returns the ranks that meet the rank, and itself, ascending.
  std::vector<int> Members(Among among, int rank, int num_ranks) const;
  // Returns the rank's program, or those of all ranks of a run, which have the same seed.
  RankProgram Program(int rank, int num_ranks, int seed, int planted) const;
  std::vector<RankProgram> Programs(int num_ranks, int seed, int planted) const;

  // Sets `collectives` and `groups` by what its ranks do.
  void Complete();
};

// Return the files in which a rank of a live run leaves seconds, as doubles: how long its work took, an act
// each, and when its iterations ended, since the start.
std::string WorkPath(const std::string& run_dir, int rank);
std::string EndsPath(const std::string& run_dir, int rank);

// All that have names.
const std::deque<Shape>& Shapes();

// Returns one of blocking and overlapped collectives, groups, rare work and lengths that are drawn by chance.
Shape DrawnShape(int seed);

}  // namespace ott::shapes

#endif  // OTT_TESTS_SHAPES_SHAPE_H_
