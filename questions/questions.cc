#include "ott/questions/questions.h"

#include "ott/questions/faster/faster_question.h"
#include "ott/questions/hang/hang_question.h"
#include "ott/questions/kernels/kernels_question.h"
#include "ott/questions/learning/learning_question.h"
#include "ott/questions/origin/origin_question.h"
#include "ott/questions/right/right_question.h"
#include "ott/questions/saved/saved_question.h"
#include "ott/questions/slow/slow_question.h"
#include "ott/questions/sound/sound_question.h"
#include "ott/questions/waiting/waiting_question.h"

namespace ott {

std::vector<Question> AllQuestions() {
  return {
      slow::SlowQuestion(),       saved::SavedQuestion(),   waiting::WaitingQuestion(),
      hang::HangQuestion(),       sound::SoundQuestion(),   crosscheck::RightQuestion(),
      origin::OriginQuestion(),   faster::FasterQuestion(), learning::LearningQuestion(),
      kernels::KernelsQuestion(),
  };
}

}  // namespace ott
