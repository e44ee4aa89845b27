// Is this step sound? The verdict as an answer.

#ifndef OTT_QUESTIONS_SOUND_SOUND_ANSWER_H_
#define OTT_QUESTIONS_SOUND_SOUND_ANSWER_H_

#include <string>

#include "ott/questions/answer/answer.h"
#include "ott/questions/sound/sound.pb.h"

namespace ott::sound {

inline constexpr QuestionId kQuestion = {"sound", "Is this step sound?", "check"};

// UNSOUND is bad. What was not checked is said, and never counted as sound.
Answer AnswerSound(const SoundVerdict& verdict);

// Each finding with what must hold, what was seen and what to do, then what was not checked; ends with a
// newline.
std::string ToText(const SoundVerdict& verdict);

}  // namespace ott::sound

#endif  // OTT_QUESTIONS_SOUND_SOUND_ANSWER_H_
