// Compares two tensors: every figure that is wanted about how they differ, in one pass on several threads.

#ifndef OTT_CORE_COMPARE_TENSOR_COMPARISON_H_
#define OTT_CORE_COMPARE_TENSOR_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/tensor/tensor.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// Says which differences pass. Numbers match where |current - reference| <= atol + rtol * |reference|; equal
// infinities match, other infinities never do; NaN matches nothing unless nan_equal.
struct Tolerance {
  double atol = 0;
  double rtol = 0;
  // NaN matches NaN, whatever its payload.
  bool nan_equal = false;
  // Only equal bits match, but for NaN with nan_equal: -0.0 does not match 0.0, and atol and rtol are not
  // used. Where different dtypes are compared as numbers, equal numbers of the same sign match, and NaN
  // matches NaN.
  bool bitwise = false;
};

// Returns true if it can be an atol or rtol: finite, and at least 0.
bool IsTolerance(double number);

enum class CompareStatus : uint8_t {
  // These pass.
  kBitwiseEqual,
  kEqual,  // equal values in different bits, such as -0.0 and 0.0
  kWithinTolerance,
  // These are differences.
  kMismatch,
  kDTypeDiffers,
  kShapeDiffers,
  kKindDiffers,  // such as a list against a map
  kLengthDiffers,
  kOrderDiffers,
  kMissing,  // in the current
  kExtra,    // in the current
  // These say that there is no answer.
  kEmpty,  // nothing to compare
  kCouldNotCompare,
};

// Returns "bitwise equal", "equal", "within tolerance", "mismatch", "dtype differs", ...
std::string_view Name(CompareStatus status);

bool Passes(CompareStatus status);

// One element on both sides.
struct ElementDifference {
  int64_t position = 0;  // row-major
  Dims index;
  double reference = 0;  // of a complex element, the part that differs
  double current = 0;
  double abs_error = 0;
  double difference = 0;  // current - reference, of that part
  // The elements' own text: "-0.0", "18446744073709551615", "1.5+2j".
  std::string reference_text;
  std::string current_text;
};

// An element whose bits differ.
struct BitDifference {
  ElementDifference element;
  std::vector<int> flipped_bits;  // 0 is the lowest
  // Floating-point numbers between the two, and one more; absent if one is NaN, and for other types.
  std::optional<uint64_t> ulp_distance;
};

// An error, and where it is.
struct ErrorAt {
  double error = 0;
  int64_t position = 0;
  Dims index;
};

struct TensorComparison {
  CompareStatus status = CompareStatus::kCouldNotCompare;
  // Why, where the status does not say it: both shapes, the reader's error.
  std::string detail;

  // One side was rounded to the other's dtype before.
  bool rounded = false;

  // The tolerance that was asked for.
  Tolerance tolerance;
  DType dtype = DType::kFloat32;  // the current's
  Dims shape;
  int64_t num_elements = 0;

  // From here on, only where the elements were compared.
  int64_t num_mismatched = 0;
  int64_t num_bits_differ = 0;  // elements whose bits differ
  // Over the elements at which both are finite.
  std::optional<ErrorAt> max_abs_error;
  std::optional<ErrorAt>
      max_rel_error;  // |current - reference| / |reference|; infinite where the reference is 0
  double mean_abs_error = 0;
  double root_mean_square_error = 0;
  double cosine_similarity = 0;              // NaN if one side is all zeros
  std::optional<uint64_t> max_ulp_distance;  // floating-point types
  int64_t num_nan_reference = 0;
  int64_t num_nan_current = 0;
  int64_t num_inf_reference = 0;
  int64_t num_inf_current = 0;
  // The smallest tolerances that would pass, each with the other one as it was given; infinite where none
  // would.
  double passing_atol = 0;
  double passing_rtol = 0;
  // The mismatches with the largest absolute error, NaN and infinities first.
  std::vector<ElementDifference> worst;
  std::optional<BitDifference> first_bit_difference;

  // Returns true if elements were compared. A text that differs, or a shape, has no elements.
  bool has_figures() const { return Passes(status) || num_mismatched > 0; }
  double mismatched_fraction() const {
    return num_elements == 0 ? 0 : static_cast<double>(num_mismatched) / static_cast<double>(num_elements);
  }
};

// Compares values that may be of different dtypes (as numbers) where compare_dtype is false.
struct TensorCompareOptions {
  Tolerance tolerance;
  int num_worst = 5;
  // False: tensors of different dtypes are compared as numbers, as where one comes from JSON without dtypes.
  bool compare_dtype = true;
  // True: where one side's dtype holds the other's numbers in fewer bits, as bfloat16 does float32's, the
  // other side rounded to it is compared. Equal numbers are then kWithinTolerance, and detail says so.
  // REQUIRES: both are in host memory
  bool accept_rounded = false;
  // 0: as many as the machine has cores. The result is the same, to the last bit.
  int num_threads = 0;
};

// Any strides. Two tensors of one device, without gaps, are compared there. The host gets 16 bytes of each
// 16384 elements, and those blocks in which bits differ or an element is not finite, or all where more than
// half of them are such. cosine_similarity then differs in its last bits. Other tensors in device memory are
// copied. A tensor without elements equals one of its own dtype and shape. What cannot be read is
// kCouldNotCompare.
TensorComparison CompareTensors(const TensorView& reference, const TensorView& current,
                                const TensorCompareOptions& options = {});

// Does the same for tensors that may be in mapped files: pages are dropped once they were compared, so that a
// comparison of any size needs little memory.
TensorComparison CompareTensors(const Tensor& reference, const Tensor& current,
                                const TensorCompareOptions& options = {});

}  // namespace ott

#endif  // OTT_CORE_COMPARE_TENSOR_COMPARISON_H_
