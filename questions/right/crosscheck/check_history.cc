#include "ott/questions/right/crosscheck/check_history.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::crosscheck {
namespace {

// Keeps the ranks' verdicts in one iteration.
struct RanksVerdicts {
  // The verdict on a reference that comes first.
  CrossCheckVerdict first;
  // The worst that a rank found or heard of.
  CrossCheckVerdict worst;
};
// The verdicts of one mode.
struct Verdicts {
  std::map<int64_t, RanksVerdicts> by_iteration;
  double max_abs_error = 0;  // on any rank
};
struct VerdictsByMode {
  Verdicts replicas;
  Verdicts reference;
  Verdicts distinct;
};

// Orders by the severity over all ranks, as far as this rank heard of them, then by that of this rank.
std::pair<int, int> Severity(const CrossCheckVerdict& verdict) {
  return {SeverityOf(OutcomeOfAllRanks(verdict)), SeverityOf(verdict.outcome())};
}

void Keep(CrossCheckVerdict verdict, Verdicts& verdicts) {
  verdicts.max_abs_error = std::max(verdicts.max_abs_error, verdict.max_abs_error());
  verdict.clear_tensor_errors();
  const auto [position, is_new] = verdicts.by_iteration.try_emplace(verdict.iteration());
  RanksVerdicts& kept = position->second;
  if (verdict.mode() == REFERENCE) AddToFirst(verdict, kept.first);
  if (is_new || Severity(verdict) > Severity(kept.worst)) kept.worst = std::move(verdict);
}

// Prefers what a rank found to what another heard of it.
CrossCheckVerdict& Choose(RanksVerdicts& kept) {
  const bool found = SeverityOf(kept.first.outcome()) == SeverityOf(OutcomeOfAllRanks(kept.worst));
  return kept.first.num_ranks() > 0 && found ? kept.first : kept.worst;
}

// Describes the verdicts for which there was no room; empty if there was for all.
std::string DescribeOmitted(const std::string& path) {
  if (!PathExists(path)) return "";
  const absl::StatusOr<std::string> json = ReadFile(path, 1 << 20);
  if (!json.ok()) return std::string(json.status().message());
  OmittedVerdicts omitted;
  if (const absl::Status status = JsonToProto(*json, &omitted); !status.ok()) {
    return absl::StrCat(path, ": ", std::string(status.message()));
  }
  return absl::StrCat("cross_check.jsonl was full; from iteration ", omitted.first_iteration(), " on ",
                      omitted.num_checks(), " checks are only counted, of which ", omitted.num_different(),
                      " DIFFER and ", omitted.num_not_compared(), " are NOT COMPARED");
}

// Lines of cross_check.jsonl. The last one of a killed rank may be cut. Returns the last iteration that was
// checked; -1: none.
int64_t ReadVerdicts(const std::string& path, std::string_view lines, VerdictsByMode& by_mode,
                     CheckHistories& histories) {
  int64_t last_iteration = -1;
  int line_number = 0;
  bool is_unknown_said = false;
  while (!lines.empty()) {
    ++line_number;
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    std::string unknown;
    absl::StatusOr<CrossCheckVerdict> verdict = ParseVerdict(line, &unknown);
    // Each line is of the same version.
    if (verdict.ok() && !unknown.empty() && !is_unknown_said) {
      histories.problems.push_back(absl::StrCat("of another version: ", path, ": ", unknown));
      is_unknown_said = true;
    }
    if (!verdict.ok()) {
      histories.problems.push_back(
          absl::StrCat(path, ": line ", line_number, ": ", verdict.status().message()));
    } else {
      Verdicts& verdicts = verdict->mode() == REFERENCE  ? by_mode.reference
                           : verdict->mode() == DISTINCT ? by_mode.distinct
                                                         : by_mode.replicas;
      if (verdict->mode() == REFERENCE) histories.error_trend.Add(*verdict);
      last_iteration = std::max(last_iteration, verdict->iteration());
      Keep(*std::move(verdict), verdicts);
    }
  }
  return last_iteration;
}

// Ranks whose verdicts end before those of others. In a run that goes on, some are a check behind.
void AddVerdictsThatEndEarly(const std::map<int64_t, std::vector<int>>& ranks_by_last_iteration,
                             const VerdictsByMode& by_mode, std::vector<std::string>& problems) {
  std::set<int64_t> iterations;
  for (const Verdicts* const verdicts : {&by_mode.replicas, &by_mode.reference, &by_mode.distinct}) {
    for (const auto& [iteration, unused] : verdicts->by_iteration) iterations.insert(iteration);
  }
  if (iterations.size() < 2) return;
  for (const auto& [iteration, ranks] : ranks_by_last_iteration) {
    if (iteration >= *std::next(iterations.rbegin())) break;
    problems.push_back(
        absl::StrCat("verdicts of ", FormatRanks(ranks), " end ",
                     iteration < 0 ? "before the first" : absl::StrCat("at iteration ", iteration),
                     ", those of others at ", *iterations.rbegin()));
  }
}

absl::StatusOr<CheckHistory> Summarize(Verdicts verdicts) {
  CheckHistory history;
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<VerdictLog> log, VerdictLog::Open(""));
  for (auto& [iteration, kept] : verdicts.by_iteration) {
    history.verdicts.push_back(std::move(Choose(kept)));
    OTT_RETURN_IF_ERROR(log->Add(history.verdicts.back()));
  }
  history.summary = log->replicas().num_checks > 0   ? log->replicas()
                    : log->distinct().num_checks > 0 ? log->distinct()
                                                     : log->reference();
  history.summary.max_abs_error = verdicts.max_abs_error;
  return history;
}

