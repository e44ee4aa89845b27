#include "ott/questions/origin/origin_question.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ott/questions/answer/display_text.h"
#include "ott/questions/origin/origin.h"
#include "ott/questions/origin/origin_answer.h"
#include "ott/questions/origin/origin_command.h"
#include "ott/questions/origin/origin_text.h"

namespace ott::origin {
namespace {

constexpr int kMaxListedRanks = 16;

// The operation that made it, what reads its output, and the whole log around it.
Json DrawOrigin(const OriginVerdict& origin) {
  Json spread = Json::array();
  for (const OriginSpread& step : origin.spread()) {
    spread.push_back({{"iteration", step.iteration()},
                      {"operation", DisplayName(step.operation())},
                      {"module", DisplayName(step.module())},
                      {"parent", step.parent()},
                      {"depth", step.depth()},
                      {"input_difference", Rounded(step.input_difference())},
                      {"difference", Rounded(step.relative_difference())}});
  }
  Json differences = Json::array();
  for (const double difference : origin.differences()) differences.push_back(Rounded(difference, 3));
  return {
      {"reference", DisplayName(origin.reference())},
      {"perturbed", DisplayName(origin.perturbed())},
      {"kind", OriginVerdict::Kind_Name(origin.kind())},
      {"iteration", origin.iteration()},
      {"ranks", std::vector<int>(origin.ranks().begin(),
                                 origin.ranks().begin() + std::min(origin.ranks_size(), kMaxListedRanks))},
      {"num_ranks", origin.ranks_size()},
      {"world_size", origin.world_size()},
      {"operation", DisplayName(origin.operation())},
      {"module", DisplayName(origin.module())},
      {"source", DisplayName(origin.source())},
      {"tensor", DisplayName(origin.tensor())},
      {"input_difference", Rounded(origin.input_difference())},
      {"difference", Rounded(origin.relative_difference())},
      {"explained", Rounded(origin.explained())},
      {"estimated", origin.estimated()},
      {"num_differ_after", origin.num_differ_after()},
      {"num_swallow_after", origin.num_swallow_after()},
      {"spread", std::move(spread)},
      {"log", std::move(differences)},
      {"origin_part", origin.origin_part()}};
}

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  Findings findings;
  if (run.reference.empty()) return findings;
  const absl::StatusOr<OriginVerdict> origin = FindOrigin(run.reference, run.run_dir, run.perturbed);
  findings.answers = {AnswerOrigin(origin)};
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
