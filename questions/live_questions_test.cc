#include "ott/questions/live_questions.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/questions.h"
#include "ott/questions/saved/gathered_answer.h"
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/slow/slow_answer.h"
#include "ott/questions/waiting/waiting_answer.h"

namespace ott {
namespace {

// While a run goes on, no line says that no measurement was declared collective.
TEST(LiveQuestions, AreAnsweredByWhatWasGathered) {
  const std::vector<std::string> iterations;
  for (const bool has_arrivals : {false, true}) {
    ClusterStats stats;
    stats.set_num_ranks(2);
    if (has_arrivals) stats.add_arrivals()->set_name("sync");
    std::vector<std::string> expected, found;
    for (const Answer& answer : {slow::AnswerSlow(stats), waiting::AnswerWaiting(stats, has_arrivals, true),
                                 saved::AnswerSaved(saved::AnswerGathered(iterations))}) {
      expected.push_back(answer.DebugString());
    }
    for (const Answer& answer : AskLiveQuestions({stats, iterations})) found.push_back(answer.DebugString());
    EXPECT_EQ(found, expected);
  }
}

TEST(Questions, StandInTheOrderOfTheirPage) {
  std::vector<std::string> titles;
  for (const Question& question : AllQuestions()) titles.emplace_back(question.title);
  EXPECT_THAT(titles,
              testing::ElementsAre("Who is slow?", "What would mending it save?", "Who waits for whom?",
                                   "Does it hang?", "Is this step sound?", "Is it still right?",
                                   "Which operation made it?", "Did it become faster?",
                                   "Does it learn as well?", "What do the kernels do?"));
}

}  // namespace
}  // namespace ott
