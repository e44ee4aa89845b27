#include "ott/questions/origin/origin_question.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/origin/origin.h"
#include "ott/questions/origin/origin_answer.h"
#include "ott/questions/origin/origin_command.h"
#include "ott/questions/origin/origin_text.h"

namespace ott::origin {
namespace {

// The operation that made it, what reads its output, and the whole log around it.
Json DrawOrigin(OriginVerdict origin) {
  origin.clear_notes();
  origin.clear_problems();
  return DrawMessage(origin);
}

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  Findings findings;
  // Dumps alone are compared (questions/right).
  if (run.reference.empty() || (!HasOpLogs(run.reference) && HasDumps(run.reference))) return findings;
  const absl::StatusOr<OriginVerdict> origin = FindOrigin(run.reference, run.run_dir, run.perturbed);
  findings.answers = {AnswerOrigin(origin)};
  findings.is_news = true;
  if (!origin.ok()) return findings;
  if (findings.answers[0].finding() == Answer::BAD) {
    AddNext({"compare", run.reference, run.run_dir}, &findings.answers[0]);
  }
  findings.details = {{"How it spreads", FormatOrigin(*origin)}};
  findings.draw = [origin = *origin](const std::vector<int>&, Document* document) {
    if (origin.differences_size() > 0) document->pictures["origin"] = DrawOrigin(origin);
  };
  return findings;
}

}  // namespace

Question OriginQuestion() { return {kQuestion.title, AddOriginCommand, Ask, /*is_about_tensors=*/true}; }

}  // namespace ott::origin
