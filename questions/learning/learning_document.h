// The page of `ott curves`.

#ifndef OTT_QUESTIONS_LEARNING_LEARNING_DOCUMENT_H_
#define OTT_QUESTIONS_LEARNING_LEARNING_DOCUMENT_H_

#include <string>

#include "ott/questions/answer/document.h"
#include "ott/questions/learning/learning.pb.h"

namespace ott::learning {

// subject: one line about what was compared.
Document DocumentOf(const LearningVerdict& verdict, const std::string& subject);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_LEARNING_DOCUMENT_H_
