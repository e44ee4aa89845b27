#include "ott/questions/questions.h"

#include "ott/questions/faster/faster_question.h"
#include "ott/questions/hang/hang_question.h"
#include "ott/questions/kernels/kernels_question.h"
#include "ott/questions/learning/learning_question.h"
#include "ott/questions/origin/origin_question.h"
#include "ott/questions/right/right_question.h"
#include "ott/questions/saved/saved_question.h"
#include "ott/questions/slow/slow_question.h"
#include "ott/questions/waiting/waiting_question.h"

namespace ott {

std::vector<Question> AllQuestions() {
  return {
      stats::SlowQuestion(), whatif::SavedQuestion(),      waiting::WaitingQuestion(),
      hang::HangQuestion(),  crosscheck::RightQuestion(),  origin::OriginQuestion(),
      ab::FasterQuestion(),  learning::LearningQuestion(), prof::KernelsQuestion(),
  };
}

}  // namespace ott
