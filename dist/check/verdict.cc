#include "ott/dist/check/verdict.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "dist/check/replica_tensors.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/text_table.h"
#include "ott/core/compare/report.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

// One by one.
constexpr int kMaxRanks = 8;

// A log that was changed may have fewer hosts than ranks.
template <typename Ranks, typename Hosts>
std::string FormatRanksAndHosts(const Ranks& ranks, const Hosts& hosts) {
  std::vector<std::string> texts;
  for (int i = 0; i < std::min<int>(ranks.size(), kMaxRanks); ++i)
    texts.push_back(FormatRank(ranks[i], i < hosts.size() ? hosts[i] : "host unknown"));
  if (ranks.size() > kMaxRanks) texts.push_back(absl::StrCat("... (", ranks.size(), " ranks in all)"));
  return absl::StrJoin(texts, ", ");
}

std::string FormatSubject(const CrossCheckVerdict& verdict) {
  if (verdict.mode() == REPLICAS) return "replicas";
  if (verdict.mode() == SHARDS) return "replicas of a shard";
  if (verdict.mode() == DISTINCT) return "distinct tensors";
  return absl::StrCat(FormatRank(verdict.rank(), verdict.host()), " against ",
                      EscapeControlCharacters(verdict.reference()));
}

// With a file, each tensor has a tolerance of its own: of those that pass, the one that needs most of it is
// shown.
std::string FormatErrors(const CrossCheckVerdict& verdict) {
  if (!verdict.tolerances().empty()) {
    const TensorError* shown = nullptr;
    const auto need = [](const TensorError& error) {
      return error.passing_atol() > 0 ? error.passing_atol() / error.atol() : 0;
    };
    for (const TensorError& error : verdict.tensor_errors()) {
      const bool is_shown = verdict.tensor().empty() ? shown == nullptr || need(error) > need(*shown)
                                                     : error.tensor() == verdict.tensor();
      if (is_shown) shown = &error;
    }
    if (shown == nullptr) return "";
    return absl::StrFormat(
        "%smax abs error %.3g (atol %.3g of %s)",
        verdict.tensor().empty()
            ? absl::StrCat("nearest to its tolerance: \"", EscapeControlCharacters(shown->tensor()), "\", ")
            : "",
        shown->max_abs_error(), shown->atol(), EscapeControlCharacters(verdict.tolerances()));
  }
  return absl::StrFormat("max abs error %.3g, max rel error %.3g (atol %g, rtol %g)", verdict.max_abs_error(),
                         verdict.max_rel_error(), verdict.atol(), verdict.rtol());
}

std::string FormatDifferentTensor(const CrossCheckVerdict& verdict) {
  if (verdict.tensor().empty()) return "";
  std::string text = absl::StrCat(" in tensor \"", EscapeControlCharacters(verdict.tensor()), "\"");
  if (!verdict.dtype().empty()) {
    absl::StrAppend(&text, " (", verdict.dtype());
    if (verdict.dtype() != internal::kTextDType) {
      absl::StrAppend(&text, " [", absl::StrJoin(verdict.shape(), ", "), "]");
    }
    absl::StrAppend(&text, ")");
  }
  if (verdict.num_different_tensors() > 0) {
    absl::StrAppend(&text, ", the first of ", verdict.num_different_tensors(), " of ", verdict.num_tensors());
  }
  return text;
}

std::string FormatCulprits(const CrossCheckVerdict& verdict) {
  if (verdict.mode() == DISTINCT) {
    return absl::StrCat(": ", FormatRanksAndHosts(verdict.culprit_ranks(), verdict.culprit_hosts()));
  }
  if (verdict.mode() == REFERENCE) {
    // The reason tells how things without elements differ, such as a shape or a text.
    return verdict.dtype().empty() ? "" : absl::StrCat(": ", FormatErrors(verdict));
  }
  if (!verdict.has_majority()) {
    // If ranks are missing, there may be a majority.
    return verdict.mode() == REPLICAS && verdict.missing_ranks().empty()
               ? ": no majority, the ranks disagree; tensors that are meant to differ are left "
                 "out by `replicated` or `kinds` of cross_check"
               : ": no majority, the ranks disagree";
  }
  std::string text =
      absl::StrCat(": ", FormatRanksAndHosts(verdict.culprit_ranks(), verdict.culprit_hosts()));
  const int num_named = std::min(verdict.culprit_named_before_size(), verdict.culprit_ranks_size());
  for (int i = 0; i < std::min(num_named, kMaxRanks); ++i) {
    if (verdict.culprit_named_before(i) == 0) continue;
    absl::StrAppend(&text, "; rank ", verdict.culprit_ranks(i), " was named in ",
                    verdict.culprit_named_before(i),
                    verdict.culprit_named_before(i) == 1 ? " earlier check" : " earlier checks");
  }
  return text;
}

