#include "ott/questions/sound/sound.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::sound {
namespace {

constexpr int64_t kMaxRecordBytes = int64_t{256} << 20;

// The values of one fact, by rank and iteration.
struct JoinedFact {
  SoundFact fact;
  std::map<int, std::map<int64_t, std::string>> values;
};

std::string Shown(std::string_view value) { return std::string(value.substr(0, value.find('#'))); }

// The iterations of which all ranks have a value, ascending.
std::vector<int64_t> CommonIterations(const JoinedFact& joined) {
  std::vector<int64_t> common;
  for (const auto& [iteration, value] : joined.values.begin()->second) {
    const bool is_common =
        std::all_of(joined.values.begin(), joined.values.end(),
                    [&, at = iteration](const auto& rank) { return rank.second.count(at) > 0; });
    if (is_common) common.push_back(iteration);
  }
  return common;
}

std::string NameRanks(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "));
}

// Says what each rank has. Of lists, that is the parts in which ranks differ.
std::vector<std::string> JoinRanksByValue(const std::map<std::string, std::vector<int>>& ranks_by_value) {
  std::vector<std::vector<std::string>> lists;
  std::vector<std::set<std::string>> variants;
  for (const auto& [value, unused_ranks] : ranks_by_value) {
    const std::vector<std::string>& list = lists.emplace_back(absl::StrSplit(Shown(value), ", "));
    variants.resize(std::max(variants.size(), list.size()));
    for (size_t i = 0; i < list.size(); ++i) variants[i].insert(list[i]);
  }
  const bool is_alike = std::all_of(lists.begin(), lists.end(), [&](const std::vector<std::string>& list) {
    return list.size() == variants.size();
  });
  const bool differs = std::any_of(variants.begin(), variants.end(),
                                   [](const std::set<std::string>& part) { return part.size() > 1; });
  std::vector<std::string> parts;
  auto list = lists.begin();
  for (const auto& [unused_value, ranks] : ranks_by_value) {
    std::vector<std::string> shown;
    for (size_t i = 0; i < list->size(); ++i) {
      if (!is_alike || !differs || variants[i].size() > 1) shown.push_back((*list)[i]);
    }
    ++list;
    parts.push_back(absl::StrCat(NameRanks(ranks), ": ", absl::StrJoin(shown, ", ")));
  }
  return parts;
}

SoundFinding MakeFinding(const JoinedFact& joined, int64_t iteration) {
  SoundFinding finding;
  finding.set_rule(joined.fact.rule());
  finding.set_iteration(iteration);
  finding.add_names(joined.fact.name());
  return finding;
}

// Names the ranks that are not with the majority, or all where there is none, and what each has.
void AddMinority(const std::map<std::string, std::vector<int>>& ranks_by_value, const std::string& after,
                 SoundFinding* finding) {
  size_t num_ranks = 0;
  for (const auto& [value, ranks] : ranks_by_value) num_ranks += ranks.size();
  const auto largest =
      std::max_element(ranks_by_value.begin(), ranks_by_value.end(),
                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  const bool has_majority = 2 * largest->second.size() > num_ranks;
  for (const auto& [value, ranks] : ranks_by_value) {
    if (has_majority && value == largest->first) continue;
    finding->mutable_ranks()->Add(ranks.begin(), ranks.end());
  }
  std::sort(finding->mutable_ranks()->begin(), finding->mutable_ranks()->end());
  finding->set_seen(absl::StrCat(absl::StrJoin(JoinRanksByValue(ranks_by_value), "; "), after,
                                 has_majority ? "" : " (no majority: none of them is to blame by itself)"));
}

// The first iteration in which ranks differ.
std::optional<SoundFinding> FindDifference(const JoinedFact& joined) {
  int64_t before = -1;
  for (const int64_t iteration : CommonIterations(joined)) {
    std::map<std::string, std::vector<int>> ranks_by_value;
    for (const auto& [rank, values] : joined.values) ranks_by_value[values.at(iteration)].push_back(rank);
    if (ranks_by_value.size() > 1) {
      SoundFinding finding = MakeFinding(joined, iteration);
      AddMinority(ranks_by_value, "", &finding);
      if (before >= 0 && iteration > before + 1)
        finding.mutable_seen()->append(absl::StrCat("; looked at last in iteration ", before));
      return finding;
    }
    before = iteration;
  }
  return std::nullopt;
}

// The first iteration in which ranks have other results of the same.
std::optional<SoundFinding> FindOtherResult(const JoinedFact& joined) {
  for (const int64_t iteration : CommonIterations(joined)) {
    std::map<std::string, std::map<std::string, std::vector<int>>> by_given;
    for (const auto& [rank, values] : joined.values) {
      const std::pair<std::string, std::string> value =
          absl::StrSplit(values.at(iteration), absl::MaxSplits(' ', 1));
      if (!value.first.empty()) by_given[value.first][value.second].push_back(rank);
    }
    for (const auto& [given, ranks_by_result] : by_given) {
      if (ranks_by_result.size() < 2) continue;
      SoundFinding finding = MakeFinding(joined, iteration);
      AddMinority(ranks_by_result, ", of the same", &finding);
      return finding;
    }
  }
  return std::nullopt;
}

// The first iteration in which ranks did not get the sum of what all gave.
std::optional<SoundFinding> FindWrongSum(const JoinedFact& joined) {
  if (joined.values.size() < static_cast<size_t>(joined.fact.group_size())) return std::nullopt;
  for (const int64_t iteration : CommonIterations(joined)) {
    double given = 0;
    double error = 0;
    std::map<int, double> got_by_rank;
    std::set<std::string> calls;
    for (const auto& [rank, values] : joined.values) {
      const std::vector<std::string> parts = absl::StrSplit(values.at(iteration), ' ');
      double of_rank[3] = {};
      if (parts.size() != 4) return std::nullopt;
      calls.insert(parts[3]);
      for (int i = 0; i < 3; ++i) {
        if (!absl::SimpleAtod(parts[i], &of_rank[i]) || !std::isfinite(of_rank[i])) return std::nullopt;
      }
      given += of_rank[0];
      got_by_rank[rank] = of_rank[1];
      error += of_rank[2];
    }
    if (calls.size() > 1) continue;
    SoundFinding finding = MakeFinding(joined, iteration);
    std::vector<std::string> seen;
    for (const auto& [rank, got] : got_by_rank) {
      if (std::abs(got - given) <= error) continue;
      finding.add_ranks(rank);
      seen.push_back(absl::StrCat("rank ", rank, " got ", got));
    }
    if (finding.ranks().empty()) continue;
    finding.set_seen(
        absl::StrCat(absl::StrJoin(seen, ", "), "; all gave ", given, ", as a weighted sum of elements"));
    return finding;
  }
  return std::nullopt;
}

// Finds ranks that had the same in two iterations in a row, while it changed from one to the other: all
// groups of them, each where its ranks first had it together.
std::vector<SoundFinding> FindSame(const JoinedFact& joined) {
  const std::vector<int64_t> common = CommonIterations(joined);
  std::vector<SoundFinding> findings;
  std::vector<std::vector<int>> known;
  for (size_t i = 0; i + 1 < common.size(); ++i) {
    std::map<std::pair<std::string, std::string>, std::vector<int>> ranks_by_values;
    for (const auto& [rank, values] : joined.values) {
      const std::string& first = values.at(common[i]);
      const std::string& second = values.at(common[i + 1]);
      if (!first.empty() && first != second) ranks_by_values[{first, second}].push_back(rank);
    }
    for (const auto& [values, ranks] : ranks_by_values) {
      const bool is_known = std::any_of(known.begin(), known.end(), [&ranks = ranks](const auto& group) {
        return std::includes(group.begin(), group.end(), ranks.begin(), ranks.end());
      });
      if (ranks.size() < 2 || is_known) continue;
      known.push_back(ranks);
      SoundFinding& finding = findings.emplace_back(MakeFinding(joined, common[i]));
      finding.mutable_ranks()->Add(ranks.begin(), ranks.end());
      finding.set_seen(
          absl::StrCat(NameRanks(ranks), ": the same in iterations ", common[i], " and ", common[i + 1]));
    }
  }
  return findings;
}

std::vector<SoundFinding> FindBroken(const JoinedFact& joined) {
  if (joined.fact.is_distinct()) return FindSame(joined);
  const std::optional<SoundFinding> finding = joined.fact.is_result() ? FindOtherResult(joined)
                                              : joined.fact.is_sum()  ? FindWrongSum(joined)
                                                                      : FindDifference(joined);
  return finding.has_value() ? std::vector<SoundFinding>{*finding} : std::vector<SoundFinding>();
}

// Facts that two ranks or more recorded. Where ranks of their group did not, `not_checked` says so, by rule.
std::vector<JoinedFact> JoinFacts(const std::map<int, SoundRecord>& records, int num_ranks,
                                  std::map<std::string, std::string>* not_checked) {
  std::map<std::tuple<std::string, std::string, std::vector<int>>, JoinedFact> joined;
  for (const auto& [rank, record] : records) {
    for (const SoundFact& fact : record.facts()) {
      JoinedFact& of_all = joined[{fact.rule(), fact.name(), {fact.group().begin(), fact.group().end()}}];
      of_all.fact = fact;
      const int size = std::min(fact.iterations_size(), fact.values_size());
      for (int i = 0; i < size; ++i) of_all.values[rank][fact.iterations(i)] = fact.values(i);
    }
  }
  std::vector<JoinedFact> complete;
  for (auto& [key, fact] : joined) {
    const size_t expected = fact.fact.group().empty() ? num_ranks : fact.fact.group_size();
    if (fact.values.size() < expected) {
      (*not_checked)[fact.fact.rule()] =
          absl::StrCat("only ", fact.values.size(), " of ", expected, " ranks recorded ", fact.fact.name());
    }
    if (fact.values.size() > 1) complete.push_back(std::move(fact));
  }
  return complete;
}

bool HaveTheSameNames(const SoundFinding& a, const SoundFinding& b) {
  return std::equal(a.names().begin(), a.names().end(), b.names().begin(), b.names().end());
}

bool HaveTheSameRanks(const SoundFinding& a, const SoundFinding& b) {
  return std::equal(a.ranks().begin(), a.ranks().end(), b.ranks().begin(), b.ranks().end());
}

void JoinRanks(const SoundFinding& from, SoundFinding* to) {
  std::set<int> ranks(to->ranks().begin(), to->ranks().end());
  ranks.insert(from.ranks().begin(), from.ranks().end());
  *to->mutable_ranks() = {ranks.begin(), ranks.end()};
}

// Joins what is the same on other ranks, or of other tensors of the same ranks, into one finding. fact: what
// it is about, which says what each rank has; nullptr: it is a rank's own.
void AddFinding(const SoundFinding& finding, const SoundFact* fact, SoundVerdict* verdict) {
  for (SoundFinding& known : *verdict->mutable_findings()) {
    if (known.rule() != finding.rule() || known.place() != finding.place() ||
        known.iteration() != finding.iteration())
      continue;
    if (HaveTheSameNames(known, finding)) {
      JoinRanks(finding, &known);
      if (fact != nullptr) known.set_seen(absl::StrCat(known.seen(), "; ", finding.seen()));
      return;
    }
    if (fact != nullptr && fact->is_result() && HaveTheSameRanks(known, finding)) {
      known.mutable_names()->MergeFrom(finding.names());
      return;
    }
  }
  *verdict->add_findings() = finding;
}

// A silenced rule counts as one that was not looked at.
void AddRules(const std::map<int, SoundRecord>& records,
              const std::map<std::string, std::string>& not_checked, const std::set<std::string>& silenced,
              SoundVerdict* verdict) {
  std::map<std::string, SoundRule> rules;
  for (const auto& [rank, record] : records) {
    for (const SoundRule& rule : record.rules()) {
      SoundRule& of_all = rules.try_emplace(rule.name(), rule).first->second;
      of_all.set_num_checks(std::max(of_all.num_checks(), rule.num_checks()));
      if (of_all.not_checked().empty()) of_all.set_not_checked(rule.not_checked());
    }
  }
  for (auto& [name, rule] : rules) {
    const auto reason = not_checked.find(name);
    if (silenced.count(name) > 0) rule.set_num_checks(0);
    if (reason != not_checked.end() && rule.not_checked().empty()) rule.set_not_checked(reason->second);
    *verdict->add_rules() = std::move(rule);
  }
}

}  // namespace

std::map<int, SoundRecord> ReadSoundRecords(const std::string& run_dir, const std::vector<int>& ranks,
                                            std::vector<std::string>* problems) {
  std::map<int, SoundRecord> records;
  for (const int rank : ranks) {
    const std::string path = SoundPath(run_dir, rank);
    const absl::StatusOr<std::string> json = ReadFile(path, kMaxRecordBytes);
    if (absl::IsNotFound(json.status())) continue;
    SoundRecord record;
    std::string unknown;
    const absl::Status status = json.ok() ? JsonToProto(*json, &record, &unknown) : json.status();
    if (!status.ok()) {
      problems->push_back(absl::StrCat(path, ": ", std::string(status.message())));
      continue;
    }
    if (!unknown.empty()) problems->push_back(absl::StrCat(path, ": ", unknown));
    records.emplace(rank, std::move(record));
  }
  return records;
}

SoundVerdict JudgeSound(const std::map<int, SoundRecord>& records, int num_ranks, const SoundConfig& config) {
  SoundVerdict verdict;
  verdict.set_num_ranks(num_ranks);
  *verdict.mutable_silenced() = config.silence();
  if (records.empty() || config.off()) {
    verdict.set_kind(SoundVerdict::NOT_LOOKED_AT);
    return verdict;
  }
  const std::set<std::string> silenced(config.silence().begin(), config.silence().end());
  std::map<std::string, std::string> not_checked;
  verdict.set_num_iterations(records.begin()->second.num_iterations());
  for (const auto& [rank, record] : records) {
    verdict.set_num_iterations(std::min(verdict.num_iterations(), record.num_iterations()));
    for (SoundFinding finding : record.findings()) {
      if (silenced.count(finding.rule()) > 0) continue;
      finding.clear_ranks();
      finding.add_ranks(rank);
      AddFinding(finding, nullptr, &verdict);
    }
  }
  for (const JoinedFact& fact : JoinFacts(records, num_ranks, &not_checked)) {
    if (silenced.count(fact.fact.rule()) > 0) continue;
    for (const SoundFinding& finding : FindBroken(fact)) AddFinding(finding, &fact.fact, &verdict);
  }
  std::stable_sort(
      verdict.mutable_findings()->begin(), verdict.mutable_findings()->end(),
      [](const SoundFinding& a, const SoundFinding& b) { return a.iteration() < b.iteration(); });
  AddRules(records, not_checked, silenced, &verdict);
  for (int rank = 0; rank < num_ranks; ++rank) {
    if (records.count(rank) == 0) verdict.add_missing_ranks(rank);
  }
  const bool looked = verdict.num_iterations() > 0 &&
                      std::any_of(verdict.rules().begin(), verdict.rules().end(),
                                  [](const SoundRule& rule) { return rule.num_checks() > 0; });
  verdict.set_kind(!verdict.findings().empty()                 ? SoundVerdict::UNSOUND
                   : looked && verdict.missing_ranks().empty() ? SoundVerdict::SOUND
                                                               : SoundVerdict::CANNOT_TELL);
  return verdict;
}

SoundVerdict JudgeSoundOf(const std::string& run_dir, std::vector<std::string>* problems) {
  const absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir);
  const absl::StatusOr<std::vector<int>> ranks = ListRanks(run_dir);
  if (!info.ok()) problems->push_back(std::string(info.status().message()));
  if (!ranks.ok()) problems->push_back(std::string(ranks.status().message()));
  const std::vector<int> listed = ranks.ok() ? *ranks : std::vector<int>();
  const int num_ranks = info.ok() ? info->world_size() : static_cast<int>(listed.size());
  return JudgeSound(ReadSoundRecords(run_dir, listed, problems), num_ranks,
                    info.ok() ? info->config().sound() : SoundConfig());
}

}  // namespace ott::sound
