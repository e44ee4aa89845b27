#include "dist/check/replica_verdict.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_join.h"
#include "dist/check/replica_inquiry.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/report.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/dist/check/verdict.h"

namespace ott::internal {
namespace {

// Groups of culprits whose elements are looked up.
constexpr size_t kMaxDifferences = 4;
// With a tolerance, contents that all others are compared with.
constexpr size_t kMaxPivots = 16;
// With a tolerance, of one tensor on all ranks, on rank 0.
constexpr size_t kMaxLeavesBytes = 256 << 20;

std::string Describe(const TensorSchema& tensor) {
  if (tensor.dtype() == kTextDType) return tensor.dtype();
  return absl::StrCat(tensor.dtype(), " [", absl::StrJoin(tensor.shape(), ", "), "]");
}

// Quotes a part of a text: the characters around the first that differs.
std::string QuoteFrom(const std::string& text, size_t first_different) {
  constexpr size_t kBefore = 20;
  constexpr size_t kShown = 60;
  const size_t begin = first_different > kBefore ? first_different - kBefore : 0;
  const std::string shown = text.substr(begin, kShown);
  return absl::StrCat("\"", begin > 0 ? "..." : "", Printable(shown),
                      begin + shown.size() < text.size() ? "..." : "", "\"");
}

// The verdict without an outcome.
constexpr char kNothingToCompare[] = "no tensor to compare";

CrossCheckVerdict DescribeCheck(const ReplicaCheckOptions& options, const ReplicaTensors& tensors,
                                const ReplicaAnnouncement& mine) {
  CrossCheckVerdict verdict;
  verdict.set_mode(options.mode);
  verdict.set_iteration(mine.iteration());
  verdict.set_num_tensors(static_cast<int64_t>(tensors.size()));
  if (options.tolerance) {
    verdict.set_atol(options.tolerance->atol);
    verdict.set_rtol(options.tolerance->rtol);
  }
  return verdict;
}

class VerdictBuilder {
 public:
  VerdictBuilder(Communicator& ranks, const ReplicaCheckOptions& options, const ReplicaTensors& tensors,
                 uint64_t check, Deadline announced, Deadline decided)
      : ranks_(ranks),
        options_(options),
        tensors_(tensors),
        inquiry_(ranks, options, tensors, check, decided),
        members_(inquiry_.members()),
        announced_(announced) {}

  CrossCheckVerdict Decide(const ReplicaAnnouncement& mine) {
    verdict_ = DescribeCheck(options_, tensors_, mine);
    ReceiveAnnouncements(mine);
    if (!CanCompare()) return verdict_;
    if (!SameSchema()) return verdict_;
    CompareContents();
    return verdict_;
  }

 private:
  void ReceiveAnnouncements(const ReplicaAnnouncement& mine) {
    std::vector<int> late;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      if (rank == ranks_.rank()) {
        announcements_[rank] = mine;
        continue;
      }
      absl::StatusOr<ReplicaAnswer> answer = inquiry_.Receive(rank, announced_);
      if (answer.ok()) {
        announcements_[rank] = answer->announcement();
      } else {
        verdict_.add_missing_ranks(members_.Name(rank));
        if (absl::IsDeadlineExceeded(answer.status())) {
          late.push_back(rank);
        } else {
          AddReason(std::string(answer.status().message()), verdict_);
        }
      }
    }
    if (!late.empty()) AddReason(members_.TooLate(late, announced_), verdict_);
  }

  void NotCompared(std::string_view reason) {
    verdict_.set_outcome(NOT_COMPARED);
    AddReason(reason, verdict_);
  }

