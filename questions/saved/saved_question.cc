#include "ott/questions/saved/saved_question.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/questions/answer/display_text.h"
#include "ott/questions/saved/run_job.h"
#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/saved/what_if_text.h"
#include "ott/questions/saved/whatif_command.h"

namespace ott::whatif {
namespace {

constexpr int kMaxParts = 32;

Json Parts(const google::protobuf::RepeatedPtrField<WhatIfPart>& parts) {
  Json array = Json::array();
  for (const WhatIfPart& part : parts) {
    if (static_cast<int>(array.size()) == kMaxParts) break;
    array.push_back({{"name", DisplayName(part.name())},
                     {"seconds", Rounded(part.seconds())},
                     {"saved", Rounded(part.saved())},
                     {"low", Rounded(part.saved_low())},
                     {"high", Rounded(part.saved_high())},
                     {"slowdown", part.has_slowdown() ? Json(Rounded(part.slowdown())) : Json()}});
  }
  return array;
}

void AddWhatIf(const WhatIfAnswer& answer, Document* document) {
  if (answer.verdict() == WHAT_IF_CANNOT_TELL) return;
  google::protobuf::RepeatedPtrField<WhatIfPart> more;
  if (answer.has_best_repairs_together()) *more.Add() = answer.best_repairs_together();
  if (answer.has_communication_overlapped()) *more.Add() = answer.communication_overlapped();
  document->pictures["what_if"] = {{"step_word", DisplayName(answer.step_word())},
                                   {"measured_seconds", Rounded(answer.measured_seconds())},
                                   {"ideal_seconds", Rounded(answer.ideal_seconds())},
                                   {"replay_error", Rounded(answer.replay_error())},
                                   {"repairs", Parts(answer.repairs())},
                                   {"together", Parts(more)},
                                   {"by_rank", Parts(answer.by_rank())},
                                   {"by_operation", Parts(answer.by_operation())}};
}

absl::StatusOr<WhatIfAnswer> AnswerOfRun(const std::string& run_dir, std::vector<std::string>* problems) {
  const absl::StatusOr<Job> job = ReadRunJob(run_dir);
  if (!job.ok()) {
    if (!absl::IsNotFound(job.status())) problems->push_back(std::string(job.status().message()));
    return job.status();
  }
  if (job->incomplete) problems->push_back(absl::StrCat("what would be saved: ", job->notes.front()));
  return AnswerWhatIf(*job);
}

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  Findings findings;
  const absl::StatusOr<WhatIfAnswer> what_if = AnswerOfRun(run.run_dir, &findings.problems);
  findings.answers = {AnswerSaved(what_if)};
  AddNextOf(run.run_dir, &findings.answers[0]);
  if (what_if.ok()) findings.details = {{"What would be saved", FormatWhatIf(*what_if)}};
  findings.draw = [what_if, run_dir = run.run_dir](const std::vector<int>& named, Document* document) {
    if (what_if.ok()) AddWhatIf(*what_if, document);
    if (const auto timeline = ReadSampledTimeline(run_dir, named); timeline.ok()) {
      AddTimeline(*timeline, "iteration", document);
    }
  };
  return findings;
}

}  // namespace

Question SavedQuestion() { return {kQuestion.title, AddWhatIfCommand, Ask}; }

}  // namespace ott::whatif
