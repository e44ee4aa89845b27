#include "ott/questions/sound/sound_answer.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/comm/rank_list.h"

namespace ott::sound {
namespace {

constexpr int kMaxNames = 4;
constexpr int kMaxRanks = 16;

std::string DescribeRanks(const SoundFinding& finding, const SoundVerdict& verdict) {
  if (verdict.num_ranks() == 1) return "";
  if (finding.ranks_size() == verdict.num_ranks())
    return absl::StrCat(" on all ", verdict.num_ranks(), " ranks");
  const auto end = finding.ranks().begin() + std::min(finding.ranks_size(), kMaxRanks);
  std::string ranks = absl::StrJoin(finding.ranks().begin(), end, ", ");
  if (finding.ranks_size() > kMaxRanks)
    absl::StrAppend(&ranks, " and ", finding.ranks_size() - kMaxRanks, " more");
  return absl::StrCat(finding.ranks_size() == 1 ? " on rank " : " on ranks ", ranks);
}

std::string Describe(const SoundFinding& finding, const SoundVerdict& verdict) {
  const auto end = finding.names().begin() + std::min(finding.names_size(), kMaxNames);
  std::string text =
      absl::StrCat(finding.rule(), " since iteration ", finding.iteration(), DescribeRanks(finding, verdict));
  if (!finding.names().empty())
    absl::StrAppend(&text, ": ", absl::StrJoin(finding.names().begin(), end, ", "));
  if (finding.names_size() > kMaxNames)
    absl::StrAppend(&text, " and ", finding.names_size() - kMaxNames, " more");
  if (!finding.place().empty()) absl::StrAppend(&text, ", ", finding.place());
  if (!finding.seen().empty()) absl::StrAppend(&text, ": ", finding.seen());
  return EscapeControlCharacters(text);
}

const SoundRule* FindRule(const SoundVerdict& verdict, const std::string& name) {
  for (const SoundRule& rule : verdict.rules()) {
    if (rule.name() == name) return &rule;
  }
  return nullptr;
}

std::string DescribeRule(const SoundVerdict& verdict, const std::string& name) {
  const SoundRule* const rule = FindRule(verdict, name);
  return absl::StrCat(
      rule == nullptr ? "" : absl::StrCat("  ", rule->must_hold(), "\n  ", rule->advice(), "\n"),
      "  If it is meant: sound { silence: \"", name, "\" } in the configuration.\n");
}

std::string DescribeChecked(const SoundVerdict& verdict) {
  const int64_t checked = std::count_if(verdict.rules().begin(), verdict.rules().end(),
                                        [](const SoundRule& rule) { return rule.num_checks() > 0; });
  return absl::StrCat(checked, checked == 1 ? " rule, " : " rules, ", verdict.num_iterations(),
                      verdict.num_iterations() == 1 ? " iteration" : " iterations", ", ", verdict.num_ranks(),
                      verdict.num_ranks() == 1 ? " rank" : " ranks");
}

std::vector<std::string> DescribeNotChecked(const SoundVerdict& verdict) {
  std::vector<std::string> lines;
  if (!verdict.missing_ranks().empty()) {
    lines.push_back(absl::StrCat(
        "not checked: ", FormatRanks({verdict.missing_ranks().begin(), verdict.missing_ranks().end()}),
        " left no record"));
  }
  for (const SoundRule& rule : verdict.rules()) {
    if (!rule.not_checked().empty())
      lines.push_back(absl::StrCat("not checked: ", rule.name(), ": ", rule.not_checked()));
  }
  if (!verdict.silenced().empty()) {
    lines.push_back(absl::StrCat("silenced: ", absl::StrJoin(verdict.silenced(), ", ")));
  }
  return lines;
}

std::vector<std::string> Sentences(const SoundVerdict& verdict) {
  switch (verdict.kind()) {
    case SoundVerdict::NOT_LOOKED_AT:
      return {"Not looked at: no rank kept a record of it."};
    case SoundVerdict::SOUND:
      return {absl::StrCat("sound in what was checked: ", DescribeChecked(verdict))};
    case SoundVerdict::UNSOUND: {
      std::vector<std::string> sentences;
      for (const SoundFinding& finding : verdict.findings()) sentences.push_back(Describe(finding, verdict));
      return sentences;
    }
    default:
      return {!verdict.missing_ranks().empty() ? "cannot tell: not all ranks left a record"
              : verdict.num_iterations() == 0  ? "cannot tell: no iteration was looked at"
                                               : "cannot tell: no rule was looked at"};
  }
}

Answer::Finding FindingOf(SoundVerdict::Kind kind) {
  switch (kind) {
    case SoundVerdict::SOUND:
      return Answer::GOOD;
    case SoundVerdict::UNSOUND:
      return Answer::BAD;
    case SoundVerdict::NOT_LOOKED_AT:
      return Answer::NOT_ASKED;
    default:
      return Answer::CANNOT_TELL;
  }
}

}  // namespace

Answer AnswerSound(const SoundVerdict& verdict) {
  Answer answer = MakeAnswer(kQuestion);
  answer.set_finding(FindingOf(verdict.kind()));
  AddSentences(Sentences(verdict), &answer);
  if (verdict.kind() == SoundVerdict::NOT_LOOKED_AT) return answer;
  AddSentences(DescribeNotChecked(verdict), &answer);
  answer.set_how_sure(absl::StrCat("by rules that hold in every sound step: ", DescribeChecked(verdict)));
  std::set<int> ranks;
  for (const SoundFinding& finding : verdict.findings()) {
    // A fault of all ranks singles out none of them.
    if (finding.ranks_size() < verdict.num_ranks())
      ranks.insert(finding.ranks().begin(), finding.ranks().end());
  }
  answer.mutable_ranks()->Add(ranks.begin(), ranks.end());
  SetEvidence(verdict, &answer);
  return answer;
}

std::string ToText(const SoundVerdict& verdict) {
  std::string text;
  if (verdict.kind() == SoundVerdict::UNSOUND) {
    std::set<std::string> explained;
    for (const SoundFinding& finding : verdict.findings()) {
      absl::StrAppend(&text, Describe(finding, verdict), "\n");
      if (explained.insert(finding.rule()).second)
        absl::StrAppend(&text, DescribeRule(verdict, finding.rule()));
    }
    absl::StrAppend(&text, "checked: ", DescribeChecked(verdict), "\n");
  } else {
    absl::StrAppend(&text, absl::StrJoin(Sentences(verdict), "\n"), "\n");
  }
  if (verdict.kind() == SoundVerdict::NOT_LOOKED_AT) return text;
  for (const std::string& line : DescribeNotChecked(verdict)) absl::StrAppend(&text, line, "\n");
  return text;
}

}  // namespace ott::sound