  bool CanCompare() {
    for (auto announced = announcements_.begin(); announced != announcements_.end();) {
      const auto& [rank, announcement] = *announced;
      if (announcement.error().empty()) {
        ++announced;
        continue;
      }
      AddReason(absl::StrCat(members_.Describe(rank), ": ", announcement.error()), verdict_);
      verdict_.add_missing_ranks(members_.Name(rank));
      announced = announcements_.erase(announced);
    }
    if (announcements_.count(ranks_.rank()) == 0) {
      verdict_.set_outcome(NOT_COMPARED);
      return false;
    }
    std::map<int64_t, std::vector<int>> ranks_of_iteration;
    for (const auto& [rank, announcement] : announcements_)
      ranks_of_iteration[announcement.iteration()].push_back(rank);
    if (ranks_of_iteration.size() > 1) {
      std::vector<std::string> parts;
      for (const auto& [iteration, ranks] : ranks_of_iteration) {
        parts.push_back(absl::StrCat(members_.DescribeAll(ranks), ": iteration ", iteration));
      }
      NotCompared(absl::StrCat("the ranks are not in the same iteration: ", absl::StrJoin(parts, ", ")));
      return false;
    }
    return true;
  }

  template <typename Field>
  RanksOfBytes GroupBy(Field field) const {
    RanksOfBytes groups;
    for (const auto& [rank, announcement] : announcements_) groups[(announcement.*field)()].push_back(rank);
    return groups;
  }

  // Counts all ranks, also those that did not answer.
  bool IsMajority(size_t num_ranks) const { return 2 * num_ranks > static_cast<size_t>(ranks_.size()); }

  // The group that most ranks are in, or else rank 0's.
  RanksOfBytes::const_iterator Expected(const RanksOfBytes& groups, bool& has_majority) const {
    const auto largest = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    has_majority = IsMajority(largest->second.size());
    if (has_majority) return largest;
    return std::find_if(groups.begin(), groups.end(),
                        [](const auto& group) { return group.second.front() == 0; });
  }

  // Names everyone outside the expected group, if that has a majority.
  void SetCulprits(const RanksOfBytes& groups, RanksOfBytes::const_iterator expected, bool has_majority) {
    std::vector<int> culprits;
    for (auto group = groups.begin(); has_majority && group != groups.end(); ++group) {
      if (group != expected) culprits.insert(culprits.end(), group->second.begin(), group->second.end());
    }
    SetCulprits(std::move(culprits));
  }

  // Empty if there is no majority.
  void SetCulprits(std::vector<int> culprits) {
    verdict_.set_outcome(DIFFERENT);
    verdict_.set_has_majority(!culprits.empty());
    std::sort(culprits.begin(), culprits.end());
    for (const int rank : culprits) {
      verdict_.add_culprit_ranks(members_.Name(rank));
      verdict_.add_culprit_hosts(ranks_.host(rank));
    }
  }

  bool SameSchema() {
    const RanksOfBytes groups = GroupBy(&ReplicaAnnouncement::schema_digest);
    if (groups.size() == 1) return true;
    std::map<std::string, absl::StatusOr<ReplicaSchema>> schemas;
    for (const auto& [schema, ranks] : groups) schemas.emplace(schema, inquiry_.Schema(ranks.front()));
    bool has_majority = false;
    const auto expected = Expected(groups, has_majority);
    SetCulprits(groups, expected, has_majority);
    const absl::StatusOr<ReplicaSchema>& expected_schema = schemas.at(expected->first);
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      if (group == expected) continue;
      const absl::StatusOr<ReplicaSchema>& schema = schemas.at(group->first);
      if (!expected_schema.ok() || !schema.ok()) {
        AddReason(
            absl::StrCat(members_.DescribeAll(group->second), ": other names, dtypes or shapes, not shown: ",
                         (schema.ok() ? expected_schema : schema).status().message()),
            verdict_);
        continue;
      }
      DescribeSchemas(group->second, *schema, expected->second, *expected_schema);
    }
    return false;
  }

