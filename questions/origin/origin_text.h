// Origins for people.

#ifndef OTT_QUESTIONS_ORIGIN_ORIGIN_TEXT_H_
#define OTT_QUESTIONS_ORIGIN_ORIGIN_TEXT_H_

#include <string>

#include "ott/questions/origin/origin.pb.h"

namespace ott::origin {

// Returns "iteration 12, on rank 1 alone, forward: layernorm (layer 3), model.cc:210: inputs equal bit for
// bit; output differs: ...", from the other fields. One line, without a newline.
std::string FormatSentence(const OriginVerdict& verdict);

// Returns the sentence, how it spreads as a tree, what was compared, and what is missing. Ends with a
// newline.
std::string FormatOrigin(const OriginVerdict& verdict);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ORIGIN_TEXT_H_