// Says where it first differs, over all ranks; empty if this is the only rank. Other ranks may differ, too,
// first in something else.
std::string FormatFirst(const CrossCheckVerdict& verdict) {
  if (verdict.first_ranks().empty() || verdict.num_ranks() < 2) return "";
  const std::string ranks = FormatRanksAmong({verdict.first_ranks().begin(), verdict.first_ranks().end()},
                                             verdict.num_first_ranks(), verdict.num_ranks());
  const bool others_differ = verdict.num_different_ranks() > verdict.num_first_ranks();
  const std::string others = others_differ ? absl::StrCat("; ", verdict.num_different_ranks(), " of ",
                                                          verdict.num_ranks(), " ranks differ")
                                           : "";
  if (verdict.outcome() == DIFFERENT && verdict.tensor() == verdict.first_tensor()) {
    return absl::StrCat(others_differ ? "; first " : "; ", ranks, others);
  }
  return absl::StrCat("; the first is \"", EscapeControlCharacters(verdict.first_tensor()), "\", ", ranks,
                      others);
}

std::string FormatDifference(const FirstDifference& difference, bool is_text) {
  const std::string place = is_text ? absl::StrCat("character ", difference.element())
                                    : absl::StrCat("element ", difference.element(), " = [",
                                                   absl::StrJoin(difference.index(), ", "), "]");
  std::string text = absl::StrCat("    ", place, ": ", difference.value(), " on ",
                                  FormatRanksAndHosts(difference.ranks(), difference.hosts()), " instead of ",
                                  difference.expected());
  if (difference.has_ulp_distance()) absl::StrAppend(&text, "; ", difference.ulp_distance(), " ULP");
  const std::string flipped = FlippedBitsText(difference.flipped_bits());
  if (!flipped.empty()) absl::StrAppend(&text, "; ", flipped);
  return text;
}

}  // namespace

bool Passed(const CrossCheckVerdict& verdict) {
  return verdict.outcome() == BITWISE_EQUAL || verdict.outcome() == WITHIN_TOLERANCE ||
         verdict.outcome() == ALL_DISTINCT;
}

Outcome OutcomeOfAllRanks(const CrossCheckVerdict& verdict) {
  return verdict.worst_outcome() != OUTCOME_UNKNOWN ? verdict.worst_outcome() : verdict.outcome();
}

void AddToFirst(CrossCheckVerdict verdict, CrossCheckVerdict& first) {
  constexpr int kMaxFirstRanks = 16;
  const auto order = [](const CrossCheckVerdict& of) {
    return std::tuple(-SeverityOf(of.outcome()), of.has_tensor_position() ? of.tensor_position() : INT64_MAX,
                      of.rank());
  };
  const auto is_first_on = [](const CrossCheckVerdict& of, const CrossCheckVerdict& best) {
    return best.outcome() == DIFFERENT && of.outcome() == DIFFERENT && !best.tensor().empty() &&
           of.tensor() == best.tensor();
  };
  const CrossCheckVerdict before = first;
  const int rank = verdict.rank();
  const bool is_different = verdict.outcome() == DIFFERENT;
  if (before.num_ranks() == 0 || order(verdict) < order(before)) first = verdict;
  const bool was_first = before.num_ranks() > 0 && is_first_on(before, first);
  std::vector<int> ranks;
  if (was_first) ranks.assign(before.first_ranks().begin(), before.first_ranks().end());
  const bool is_first = is_first_on(verdict, first);
  if (is_first && static_cast<int>(ranks.size()) < kMaxFirstRanks) ranks.push_back(rank);
  *first.mutable_first_ranks() = {ranks.begin(), ranks.end()};
  first.set_num_first_ranks((was_first ? before.num_first_ranks() : 0) + (is_first ? 1 : 0));
  first.set_first_tensor(first.num_first_ranks() > 0 ? first.tensor() : "");
  first.set_num_different_ranks(before.num_different_ranks() + (is_different ? 1 : 0));
  first.set_num_ranks(before.num_ranks() + 1);
  first.set_worst_outcome(first.outcome());
  first.set_worst_rank(first.rank());
}

void FindFirst(std::vector<CrossCheckVerdict>& verdicts) {
  CrossCheckVerdict first;
  for (const CrossCheckVerdict& verdict : verdicts) AddToFirst(verdict, first);
  for (CrossCheckVerdict& verdict : verdicts) {
    verdict.set_worst_outcome(first.worst_outcome());
    verdict.set_worst_rank(first.worst_rank());
    verdict.set_first_tensor(first.first_tensor());
    *verdict.mutable_first_ranks() = first.first_ranks();
    verdict.set_num_first_ranks(first.num_first_ranks());
    verdict.set_num_different_ranks(first.num_different_ranks());
    verdict.set_num_ranks(first.num_ranks());
    verdict.set_worst_finding(first.worst_finding());
  }
}

int SeverityOf(Outcome outcome) {
  switch (outcome) {
    case BITWISE_EQUAL:
    case ALL_DISTINCT:
      return 0;
    case WITHIN_TOLERANCE:
      return 1;
    case DIFFERENT:
      return 3;
    default:
      return 2;
  }
}

void Worsen(Outcome outcome, CrossCheckVerdict& verdict) {
  if (SeverityOf(outcome) > SeverityOf(verdict.outcome())) verdict.set_outcome(outcome);
}