  // Says what is the first tensor that is not the same, wherever it is in the order of adding.
  void DescribeSchemas(const std::vector<int>& ranks, const ReplicaSchema& schema,
                       const std::vector<int>& expected_ranks, const ReplicaSchema& expected) {
    const auto at = [](const ReplicaSchema& of, int i) {
      return i < of.tensors_size() ? absl::StrCat("\"", of.tensors(i).path(), "\" ", Describe(of.tensors(i)))
                                   : std::string("missing");
    };
    const auto names = [&](const ReplicaSchema& of) {
      std::set<std::string> all;
      for (int i = 0; i < of.tensors_size(); ++i) all.insert(at(of, i));
      return all;
    };
    const std::set<std::string> here = names(schema);
    const std::set<std::string> there = names(expected);
    for (int i = 0; i < std::max(schema.tensors_size(), expected.tensors_size()); ++i) {
      const bool in_both = (i >= schema.tensors_size() || there.count(at(schema, i)) == 1) &&
                           (i >= expected.tensors_size() || here.count(at(expected, i)) == 1);
      if (in_both) continue;
      if (verdict_.tensor().empty()) {
        verdict_.set_tensor(i < schema.tensors_size() ? schema.tensors(i).path()
                                                      : expected.tensors(i).path());
      }
      AddReason(absl::StrCat("tensor ", i, " is ", at(schema, i), " on ", members_.DescribeAll(ranks), ", ",
                             at(expected, i), " on ", members_.DescribeAll(expected_ranks)),
                verdict_);
      return;
    }
  }

  void CompareContents() {
    if (tensors_.size() == 0) return NotCompared(kNothingToCompare);
    if (ranks_.size() == 1) {
      return NotCompared(
          "one rank has no replicas; where more were started, the launcher made a job of each");
    }
    const RanksOfBytes groups = GroupBy(&ReplicaAnnouncement::tensors_digest);
    if (groups.size() == 1) {
      verdict_.set_outcome(verdict_.missing_ranks_size() == 0 ? BITWISE_EQUAL : NOT_COMPARED);
      return;
    }
    verdict_.set_outcome(options_.tolerance ? WITHIN_TOLERANCE : DIFFERENT);
    if (const absl::Status status = CompareTensorByTensor(groups); !status.ok()) {
      Worsen(NOT_COMPARED, verdict_);
      AddReason(absl::StrCat("not located: ", status.message()), verdict_);
    }
    if (verdict_.missing_ranks_size() > 0) Worsen(NOT_COMPARED, verdict_);
  }

  // The first tensor beyond the tolerance, or else the first that differs, in rank 0's order of adding, is
  // the one that is located.
  absl::Status CompareTensorByTensor(const RanksOfBytes& groups) {
    std::vector<bool> is_different(tensors_.size());
    size_t begin = 0;
    while (begin < tensors_.size()) {
      OTT_ASSIGN_OR_RETURN(const ReplicaInquiry::Window window, inquiry_.FirstDifferentFrom(begin, groups));
      std::vector<size_t> different;
      for (size_t tensor = window.begin; tensor < window.end; ++tensor) {
        if (GroupsOfTensor(window, tensor).size() > 1) different.push_back(tensor);
      }
      for (const size_t tensor : different) is_different[tensors_.PlaceOf(tensor)] = true;
      verdict_.set_num_different_tensors(verdict_.num_different_tensors() +
                                         static_cast<int64_t>(different.size()));
      std::sort(different.begin(), different.end(),
                [this](size_t a, size_t b) { return tensors_.PlaceOf(a) < tensors_.PlaceOf(b); });
      for (const size_t tensor : different) {
        if (!verdict_.tensor().empty() || verdict_.outcome() == NOT_COMPARED) break;
        const RanksOfBytes of_tensor = GroupsOfTensor(window, tensor);
        if (options_.tolerance) {
          CompareWithTolerance(tensor, of_tensor);
        } else {
          Locate(tensor, of_tensor);
        }
      }
      begin = window.end;
      if (!verdict_.tensor().empty() && begin < tensors_.size()) {
        AddReason(absl::StrCat("only the first ", begin, " tensors by name are counted"), verdict_);
        return absl::OkStatus();
      }
    }
    if (!options_.tolerance) CountKinds(is_different);
    return absl::OkStatus();
  }

