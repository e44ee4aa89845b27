// The elements of tensors that logs of operations kept.

#ifndef OTT_QUESTIONS_ORIGIN_KEPT_TENSORS_H_
#define OTT_QUESTIONS_ORIGIN_KEPT_TENSORS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ott/core/op_log/op_log_reader.h"

namespace ott::origin {

// A tensor of a LoggedOp.
struct KeptTensor {
  // OpTensorsDirectory() of its rank.
  std::string dir;
  int64_t iteration = 0;
  const LoggedOp* op = nullptr;
  int tensor = -1;
};

struct KeptComparison {
  // Norm of the difference of finite elements, over that of the reference, or else of the current.
  double relative_difference = 0;
  // "4096 of 4096 elements, max rel error 3.1e-3"
  std::string text;
};

// Returns nullopt if one of them was not kept, or cannot be read.
std::optional<KeptComparison> CompareKept(const KeptTensor& reference, const KeptTensor& current);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_KEPT_TENSORS_H_
