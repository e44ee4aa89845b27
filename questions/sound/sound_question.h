// `ott check` in the list of questions.

#ifndef OTT_QUESTIONS_SOUND_SOUND_QUESTION_H_
#define OTT_QUESTIONS_SOUND_SOUND_QUESTION_H_

#include "ott/questions/answer/question.h"

namespace ott::sound {

Question SoundQuestion();

}  // namespace ott::sound

#endif  // OTT_QUESTIONS_SOUND_SOUND_QUESTION_H_