  // is_different: in the order of adding.
  void CountKinds(const std::vector<bool>& is_different) {
    if (options_.kind_of == nullptr) return;
    std::vector<const std::string*> paths(tensors_.size());
    for (size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      paths[tensors_.PlaceOf(tensor)] = &tensors_[tensor].path;
    }
    for (size_t place = 0; place < paths.size(); ++place) {
      CountKind(options_.kind_of(*paths[place]), is_different[place], *verdict_.mutable_kinds());
    }
  }

  void CompareWithTolerance(size_t tensor, const RanksOfBytes& groups) {
    const absl::Status status = CompareAllWithTolerance(tensor, groups);
    if (status.ok()) return;
    Worsen(NOT_COMPARED, verdict_);
    AddReason(absl::StrCat(tensors_[tensor].path, ": not compared: ", status.message()), verdict_);
  }

  // A tensor that agrees with that of most ranks is as good as any other such, and a rank that agrees with
  // none of these is a culprit. So nobody's place decides.
  absl::Status CompareAllWithTolerance(size_t tensor, const RanksOfBytes& groups) {
    const std::vector<std::vector<int>> contents = LargestFirst(groups);
    OTT_ASSIGN_OR_RETURN(const std::vector<std::vector<bool>> agree, AgreementsOf(tensor, contents));
    if (std::all_of(agree.begin(), agree.end(), [](const std::vector<bool>& with) {
          return std::find(with.begin(), with.end(), false) == with.end();
        })) {
      return absl::OkStatus();
    }
    std::vector<bool> is_good(contents.size());
    size_t best = 0;
    size_t most = 0;
    for (size_t pivot = 0; pivot < agree.size(); ++pivot) {
      size_t num_ranks = 0;
      for (size_t i = 0; i < contents.size(); ++i) num_ranks += agree[pivot][i] ? contents[i].size() : 0;
      if (num_ranks > most) std::tie(best, most) = std::pair(pivot, num_ranks);
      if (!IsMajority(num_ranks)) continue;
      for (size_t i = 0; i < contents.size(); ++i) is_good[i] = is_good[i] || agree[pivot][i];
    }
    std::vector<int> culprits;
    for (size_t i = 0; i < contents.size(); ++i) {
      if (is_good[i] || !IsMajority(most)) continue;
      culprits.insert(culprits.end(), contents[i].begin(), contents[i].end());
    }
    DescribeTensor(tensor);
    SetCulprits(culprits);
    return ShowDifferences(tensor, contents, agree, culprits.empty() ? contents.size() : best);
  }

  // Elements of the culprits' tensors beside that of `good`; without culprits (good: none), of the first two
  // that do not agree.
  absl::Status ShowDifferences(size_t tensor, const std::vector<std::vector<int>>& contents,
                               const std::vector<std::vector<bool>>& agree, size_t good) {
    const size_t num_shown = good < agree.size() ? kMaxDifferences : 1;
    for (size_t pivot = 0; pivot < agree.size(); ++pivot) {
      if (good < agree.size() && pivot != good) continue;
      for (size_t i = 0; i < contents.size(); ++i) {
        if (agree[pivot][i] || static_cast<size_t>(verdict_.differences_size()) == num_shown) continue;
        OTT_ASSIGN_OR_RETURN(std::optional<FirstDifference> difference,
                             FirstBeyond(tensor, contents[i], contents[pivot].front()));
        if (difference) *verdict_.add_differences() = *std::move(difference);
      }
    }
    return absl::OkStatus();
  }