void AddReason(std::string_view reason, CrossCheckVerdict& verdict) {
  absl::StrAppend(verdict.mutable_reason(), verdict.reason().empty() ? "" : "; ", std::string(reason));
}

std::string FormatFinding(const CrossCheckVerdict& verdict) {
  std::string text;
  switch (verdict.outcome()) {
    case BITWISE_EQUAL:
      absl::StrAppend(&text, "equal bit for bit: ", verdict.num_tensors(), " tensors");
      break;
    case WITHIN_TOLERANCE:
      absl::StrAppend(&text, "within tolerance but not bit for bit: ", verdict.num_different_tensors(),
                      " of ", verdict.num_tensors(), " tensors have other bits; ", FormatErrors(verdict));
      break;
    case ALL_DISTINCT:
      absl::StrAppend(&text, "differ on all ranks: ", verdict.num_tensors(),
                      verdict.num_tensors() == 1 ? " tensor" : " tensors");
      break;
    case DIFFERENT:
      absl::StrAppend(&text, verdict.mode() == DISTINCT ? "are THE SAME" : "DIFFER",
                      FormatDifferentTensor(verdict), FormatCulprits(verdict));
      break;
    default:
      absl::StrAppend(&text, "NOT COMPARED");
  }
  if (!verdict.reason().empty()) absl::StrAppend(&text, ": ", EscapeControlCharacters(verdict.reason()));
  return text;
}

std::vector<std::string> VerdictLines(const CrossCheckVerdict& verdict) {
  std::string text = absl::StrCat("iteration ", verdict.iteration(), ": ", FormatSubject(verdict), " ",
                                  FormatFinding(verdict));
  const bool is_worse_elsewhere = SeverityOf(OutcomeOfAllRanks(verdict)) > SeverityOf(verdict.outcome());
  if (!verdict.first_tensor().empty()) {
    text += FormatFirst(verdict);
  } else if (is_worse_elsewhere && !verdict.worst_finding().empty()) {
    absl::StrAppend(&text, "; replicas of rank ", verdict.worst_rank(), "'s shard ", verdict.worst_finding());
  } else if (is_worse_elsewhere) {
    absl::StrAppend(&text, "; rank ", verdict.worst_rank(), "'s verdict is worse");
  }
  std::vector<std::string> lines = {std::move(text)};
  const std::string kinds = FormatKinds(verdict.kinds());
  if (!kinds.empty()) lines.push_back("    differ: " + kinds);
  for (const FirstDifference& difference : verdict.differences()) {
    lines.push_back(FormatDifference(difference, verdict.dtype() == internal::kTextDType));
  }
  return lines;
}

std::string FormatVerdict(const CrossCheckVerdict& verdict) {
  return absl::StrJoin(VerdictLines(verdict), "\n") + "\n";
}

void CountKind(TensorKind kind, bool is_different, google::protobuf::RepeatedPtrField<KindCount>& counts) {
  auto count =
      std::find_if(counts.begin(), counts.end(), [&](const KindCount& of) { return of.kind() == kind; });
  if (count == counts.end()) {
    counts.Add()->set_kind(kind);
    count = counts.end() - 1;
  }
  count->set_num_tensors(count->num_tensors() + 1);
  count->set_num_different(count->num_different() + (is_different ? 1 : 0));
}

std::string FormatKinds(const google::protobuf::RepeatedPtrField<KindCount>& counts) {
  KindCount parameters, gradients, optimizer;
  std::vector<std::string> texts;
  int64_t num_different = 0;
  for (const auto& [kind, name, of] : {std::tuple(TENSOR_KIND_PARAMETER, "parameters", &parameters),
                                       {TENSOR_KIND_GRADIENT, "gradients", &gradients},
                                       {TENSOR_KIND_OPTIMIZER_STATE, "optimizer state", &optimizer},
                                       {TENSOR_KIND_OTHER, "others", static_cast<KindCount*>(nullptr)}}) {
    for (const KindCount& count : counts) {
      if (count.kind() != kind) continue;
      texts.push_back(absl::StrCat(name, " ", count.num_different(), " of ", count.num_tensors()));
      num_different += count.num_different();
      if (of != nullptr) *of = count;
    }
  }
  if (texts.size() < 2 || num_different == 0) return "";
  const bool is_update = gradients.num_tensors() > 0 && gradients.num_different() == 0 &&
                         parameters.num_different() + optimizer.num_different() > 0;
  return absl::StrCat(
      absl::StrJoin(texts, ", "),
      is_update ? ": gradients are equal, so it is the update or what became of them before it" : "");
}

std::string VerdictToJsonLine(const CrossCheckVerdict& verdict) {
  return ProtoToJson(verdict, JsonLayout::kOneLine);
}

absl::StatusOr<CrossCheckVerdict> ParseVerdict(std::string_view json_line, std::string* unknown) {
  CrossCheckVerdict verdict;
  const absl::Status status = JsonToProto(json_line, &verdict, unknown);
  if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("no verdict: ", status.message()));
  return verdict;
}

}  // namespace ott
