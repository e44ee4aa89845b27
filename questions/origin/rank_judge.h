// Goes through the operations of one rank in two runs, for the first that computed something else.

#ifndef OTT_QUESTIONS_ORIGIN_RANK_JUDGE_H_
#define OTT_QUESTIONS_ORIGIN_RANK_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ott/questions/origin/aligned_ops.h"
#include "ott/questions/origin/candidate.h"
#include "ott/questions/origin/collectives.h"
#include "ott/questions/origin/differences.h"
#include "ott/questions/origin/gains.h"
#include "ott/questions/origin/rounding.h"
#include "ott/questions/origin/updates.h"

namespace ott::origin {

class RankJudge {
 public:
  // perturbed: run a against the perturbed one; null: whatever differs in a bit counts.
  RankJudge(const AlignedOps& aligned, const AlignedOps* perturbed, const CollectiveInputs& collectives,
            const Gains& gains, int world_size);

  // Returns the first operation that computed something else, or read what no operation made. Nothing if
  // there is none, or what differs came from other ranks.
  std::optional<Candidate> Find();

  // Returns, for an operation that was named on another rank, if a perturbed run tells: by how many times
  // what is explained its output differs here in that iteration, the most of all its runs.
  double TimesExplained(const Candidate& named);

  // Returns true if any tensor differs, in a bit.
  bool differs() const { return differs_; }
  // Outputs of which nothing tells what the operation makes of the differences of its inputs.
  int64_t num_not_judged() const { return num_not_judged_; }
  // Some outputs, inputs or updates, and the first of them: "linear (fc1) in iteration 2".
  struct Some {
    int64_t num = 0;
    std::string first;
    void Add(const LoggedOp& op, int64_t iteration, const std::string& input = "");
  };
  // Outputs that numbers rounded the other way inside of their operation may explain.
  const Some& jumps() const { return jumps_; }
  // Excesses of operations that are wrong in each of their runs, but ran too few times to be sure.
  const Some& doubtful_jumps() const { return doubtful_jumps_; }
  // Outputs that differ by no more than is explained, but by most of it, of operations that differ much in
  // each of their runs.
  const Some& doubtful_outputs() const { return doubtful_outputs_; }
  // Inputs that no operation made that was logged, and that differ more than in the perturbed run, but no
  // more than what is not logged may have made of other differences.
  const Some& doubtful_inputs() const { return doubtful_inputs_; }
  // Updates that may be wrong, or may have jumped in many elements.
  const Some& doubtful_updates() const { return doubtful_updates_; }
  // The relative difference of an output, or of what an update adds, that would not be noticed.
  struct Unseen {
    double difference = 0;
    const LoggedOp* op = nullptr;
  };
  // Lists, for each output that differed and was found explained, what its first such run would not show.
  const std::vector<Unseen>& unseen() const { return unseen_; }
  // The first update of the last iteration that only one run logged, where the other one logs none like it in
  // any: "adam (fc1) in iteration 2".
  const std::string& first_lone_update() const { return first_lone_update_; }

 private:
  struct Inputs {
    // The largest.
    double difference = 0;
    // True if it is not known which of the reference's tensors one corresponds to.
    bool is_guess = false;
  };

