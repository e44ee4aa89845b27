#include "ott/questions/live_questions.h"

#include "ott/questions/saved/gathered_answer.h"
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/slow/slow_answer.h"
#include "ott/questions/waiting/waiting_answer.h"

namespace ott {
namespace {

using LiveQuestion = Answer (*)(const GatheredRun& run);

constexpr LiveQuestion kLiveQuestions[] = {
    [](const GatheredRun& run) { return slow::AnswerSlow(run.stats); },
    [](const GatheredRun& run) {
      return waiting::AnswerWaiting(run.stats, /*has_collectives=*/!run.stats.arrivals().empty(),
                                    /*was_gathered=*/true);
    },
    [](const GatheredRun& run) { return saved::AnswerSaved(saved::AnswerGathered(run.iterations)); },
};

}  // namespace

std::vector<Answer> AskLiveQuestions(const GatheredRun& run) {
  std::vector<Answer> answers;
  for (const LiveQuestion ask : kLiveQuestions) answers.push_back(ask(run));
  return answers;
}

}  // namespace ott
