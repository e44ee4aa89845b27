// The fields of comparisons, which travel between processes.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_COMPARISON_FIELDS_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_COMPARISON_FIELDS_H_

#include "ott/core/compare/compare.h"
#include "ott/dist/share/archive.h"

namespace ott {

template <typename Archive>
void Fields(Archive& archive, Tolerance& tolerance) {
  archive(tolerance.atol, tolerance.rtol, tolerance.nan_equal, tolerance.bitwise);
}

template <typename Archive>
void Fields(Archive& archive, PathTolerance& tolerance) {
  archive(tolerance.glob, tolerance.tolerance);
}

// num_threads: the process's.
template <typename Archive>
void Fields(Archive& archive, TensorCompareOptions& options) {
  archive(options.tolerance, options.num_worst, options.compare_dtype, options.accept_rounded);
}

template <typename Archive>
void Fields(Archive& archive, CompareOptions& options) {
  archive(options.tensors, options.path_tolerances, options.default_tolerances, options.allow_extra,
          options.allow_missing, options.compare_order, options.allow_empty);
}

template <typename Archive>
void Fields(Archive& archive, ElementDifference& difference) {
  archive(difference.position, difference.index, difference.reference, difference.current,
          difference.abs_error, difference.difference, difference.reference_text, difference.current_text);
}

template <typename Archive>
void Fields(Archive& archive, BitDifference& difference) {
  archive(difference.element, difference.flipped_bits, difference.ulp_distance);
}

template <typename Archive>
void Fields(Archive& archive, ErrorAt& error) {
  archive(error.error, error.position, error.index);
}

template <typename Archive>
void Fields(Archive& archive, TensorComparison& comparison) {
  archive(comparison.status, comparison.detail, comparison.rounded, comparison.tolerance, comparison.dtype,
          comparison.shape, comparison.num_elements, comparison.num_mismatched, comparison.num_bits_differ,
          comparison.max_abs_error, comparison.max_rel_error, comparison.mean_abs_error,
          comparison.root_mean_square_error, comparison.cosine_similarity, comparison.max_ulp_distance,
          comparison.num_nan_reference, comparison.num_nan_current, comparison.num_inf_reference,
          comparison.num_inf_current, comparison.passing_atol, comparison.passing_rtol, comparison.worst,
          comparison.first_bit_difference);
}

template <typename Archive>
void Fields(Archive& archive, NamedComparison& named) {
  archive(named.path, named.comparison);
}

template <typename Archive>
void Fields(Archive& archive, TreeComparison& comparison) {
  archive(comparison.results, comparison.agree_without_elements);
}

}  // namespace ott

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_COMPARISON_FIELDS_H_
