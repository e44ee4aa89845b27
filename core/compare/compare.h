// Compares trees of values and whole dumps. What could not be compared never passes.

#ifndef OTT_CORE_COMPARE_COMPARE_H_
#define OTT_CORE_COMPARE_COMPARE_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/core/tensor/value.h"

namespace ott {

struct PathTolerance {
  std::string glob;  // over whole paths (MatchesTensorGlob in ott/core/base/glob.h)
  Tolerance tolerance;
};

struct CompareOptions {
  TensorCompareOptions tensors;
  // The first one whose glob matches a tensor's path is used instead of tensors.tolerance.
  std::vector<PathTolerance> path_tolerances;
  // If no glob matches: uses the atol and rtol of the current tensor's dtype (DefaultTolerance) instead of
  // those of tensors.tolerance.
  bool default_tolerances = false;
  // Ignores what only the current has, for data that was not dumped yet when the reference was; and what only
  // the reference has, for a current that is not complete yet.
  bool allow_extra = false;
  bool allow_missing = false;
  // True if maps with the same names in another order differ. Threads add in no fixed order, so equal runs
  // may differ in it.
  bool compare_order = false;
  // Two sides that agree but have no elements, since both are empty or hold only texts, are equal; false:
  // they could not be compared.
  bool allow_empty = true;
};

// Returns torch.testing's tolerance for the dtype: rtol 1.3e-6 and atol 1e-5 for float32, 1.6e-2 and 1e-5 for
// bfloat16, 1e-3 and 1e-5 for float16, 1e-7 and 1e-7 for float64; complex types have their parts'; nothing
// for the others.
Tolerance DefaultTolerance(DType dtype);

struct NamedComparison {
  std::string path;
  TensorComparison comparison;
};

// The overall result, as an exit code.
enum class Verdict : int { kEqual = 0, kDifferent = 1, kCouldNotCompare = 2 };

std::string_view Name(Verdict verdict);  // "equal", "different", "could not compare"

struct TreeComparison {
  // One for each tensor, and for each other value that is not the same on both sides, in the reference's
  // order; for dumps, that is the order in which the program added them. Extra ones follow at the end of
  // their map or list, or of all.
  std::vector<NamedComparison> results;

  // Both sides agree, neither has an element, and CompareOptions::allow_empty takes that for equal.
  bool agree_without_elements = false;

  // Returns kDifferent if anything differs; else kCouldNotCompare if anything could not be compared, or if no
  // elements were compared and not agree_without_elements; else kEqual.
  Verdict verdict() const;
  bool bitwise_equal() const;
  // Returns the first result that does not pass; null if all do.
  const NamedComparison* first_failure() const;
};

// Compares numbers, and lists of numbers, as tensors, on TensorCompareOptions::num_threads threads. If there
// is nothing to compare and that is not equal (CompareOptions::allow_empty), the one result is kEmpty.
TreeComparison CompareTrees(const Value& reference, const Value& current, const CompareOptions& options = {});

// Two tensors of the same place in two trees, and how they are compared.
struct ComparedTensors {
  Tensor reference;
  Tensor current;
  TensorCompareOptions options;
};

// Returns a comparison for each pair. Small tensors are compared side by side, large ones one after the
// other, each by all threads. num_threads: as TensorCompareOptions has it.
std::vector<TensorComparison> ComparePairs(absl::Span<const ComparedTensors> pairs, int num_threads);

// Compares as above, but calls `compare_pairs` once for all pairs of tensors in the trees. It returns as many
// comparisons.
TreeComparison CompareTrees(
    const Value& reference, const Value& current, const CompareOptions& options,
    const std::function<std::vector<TensorComparison>(absl::Span<const ComparedTensors>)>& compare_pairs);

// Compares a tree in memory, and one of gradients if there are any, with a directory that ReadDump() reads.
// Otherwise like CompareDumps().
TreeComparison CompareToDump(const std::string& reference_dir, const Value& current,
                             const Value* current_grads, const CompareOptions& options = {});

// Two directories that ReadDump() reads. A tensor is "weights.w1" as in the program and its
// gradient "grads.weights.w1" (TensorName() in core/dump/dump_files.h). A dump without a manifest
// has no dtypes in JSON, so what it has there is compared as numbers. What cannot be read is a result of its
// own, kCouldNotCompare.
//
// A tensor dumped as statistics is bitwise equal where the digest is, and else kCouldNotCompare. So is one
// dumped as an image, but then the images are compared as well, one side being scaled to an image if need be:
// the path is followed by "tensor_image.pixels" and "tensor_image.original_range".
TreeComparison CompareDumps(const std::string& reference_dir, const std::string& current_dir,
                            const CompareOptions& options = {});

}  // namespace ott

#endif  // OTT_CORE_COMPARE_COMPARE_H_