  // The ranks of each group, in an order that the ranks' numbers decide only where nothing else does.
  static std::vector<std::vector<int>> LargestFirst(const RanksOfBytes& groups) {
    std::vector<std::vector<int>> contents;
    for (const auto& [unused, ranks] : groups) contents.push_back(ranks);
    std::stable_sort(contents.begin(), contents.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    return contents;
  }

  // For each of the first kMaxPivots contents, whether each content is within the tolerance of it and it of
  // that. Other texts never are.
  absl::StatusOr<std::vector<std::vector<bool>>> AgreementsOf(size_t tensor,
                                                              const std::vector<std::vector<int>>& contents) {
    const size_t num_pivots = std::min(contents.size(), kMaxPivots);
    std::vector<std::vector<bool>> agree(num_pivots, std::vector<bool>(contents.size(), true));
    if (IsText(tensors_[tensor])) {
      for (size_t pivot = 0; pivot < num_pivots; ++pivot) {
        agree[pivot].assign(contents.size(), false);
        agree[pivot][pivot] = true;
      }
      return agree;
    }
    std::vector<std::string> leaves;
    for (const std::vector<int>& ranks : contents) {
      OTT_ASSIGN_OR_RETURN(leaves.emplace_back(), inquiry_.Leaves(tensor, ranks.front()));
      if (leaves.back().size() != leaves[0].size()) {
        return absl::InternalError("the tensor has other blocks");
      }
      if (leaves.size() * leaves[0].size() > kMaxLeavesBytes) {
        return absl::ResourceExhaustedError(absl::StrCat(
            contents.size(), " different contents of ", leaves[0].size() / kDigestBytes,
            " blocks are too many to compare within a tolerance; compare bit for bit, or fewer tensors"));
      }
    }
    for (size_t at = 0; at < leaves[0].size(); at += kDigestBytes) {
      OTT_RETURN_IF_ERROR(CompareBlockOfAll(tensor, at, contents, leaves, agree));
    }
    return agree;
  }

  // at: the block's place in `leaves`.
  absl::Status CompareBlockOfAll(size_t tensor, size_t at, const std::vector<std::vector<int>>& contents,
                                 const std::vector<std::string>& leaves,
                                 std::vector<std::vector<bool>>& agree) {
    const auto block = static_cast<int64_t>(at / kDigestBytes);
    const auto same = [&](size_t a, size_t b) {
      return leaves[a].compare(at, kDigestBytes, leaves[b], at, kDigestBytes) == 0;
    };
    std::vector<std::string> pivots;
    for (size_t i = 0; i < contents.size(); ++i) {
      const size_t num_pivots = std::min(i, agree.size());
      bool is_needed = i < agree.size() && !std::all_of(leaves.begin(), leaves.end(), [&](const auto& leaf) {
                         return leaf.compare(at, kDigestBytes, leaves[i], at, kDigestBytes) == 0;
                       });
      for (size_t pivot = 0; pivot < num_pivots; ++pivot) {
        is_needed = is_needed || (agree[pivot][i] && !same(pivot, i));
      }
      std::string bytes;
      if (is_needed) {
        OTT_ASSIGN_OR_RETURN(bytes, inquiry_.Block(tensor, block, contents[i].front()));
      }
      for (size_t pivot = 0; pivot < num_pivots; ++pivot) {
        if (!agree[pivot][i] || same(pivot, i)) continue;
        const bool agrees = AreWithinTolerance(tensor, bytes, pivots[pivot]);
        agree[pivot][i] = agrees;
        if (i < agree.size()) agree[i][pivot] = agrees;
      }
      if (i < agree.size()) pivots.push_back(std::move(bytes));
    }
    return absl::OkStatus();
  }

  // NaN on both sides is no difference.
  TensorCompareOptions WithTolerance() const {
    TensorCompareOptions options;
    options.tolerance = *options_.tolerance;
    options.tolerance.nan_equal = true;
    return options;
  }

  // Each of the other.
  bool AreWithinTolerance(size_t tensor, const std::string& a, const std::string& b) {
    const TensorCompareOptions options = WithTolerance();
    const TensorComparison comparison = CompareBlock(tensor, a, b, options);
    AddErrors(comparison);
    if (!Passes(comparison.status)) return false;
    return options.tolerance.rtol == 0 || Passes(CompareBlock(tensor, b, a, options).status);
  }

  void AddErrors(const TensorComparison& comparison) {
    if (comparison.max_abs_error) {
      verdict_.set_max_abs_error(std::max(verdict_.max_abs_error(), comparison.max_abs_error->error));
    }
    if (comparison.max_rel_error) {
      verdict_.set_max_rel_error(std::max(verdict_.max_rel_error(), comparison.max_rel_error->error));
    }
  }

  // The first element that is beyond the tolerance, of all blocks that differ.
  absl::StatusOr<std::optional<FirstDifference>> FirstBeyond(size_t tensor, const std::vector<int>& ranks,
                                                             int expected_rank) {
    if (IsText(tensors_[tensor])) return DifferenceOfTexts(tensor, ranks, expected_rank);
    OTT_ASSIGN_OR_RETURN(const std::vector<int64_t> blocks,
                         inquiry_.DifferentBlocks(tensor, ranks.front(), expected_rank));
    const TensorCompareOptions options = WithTolerance();
    for (const int64_t block : blocks) {
      OTT_ASSIGN_OR_RETURN(const std::string bytes, inquiry_.Block(tensor, block, ranks.front()));
      OTT_ASSIGN_OR_RETURN(const std::string expected, inquiry_.Block(tensor, block, expected_rank));
      const TensorComparison comparison = CompareBlock(tensor, bytes, expected, options);
      if (comparison.worst.empty()) continue;
      const ElementDifference& worst = comparison.worst.front();
      return MakeDifference(ranks, tensor, block, worst, comparison.first_bit_difference);
    }
    return std::optional<FirstDifference>();
  }

  RanksOfBytes GroupsOfTensor(const ReplicaInquiry::Window& window, size_t tensor) const {
    RanksOfBytes groups;
    for (const auto& [bytes, ranks] : window.digests) {
      std::vector<int>& group = groups[bytes.substr((tensor - window.begin) * kDigestBytes, kDigestBytes)];
      group.insert(group.end(), ranks.begin(), ranks.end());
      std::sort(group.begin(), group.end());
    }
    return groups;
  }

  void DescribeTensor(size_t tensor) {
    verdict_.set_tensor(tensors_[tensor].path);
    verdict_.set_tensor_position(static_cast<int64_t>(tensors_.PlaceOf(tensor)));
    verdict_.set_dtype(DTypeNameOf(tensors_[tensor]));
    if (IsText(tensors_[tensor])) return;
    for (const int64_t extent : tensors_[tensor].tensor.view.shape()) verdict_.add_shape(extent);
  }

  // Narrows the difference of one tensor down to an element.
  void Locate(size_t tensor, const RanksOfBytes& groups) {
    DescribeTensor(tensor);
    bool has_majority = false;
    const auto expected = Expected(groups, has_majority);
    SetCulprits(groups, expected, has_majority);
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      if (group == expected) continue;
      if (verdict_.differences_size() == kMaxDifferences) break;
      const absl::Status status = LocateElement(tensor, group->second, expected->second.front());
      if (!status.ok()) AddReason(absl::StrCat("not located: ", status.message()), verdict_);
    }
  }

