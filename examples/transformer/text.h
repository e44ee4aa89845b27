// Text as training data: its bytes are the tokens.

#ifndef OTT_EXAMPLES_TRANSFORMER_TEXT_H_
#define OTT_EXAMPLES_TRANSFORMER_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ott::examples {

// ASCII; other bytes become '?'.
inline constexpr int kVocabulary = 128;

// Returns NOT_FOUND, saying where such a text comes from, or INVALID_ARGUMENT for one of fewer than min_bytes
// bytes.
absl::StatusOr<std::string> ReadText(const std::string& path, int64_t min_bytes);

// Sequences of `context` tokens each, and the token that follows each of them.
struct Batch {
  int64_t first_sequence = 0;  // in the batch of all ranks
  int64_t num_sequences = 0;
  std::vector<int32_t> tokens;   // [num_sequences, context]
  std::vector<int32_t> targets;  // [num_sequences, context]
};

// Returns the part [part * batch_size / num_parts, (part + 1) * batch_size / num_parts) of an iteration's
// batch. Which sequences those are depends on the text, seed and iteration alone. REQUIRES: the text is
// longer than context
Batch DrawBatch(const std::string& text, int64_t context, int64_t batch_size, uint64_t seed,
                int64_t iteration, int part, int num_parts);

// Returns a number that looks random, from what it is for (SplitMix64, Steele et al. 2014).
uint64_t Mix(uint64_t seed, uint64_t value);

}  // namespace ott::examples

#endif  // OTT_EXAMPLES_TRANSFORMER_TEXT_H_
