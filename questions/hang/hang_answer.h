// Does it hang? The verdict on a hang as an answer.

#ifndef OTT_QUESTIONS_HANG_HANG_ANSWER_H_
#define OTT_QUESTIONS_HANG_HANG_ANSWER_H_

#include <optional>
#include <string>

#include "ott/questions/answer/answer.h"
#include "ott/questions/hang/hang.pb.h"

namespace ott::hang {

inline constexpr QuestionId kQuestion = {"hang", "Does it hang?", "hang"};

// now: what the flight recorders say; nullopt if no rank kept one. earlier: what a rank found while the job
// stood.
Answer AnswerHang(const std::optional<HangVerdict>& now, const std::optional<HangVerdict>& earlier);

// Says where ranks to blame stand in the program, where an observed training left it in
// RUN/rank_NNNNN/stacks.txt.
void AddStacksOf(const std::string& run_dir, Answer* answer);

// Says what to run next about this run.
void AddNextOf(const std::string& run_dir, Answer* answer);

}  // namespace ott::hang

#endif  // OTT_QUESTIONS_HANG_HANG_ANSWER_H_