  absl::Status LocateElement(size_t tensor, const std::vector<int>& culprits, int expected_rank) {
    if (IsText(tensors_[tensor])) {
      OTT_ASSIGN_OR_RETURN(*verdict_.add_differences(), DifferenceOfTexts(tensor, culprits, expected_rank));
      return absl::OkStatus();
    }
    OTT_ASSIGN_OR_RETURN(const std::vector<int64_t> blocks,
                         inquiry_.DifferentBlocks(tensor, culprits.front(), expected_rank));
    const int64_t block = blocks.front();
    OTT_ASSIGN_OR_RETURN(const std::string bytes, inquiry_.Block(tensor, block, culprits.front()));
    OTT_ASSIGN_OR_RETURN(const std::string expected, inquiry_.Block(tensor, block, expected_rank));
    TensorCompareOptions options;
    options.tolerance.bitwise = true;
    const std::optional<BitDifference> bits =
        CompareBlock(tensor, bytes, expected, options).first_bit_difference;
    if (!bits) return absl::InternalError("the tensor changed during the check");
    *verdict_.add_differences() = MakeDifference(culprits, tensor, block, bits->element, bits);
    return absl::OkStatus();
  }

  TensorComparison CompareBlock(size_t tensor, const std::string& bytes, const std::string& expected,
                                const TensorCompareOptions& options) const {
    const DType dtype = tensors_[tensor].tensor.view.dtype();
    const auto view = [&](const std::string& block) {
      return TensorView(block.data(), dtype, {static_cast<int64_t>(block.size()) / SizeOf(dtype)});
    };
    return CompareTensors(view(expected), view(bytes), options);
  }

