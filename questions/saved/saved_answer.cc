#include "ott/questions/saved/saved_answer.h"

#include <string>

#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/saved/what_if_text.h"

namespace ott::saved {
namespace {

Answer::Finding FindingOfReplay(const WhatIfAnswer& what_if) {
  if (what_if.verdict() == WHAT_IF_CANNOT_TELL || what_if.incomplete()) return Answer::CANNOT_TELL;
  if (what_if.verdict() == WHAT_IF_UNEVEN && what_if.has_not_excluded()) {
    // The machine makes ranks uneven that do the same: what counts is whether mending one of them would help.
    return what_if.not_excluded() < kMaxNotExcluded ? Answer::GOOD : Answer::CANNOT_TELL;
  }
  return what_if.verdict() == WHAT_IF_EVEN ? Answer::GOOD : Answer::BAD;
}

}  // namespace

Answer AnswerSaved(const absl::StatusOr<WhatIfAnswer>& what_if) {
  Answer answer = MakeAnswer(kQuestion);
  if (!what_if.ok()) {
    if (!absl::IsNotFound(what_if.status())) answer.set_finding(Answer::CANNOT_TELL);
    answer.add_sentences(EscapeControlCharacters(std::string(what_if.status().message())));
    return answer;
  }
  answer.set_finding(FindingOfReplay(*what_if));
  answer.add_sentences(FormatWhatIfLine(*what_if));
  if (what_if->has_best_repairs_together()) {
    answer.add_sentences(FormatRepair(what_if->best_repairs_together(), *what_if));
  }
  answer.set_how_sure(
      absl::StrFormat("a replay of %d %ss of %d ranks, which is off by %.2f %% of what was measured (limit "
                      "%.0f %%)",
                      what_if->num_steps(), EscapeControlCharacters(what_if->step_word()),
                      what_if->num_ranks(), what_if->replay_error() * 100, kMaxReplayError * 100));
  SetEvidence(*what_if, &answer);
  *answer.mutable_ranks() = what_if->blamed_ranks();
  answer.add_pictures("what_if");
  return answer;
}

void AddNextOf(const std::string& run, Answer* answer) {
  if (answer->finding() == Answer::BAD) AddNext({"whatif", run, "--timeline", "ideal.json"}, answer);
}

}  // namespace ott::saved
