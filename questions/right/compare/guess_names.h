// Guesses which tensors of two checkpoints go together, where their names do not say it.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_GUESS_NAMES_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_GUESS_NAMES_H_

#include <optional>
#include <string>

#include "ott/core/tensor/value.h"
#include "ott/questions/right/layout/layout.pb.h"

namespace ott::compare {

struct GuessedNames {
  // Rules that give each tensor of the current (b) the name of one of the reference, layers by a pattern.
  // What has no partner has no rule.
  Layout names;
  // Says how many went together by what: "12 by equal elements, 3 by shape and order".
  std::string by;
};

// Pairs names that are the same; then tensors of at least two elements that are equal bit for bit, or
// transposed, and like no other; then what the names around a pair say; then what has the same shape, in
// order. Equal elements alone can pair layers that were swapped, so that a comparison by a guess is no pass.
GuessedNames GuessNames(const Value& reference, const Value& current);

// Returns a text that equal tensors of a dtype and shape have in common; nullopt if they cannot be read.
std::optional<std::string> DigestOf(const Tensor& tensor);

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_GUESS_NAMES_H_
