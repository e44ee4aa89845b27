#include "ott/questions/saved/saved_question.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/saved/run_job.h"
#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/saved/what_if_text.h"
#include "ott/questions/saved/whatif_command.h"

namespace ott::saved {
namespace {

constexpr int kMaxParts = 32;

void AddWhatIf(WhatIfAnswer answer, Document* document) {
  if (answer.verdict() == WHAT_IF_CANNOT_TELL) return;
  answer.clear_notes();
  answer.clear_by_step();
  for (auto* const parts :
       {answer.mutable_repairs(), answer.mutable_by_rank(), answer.mutable_by_operation(),
        answer.mutable_by_stage(), answer.mutable_by_replica(), answer.mutable_by_host()}) {
    KeepFirst(kMaxParts, parts);
  }
  document->pictures["what_if"] = DrawMessage(answer);
}

absl::StatusOr<WhatIfAnswer> AnswerOfRun(const std::string& run_dir, std::vector<std::string>* problems) {
  const absl::StatusOr<ReplayJob> job = ReadRunJob(run_dir);
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
      AddTimeline(*timeline, document);
    }
  };
  return findings;
}

}  // namespace

Question SavedQuestion() {
  Question question = {kQuestion.title, AddWhatIfCommand, Ask};
  question.reads = {"iterations.pb"};
  return question;
}

}  // namespace ott::saved
