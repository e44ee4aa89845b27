// Finds the elements of two sequences that correspond, where some were inserted, removed or replaced.

#ifndef OTT_QUESTIONS_ORIGIN_SEQUENCE_ALIGNMENT_H_
#define OTT_QUESTIONS_ORIGIN_SEQUENCE_ALIGNMENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace ott::origin {

// Pairs (index in a, index in b) of equal elements, ascending in both: a longest common subsequence (Myers
// 1986) as long as few elements are in one sequence only; else the n-th element of a value in one sequence
// corresponds to the n-th in the other, as far as these pairs keep their order. Ends that are alike are
// paired first.
std::vector<std::pair<uint32_t, uint32_t>> AlignSequences(absl::Span<const uint32_t> a,
                                                          absl::Span<const uint32_t> b,
                                                          bool from_end = false);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_SEQUENCE_ALIGNMENT_H_
