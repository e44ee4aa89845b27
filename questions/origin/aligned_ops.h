// The logs of a run's operations, and which operations of two of them correspond.

#ifndef OTT_QUESTIONS_ORIGIN_ALIGNED_OPS_H_
#define OTT_QUESTIONS_ORIGIN_ALIGNED_OPS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/op_log/op_log_reader.h"

namespace ott::origin {

struct RunLogs {
  std::string run_dir;
  int world_size = 0;
  // By rank, those that have a log.
  std::map<int, std::unique_ptr<LoggedOps>> ranks;
  // Logs that are missing, cut or cannot be read.
  std::vector<std::string> problems;
};

// Returns NOT_FOUND if run_dir is no run directory, or no rank of it has a log.
absl::StatusOr<RunLogs> ReadRunLogs(const std::string& run_dir);

struct OpPair {
  // Indices of LoggedOps::ops.
  uint32_t a = 0;
  uint32_t b = 0;
  // True if both have one name and module, with tensors of the same shapes in the same order; otherwise it
  // has another name, or stands for several.
  bool same = true;
};

// Ascending in both.
struct AlignedOps {
  struct Iteration {
    int64_t number = 0;
    // An index in pairs.
    size_t begin = 0;
    size_t end = 0;
    // The log of this run was cut here: it may lack operations after the last pair.
    bool a_is_cut = false;
    bool b_is_cut = false;
  };

  const LoggedOps* a = nullptr;
  const LoggedOps* b = nullptr;
  std::vector<OpPair> pairs;
  // The iterations that both have.
  std::vector<Iteration> iterations;
  // By index of an operation, that of the other; -1: none.
  std::vector<int32_t> partner_of_a;
  std::vector<int32_t> partner_of_b;
  // Counted in the iterations that both have.
  int64_t num_only_in_a = 0;
  int64_t num_only_in_b = 0;
  int64_t num_renamed = 0;

  const LoggedOp& op_a(const OpPair& pair) const { return a->ops[pair.a]; }
  const LoggedOp& op_b(const OpPair& pair) const { return b->ops[pair.b]; }
};

// Operations correspond by name, module, phase and the shapes of their tensors, in order. What is then left
// over between two that do, corresponds by the shapes of outputs, from the end: operations that were renamed,
// and the last one of several that one stands for.
AlignedOps AlignOps(const LoggedOps& a, const LoggedOps& b);

// Returns the number of the iteration of an operation. REQUIRES: it is part of one
int64_t IterationOf(const LoggedOps& ops, size_t op);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ALIGNED_OPS_H_
