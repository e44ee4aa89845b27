// Measures how far the tensors of two operations are apart.

#ifndef OTT_QUESTIONS_ORIGIN_DIFFERENCES_H_
#define OTT_QUESTIONS_ORIGIN_DIFFERENCES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "ott/core/digest/digest.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/questions/origin/aligned_ops.h"

namespace ott::origin {

// Returns the estimated norm of the difference over the larger norm: 0 if the digests are equal, infinite if
// NaN or infinities are in one of them only, or the sizes differ; NaN if one could not be read, or if NaN or
// infinities are all that can differ.
double RelativeDifference(const LoggedOp& a, int tensor_a, const LoggedOp& b, int tensor_b);

// The inputs, or outputs, of two operations that correspond; -1: the other has none.
struct TensorPair {
  int a = -1;
  int b = -1;
};
using TensorPairs = absl::InlinedVector<TensorPair, 8>;
TensorPairs PairTensors(const AlignedOps& aligned, const OpPair& pair, bool outputs);

struct DigestHash {
  size_t operator()(const Digest& digest) const { return digest.low; }
};

// Finds the operation that last wrote a value, as the log is gone through.
class Writers {
 public:
  // indexed: for many questions; otherwise each goes back through the log.
  Writers(const LoggedOps& ops, bool indexed) : ops_(ops), indexed_(indexed) {}

  // Answers are about the operations before this one. REQUIRES: op is not below that of an earlier call
  void GoTo(size_t op) { end_ = op; }
  // Returns the index of the operation that last wrote it; -1: none that was logged.
  int64_t WriterOf(const Digest& digest);
  // Returns true if any operation so far read or wrote it.
  bool Knows(const Digest& digest) const { return Search(digest, /*outputs_only=*/false) >= 0; }

 private:
  // Returns the index of the last operation that has it.
  int64_t Search(const Digest& digest, bool outputs_only) const;

  const LoggedOps& ops_;
  const bool indexed_;
  size_t end_ = 0;
  // Indexes the operations before next_; those that nobody asks about need none.
  size_t next_ = 0;
  absl::flat_hash_map<Digest, uint32_t, DigestHash> writers_;
};

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_DIFFERENCES_H_
