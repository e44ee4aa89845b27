// What `ott ab` found as a picture, and as a document of its own.

#ifndef OTT_QUESTIONS_FASTER_COMPARISON_PICTURE_H_
#define OTT_QUESTIONS_FASTER_COMPARISON_PICTURE_H_

#include <string>

#include "ott/questions/answer/document.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/faster_answer.h"

namespace ott::ab {

// The picture "comparison".
Json DrawComparison(const Comparison& comparison, const SideNames& names);

// What `ott ab` found. subject: one line about what was compared.
Document DocumentOf(const Comparison& comparison, const std::string& subject);

}  // namespace ott::ab

#endif  // OTT_QUESTIONS_FASTER_COMPARISON_PICTURE_H_
