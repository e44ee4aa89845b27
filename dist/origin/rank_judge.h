// Goes through the operations of one rank in two runs, for the first that computed something else.

#ifndef OTT_DIST_ORIGIN_RANK_JUDGE_H_
#define OTT_DIST_ORIGIN_RANK_JUDGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ott/dist/origin/aligned_ops.h"
#include "ott/dist/origin/differences.h"
#include "ott/dist/origin/rounding.h"

namespace ott::origin {

// By how much an operation's output may differ beyond what the differences of its inputs make in the
// perturbed run, which perturbs in one direction of many and is itself known from sketches.
inline constexpr double kSafety = 8;

// What the collectives of all ranks got, since each rank's outputs depend on it.
class CollectiveInputs {
 public:
  // Those of one rank; perturbed: the same run a against the perturbed one, null: none.
  void Add(const AlignedOps& aligned, const AlignedOps* perturbed);

  struct Of {
    double difference = 0;
    double perturbed = 0;
  };
  // The largest differences on any rank of the n-th operation of its name, module and phase in an iteration.
  Of Find(uint64_t instance) const;
  // Whether a collective of the iteration got this value of a, and that of b in its place.
  bool Moves(int64_t iteration, const Digest& a, const Digest& b) const;

 private:
  std::unordered_map<uint64_t, Of> instances_;
  std::unordered_map<uint64_t, bool> moves_;
};

// Numbers the collectives of an iteration, the same on all ranks.
class CollectiveCounter {
 public:
  // Of what comes is a collective of this iteration.
  uint64_t Next(int64_t iteration, const OpDefinition& definition);

 private:
  std::unordered_map<uint64_t, uint64_t> counts_;
};

struct Candidate {
  enum class Kind { kOperation, kUpdate, kInput };

  Kind kind = Kind::kOperation;
  int64_t iteration = 0;
  // Among the pairs of its iteration.
  size_t position = 0;
  // Of AlignedOps::pairs, from which it spreads.
  size_t pair = 0;
  // The operation to name.
  const LoggedOp* op = nullptr;
  // What to call the tensor, and which of op's it is; -1: of none.
  std::string tensor;
  int tensor_a = -1;
  int tensor_b = -1;
  bool tensor_is_output = true;
  double difference = 0;
  double input_difference = 0;
  double explained = 0;
  // What is wrong where that is no computation: an operation that is missing, a value that is stale.
  std::string detail;
  std::string last_written_by;
};

class RankJudge {
 public:
  // perturbed: run a against the perturbed one; null: whatever differs in a bit counts.
  RankJudge(const AlignedOps& aligned, const AlignedOps* perturbed, const CollectiveInputs& collectives,
            int world_size);

  // The first operation that computed something else, or read what no operation made. Nothing if there is
  // none, or what differs came from other ranks.
  std::optional<Candidate> Find();

  // Whether any tensor differs, in a bit.
  bool differs() const { return differs_; }
  int64_t num_not_judged() const { return num_not_judged_; }

 private:
  struct Inputs {
    // Largest differences, of those of b, and of the perturbed run.
    double difference = 0;
    double perturbed = 0;
    bool knows_perturbed = false;
  };

  bool tolerant() const { return perturbed_ != nullptr; }
  bool PairIsEqual(const OpPair& pair) const;
  std::optional<Candidate> Judge(size_t index, int64_t iteration);
  // Compares the inputs; a candidate where one differs that no operation made.
  std::optional<Candidate> JudgeInputs(const OpPair& pair, Inputs& inputs);
  std::optional<Candidate> JudgeOutput(const OpPair& pair, const TensorPair& tensor, const Inputs& inputs,
                                       int64_t iteration);
  double InputDifference(const OpPair& pair, const TensorPair& tensor) const;
  // The operation of the perturbed run that corresponds; null: none.
  const LoggedOp* PerturbedOp(const OpPair& pair) const;
  double InputTolerance(const OpPair& pair, const TensorPair& tensor, int64_t writer_a) const;
  double OutputTolerance(const OpPair& pair, const TensorPair& tensor, const RoundedOutput& output,
                         const Inputs& inputs);
  // The input that an update changed into this output; -1: none.
  static int InputUpdated(const LoggedOp& op, int output);
  // How far an update's output may be off, of its norm, since what it adds jumps in a few elements.
  double StepAllowance(const LoggedOp& a, int output) const;
  // Whether what an update adds to its parameter is further off than its other inputs explain.
  bool IncrementDiffers(const OpPair& pair, const TensorPair& tensor, const RoundedOutput& output) const;
  RoundedOutput Describe(const OpPair& pair, const TensorPair& tensor) const;
  // Why an input differs of which no pair of operations made both values.
  Candidate ExplainInput(const OpPair& pair, const TensorPair& tensor, int64_t writer_a, int64_t writer_b,
                         double difference);
  // The first of the operations that only b ran which led to this one.
  size_t FirstInserted(size_t op_b) const;
  std::string DescribeWriter(const LoggedOps& ops, int64_t writer) const;

  const AlignedOps& aligned_;
  const AlignedOps* perturbed_;
  const CollectiveInputs& collectives_;
  const int world_size_;
  Writers writers_a_;
  Writers writers_b_;
  CollectiveCounter counter_;
  uint64_t instance_ = 0;
  bool differs_ = false;
  int64_t num_not_judged_ = 0;
};

}  // namespace ott::origin

#endif  // OTT_DIST_ORIGIN_RANK_JUDGE_H_
