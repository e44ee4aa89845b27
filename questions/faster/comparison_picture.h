// Draws the findings of `ott ab` as a picture, and as a document of its own.

#ifndef OTT_QUESTIONS_FASTER_COMPARISON_PICTURE_H_
#define OTT_QUESTIONS_FASTER_COMPARISON_PICTURE_H_

#include <string>

#include "ott/questions/answer/document.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/faster_answer.h"

namespace ott::faster {

// Returns the picture "comparison".
Json DrawComparison(const Comparison& comparison, const SideNames& names);

// Makes the document of `ott ab`. subject: one line about what was compared.
Document DocumentOf(const Comparison& comparison, const std::string& subject);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_COMPARISON_PICTURE_H_
