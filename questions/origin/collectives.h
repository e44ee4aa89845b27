// Keeps what collectives got, on all ranks.

#ifndef OTT_QUESTIONS_ORIGIN_COLLECTIVES_H_
#define OTT_QUESTIONS_ORIGIN_COLLECTIVES_H_

#include <cstdint>
#include <unordered_map>

#include "ott/questions/origin/aligned_ops.h"

namespace ott::origin {

bool IsCollective(const LoggedOp& op);

// Keeps what the collectives of all ranks got, since each rank's outputs depend on it.
class CollectiveInputs {
 public:
  // Adds those of one rank; perturbed: the same run a against the perturbed one, null: none.
  void Add(const AlignedOps& aligned, const AlignedOps* perturbed);

  struct Of {
    double difference = 0;
    double perturbed = 0;
  };
  // Returns the largest differences on any rank of the n-th operation of its name, module and phase in an
  // iteration.
  Of Find(uint64_t instance) const;
  // Returns true if a collective of the iteration got this value of a, and that of b in its place.
  bool Moves(int64_t iteration, const Digest& a, const Digest& b) const;

 private:
  std::unordered_map<uint64_t, Of> instances_;
  std::unordered_map<uint64_t, bool> moves_;
};

// Numbers the collectives of an iteration, the same on all ranks.
class CollectiveCounter {
 public:
  // Returns the number of the collective of the iteration that comes next.
  uint64_t Next(int64_t iteration, const OpDefinition& definition);

 private:
  std::unordered_map<uint64_t, uint64_t> counts_;
};

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_COLLECTIVES_H_