  absl::StatusOr<FirstDifference> DifferenceOfTexts(size_t tensor, const std::vector<int>& ranks,
                                                    int expected_rank) {
    OTT_ASSIGN_OR_RETURN(const std::string text, inquiry_.Block(tensor, 0, ranks.front()));
    OTT_ASSIGN_OR_RETURN(const std::string expected, inquiry_.Block(tensor, 0, expected_rank));
    FirstDifference difference = DifferenceOf(ranks);
    const auto [at, unused] = std::mismatch(text.begin(), text.end(), expected.begin(), expected.end());
    const auto first = static_cast<size_t>(at - text.begin());
    difference.set_element(static_cast<int64_t>(first));
    difference.set_value(QuoteFrom(text, first));
    difference.set_expected(QuoteFrom(expected, first));
    return difference;
  }

  FirstDifference DifferenceOf(const std::vector<int>& ranks) const {
    FirstDifference difference;
    for (const int rank : ranks) {
      difference.add_ranks(members_.Name(rank));
      difference.add_hosts(ranks_.host(rank));
    }
    return difference;
  }

  // bits: of the block's first element that has others, which need not be this one.
  FirstDifference MakeDifference(const std::vector<int>& ranks, size_t tensor, int64_t block,
                                 const ElementDifference& element,
                                 const std::optional<BitDifference>& bits) const {
    const TensorView& view = tensors_[tensor].tensor.view;
    FirstDifference difference = DifferenceOf(ranks);
    difference.set_element(block * (kDigestBlockBytes / SizeOf(view.dtype())) + element.position);
    for (const int64_t i : IndexAt(view.shape(), difference.element())) difference.add_index(i);
    difference.set_value(element.current_text);
    difference.set_expected(element.reference_text);
    if (!bits || bits->element.position != element.position) return difference;
    if (bits->ulp_distance) difference.set_ulp_distance(*bits->ulp_distance);
    for (const int bit : bits->flipped_bits) difference.add_flipped_bits(bit);
    return difference;
  }

  const Communicator& ranks_;
  const ReplicaCheckOptions& options_;
  const ReplicaTensors& tensors_;
  ReplicaInquiry inquiry_;
  const Members& members_;
  const Deadline announced_;
  std::map<int, ReplicaAnnouncement> announcements_;  // by rank
  CrossCheckVerdict verdict_;
};

}  // namespace

CrossCheckVerdict DecideOnReplicas(Communicator& ranks, const ReplicaCheckOptions& options,
                                   const ReplicaTensors& tensors, const ReplicaAnnouncement& mine,
                                   uint64_t check, Deadline announced, Deadline decided) {
  return VerdictBuilder(ranks, options, tensors, check, announced, decided).Decide(mine);
}

CrossCheckVerdict AllReplicasEqual(const ReplicaCheckOptions& options, const ReplicaTensors& tensors,
                                   const ReplicaAnnouncement& mine) {
  CrossCheckVerdict verdict = DescribeCheck(options, tensors, mine);
  verdict.set_outcome(tensors.size() == 0 ? NOT_COMPARED : BITWISE_EQUAL);
  verdict.set_worst_outcome(verdict.outcome());
  if (tensors.size() == 0) verdict.set_reason(kNothingToCompare);
  return verdict;
}

}  // namespace ott::internal