Answer AnswerHistory(const QuestionId& question, const CheckHistory& checks, const char* if_not_checked) {
  Answer answer = MakeAnswer(question);
  if (checks.verdicts.empty()) {
    answer.add_sentences(if_not_checked);
    return answer;
  }
  answer.set_finding(checks.summary.passed() ? Answer::GOOD : Answer::CANNOT_TELL);
  answer.add_sentences(FormatSummary(question.id, checks.summary));
  SetEvidence(checks.verdicts.back(), &answer);
  if (const CrossCheckVerdict* const first = checks.first_divergence()) {
    answer.set_finding(Answer::BAD);
    std::vector<std::string> sentences = VerdictLines(*first);
    sentences.front().insert(0, "first: ");
    AddSentences(sentences, &answer);
    SetEvidence(*first, &answer);
  }
  const int64_t first = checks.verdicts.front().iteration();
  const int64_t last = checks.verdicts.back().iteration();
  answer.set_how_sure(absl::StrCat(checks.verdicts.size(), checks.verdicts.size() == 1 ? " check" : " checks",
                                   first == last ? absl::StrCat(" at iteration ", first)
                                                 : absl::StrCat(" from iteration ", first, " to ", last)));
  answer.add_pictures("checks");
  return answer;
}

}  // namespace

const CrossCheckVerdict* CheckHistory::first_divergence() const {
  const auto first = std::find_if(verdicts.begin(), verdicts.end(), [](const CrossCheckVerdict& verdict) {
    return OutcomeOfAllRanks(verdict) == DIFFERENT;
  });
  return first == verdicts.end() ? nullptr : &*first;
}

absl::StatusOr<CheckHistories> ReadCheckHistories(const std::string& run_dir, const std::vector<int>& ranks,
                                                  const std::optional<RunInfo>& info) {
  CheckHistories histories;
  VerdictsByMode by_mode;
  std::vector<int> ranks_with_verdicts;
  std::map<int64_t, std::vector<int>> ranks_by_last_iteration;
  for (const int rank : ranks) {
    const std::string path = RankDirectory(run_dir, rank) + "/cross_check.jsonl";
    if (!PathExists(path)) continue;
    ranks_with_verdicts.push_back(rank);
    if (const std::string omitted = DescribeOmitted(OmittedVerdictsPath(path)); !omitted.empty()) {
      histories.problems.push_back(absl::StrCat("rank ", rank, ": ", omitted));
    }
    if (const absl::StatusOr<std::string> lines = ReadFile(path); lines.ok()) {
      ranks_by_last_iteration[ReadVerdicts(path, *lines, by_mode, histories)].push_back(rank);
    } else {
      histories.problems.push_back(std::string(lines.status().message()));
    }
  }
  const int world_size = info ? info->world_size() : static_cast<int>(ranks.size());
  const bool wants_verdicts =
      info ? info->config().has_cross_check() : !by_mode.replicas.by_iteration.empty();
  if (wants_verdicts && static_cast<int>(ranks_with_verdicts.size()) < world_size) {
    histories.problems.push_back(absl::StrCat("verdicts of ", ranks_with_verdicts.size(), " of ", world_size,
                                              " ranks, those of ", FormatRanks(ranks_with_verdicts)));
  }
  AddVerdictsThatEndEarly(ranks_by_last_iteration, by_mode, histories.problems);
  OTT_ASSIGN_OR_RETURN(histories.replicas, Summarize(std::move(by_mode.replicas)));
  OTT_ASSIGN_OR_RETURN(histories.reference, Summarize(std::move(by_mode.reference)));
  OTT_ASSIGN_OR_RETURN(histories.distinct, Summarize(std::move(by_mode.distinct)));
  return histories;
}

std::vector<std::pair<std::string, const CheckHistory*>> NamedHistories(const CheckHistories& histories) {
  return {{kReplicasQuestion.id, &histories.replicas},
          {kReferenceQuestion.id, &histories.reference},
          {kDistinctQuestion.id, &histories.distinct}};
}

Answer::Finding FindingOfOutcome(Outcome outcome) {
  switch (outcome) {
    case BITWISE_EQUAL:
    case WITHIN_TOLERANCE:
    case ALL_DISTINCT:
      return Answer::GOOD;
    case DIFFERENT:
      return Answer::BAD;
    default:
      return Answer::CANNOT_TELL;
  }
}

Answer AnswerReplicas(const CheckHistories& histories) {
  Answer answer = AnswerHistory(kReplicasQuestion, histories.replicas,
                                "Not checked while it ran; `ott crosscheck RUN` checks its dumps.");
  if (!histories.replicas.verdicts.empty()) {
    absl::StrAppend(answer.mutable_how_sure(), ", by 128-bit digests of every tensor that is compared");
  }
  return answer;
}

Answer AnswerReference(const CheckHistories& histories) {
  Answer answer =
      AnswerHistory(kReferenceQuestion, histories.reference,
                    "Not checked while it ran; `ott compare REFERENCE RUN` compares the dumps of both.");
  if (histories.reference.verdicts.empty()) return answer;
  const CrossCheckVerdict& last = histories.reference.verdicts.back();
  absl::StrAppendFormat(answer.mutable_how_sure(), ", of every element, within atol %g and rtol %g",
                        last.atol(), last.rtol());
  if (histories.error_trend.num_tensors() > 0) answer.add_pictures("errors");
  return answer;
}

Answer AnswerDistinct(const CheckHistories& histories) {
  return AnswerHistory(kDistinctQuestion, histories.distinct, "Not checked while it ran.");
}

}  // namespace ott::crosscheck