  bool tolerant() const { return perturbed_ != nullptr; }
  bool PairIsEqual(const OpPair& pair) const;
  std::optional<Candidate> Judge(size_t index, const AlignedOps::Iteration& iteration);
  // Compares the inputs; a candidate where one differs that no operation made.
  std::optional<Candidate> JudgeInputs(size_t index, const AlignedOps::Iteration& iteration, Inputs& inputs);
  std::optional<Candidate> JudgeOutput(const OpPair& pair, const TensorPair& tensor, const Inputs& inputs,
                                       const AlignedOps::Iteration& iteration);
  // Returns true if this operation of b writes the value; -1: none does.
  bool IsWrittenBy(int32_t op_b, const Digest& digest) const;
  double InputDifference(const OpPair& pair, const TensorPair& tensor) const;
  // Returns the operation of the perturbed run that corresponds; null: none.
  const LoggedOp* PerturbedOp(const OpPair& pair) const;
  // Returns the largest; of a collective, of all ranks.
  double PerturbedInputDifference(const OpPair& pair) const;
  double InputTolerance(const OpPair& pair, const TensorPair& tensor, int64_t writer_a) const;
  // Returns what operations that are not logged may have made of what pairs before this one made: the largest
  // difference of their outputs, and a rounding of each number in the coarsest dtype of the logs.
  double UnloggedTolerance(size_t index);
  // Returns what the operation makes of differences, at least 1; nullopt if the perturbed run does not
  // tell.
  std::optional<double> GainOf(const OpPair& pair, int tensor, const RoundedOutput& output);
  // difference: of the output; if the tolerance is not below it, it may be less than what is explained.
  double OutputTolerance(const OpPair& pair, const TensorPair& tensor, const RoundedOutput& output,
                         const Inputs& inputs, double difference);
  // Says whether numbers that are rounded the other way inside of the operation may have made the difference.
  // kPerhaps: no run of it shows that it is not always wrong, but these are few, and the excess is small.
  enum class Jump : uint8_t { kNo, kPerhaps, kYes };
  Jump MayBeJump(const OpPair& pair, const TensorPair& tensor, const RoundedOutput& output,
                 const Inputs& inputs, double difference, double explained, size_t first_of_iteration);
  // Returns the number of runs of the pair's operation from pair `from` on; nullopt if one of them differs by
  // much less than `difference`.
  std::optional<size_t> RunsThatAllDiffer(const OpPair& pair, int tensor, double difference, size_t from);
  // Returns nullopt if the output is no update's, or nothing tells what the update makes of its inputs.
  std::optional<IncrementExcess> ExcessOf(const OpPair& pair, const TensorPair& tensor,
                                          const RoundedOutput& output) const;
  // Keeps what of an output that is explained would not be noticed, and whether it is nearly not explained.
  // at_least: so much is explained at least.
  void NoteExplained(const OpPair& pair, const TensorPair& tensor, const RoundedOutput& output,
                     const Inputs& inputs, double difference, double at_least,
                     const std::optional<IncrementExcess>& excess, const AlignedOps::Iteration& iteration);
  RoundedOutput OutputOf(const OpPair& pair, const TensorPair& tensor) const;
  // Returns the first of the operations that only b ran which led to this one.
  int64_t FirstInserted(int64_t op_b);

  const AlignedOps& aligned_;
  const AlignedOps* perturbed_;
  const CollectiveInputs& collectives_;
  const Gains& gains_;
  const int world_size_;
  Writers writers_a_;
  Writers writers_b_;
  CollectiveCounter counter_;
  uint64_t instance_ = 0;
  // By index of definition and tensor.
  absl::flat_hash_map<std::pair<size_t, int>, std::optional<double>> median_gains_;
  // Gains::LargestMedian(), once asked for.
  std::optional<double> largest_gain_;
  // By index of definition; empty until asked for.
  std::vector<std::vector<size_t>> pairs_of_definition_;
  bool differs_ = false;
  int64_t num_not_judged_ = 0;
  Some jumps_;
  Some doubtful_jumps_;
  Some doubtful_outputs_;
  Some doubtful_inputs_;
  Some doubtful_updates_;
  std::vector<Unseen> unseen_;
  // Indices of definition and tensor of what is in unseen_.
  absl::flat_hash_set<std::pair<size_t, int>> is_in_unseen_;
  std::string first_lone_update_;
  // The largest difference of outputs of the first `num_looked_at_` pairs.
  double largest_difference_ = 0;
  size_t num_looked_at_ = 0;
  double coarsest_roundoff_ = 0;
};

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_RANK_JUDGE_H_
