// Makes the names of two checkpoints agree where frameworks name the same thing in other ways.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_CHECKPOINT_NAMES_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_CHECKPOINT_NAMES_H_

#include <string>
#include <vector>

#include "ott/core/tensor/value.h"

namespace ott::compare {

// Names at the top ("state_dict" for "model") unless they agree already, prefixes that all weights have
// ("module.", also one within another), and the numbers by which one side's optimizer goes where the other's
// has names. Appends to *notes what was done.
void AlignNames(Value* reference, Value* current, std::vector<std::string>* notes);

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_CHECKPOINT_NAMES_H_
