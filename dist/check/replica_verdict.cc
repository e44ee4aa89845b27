#include "replica_verdict.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_join.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/tensor_comparison.h"

namespace ott::internal {
namespace {

// Groups of culprits whose elements are looked up.
constexpr size_t kMaxDifferences = 4;
// With a tolerance, contents that all others are compared with.
constexpr size_t kMaxPivots = 16;
// With a tolerance, of one tensor on all ranks, on rank 0.
constexpr size_t kMaxLeavesBytes = 256 << 20;

std::string Describe(const TensorSchema& tensor) {
  return absl::StrCat(tensor.dtype(), " [", absl::StrJoin(tensor.shape(), ", "), "]");
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
        members_(ranks, options.names),
        options_(options),
        tensors_(tensors),
        check_(check),
        announced_(announced),
        decided_(decided) {}

  CrossCheckVerdict Decide(const ReplicaAnnouncement& mine) {
    verdict_ = DescribeCheck(options_, tensors_, mine);
    ReceiveAnnouncements(mine);
    if (!CanCompare()) return verdict_;
    if (!SameSchema()) return verdict_;
    CompareContents();
    return verdict_;
  }

 private:
  using RanksOfBytes = std::map<std::string, std::vector<int>>;

  // The next answer to this check.
  absl::StatusOr<ReplicaAnswer> Receive(int rank, Deadline deadline) {
    while (true) {
      absl::StatusOr<std::string> bytes =
          options_.silent->Receive(ranks_, rank, members_.Name(rank), kToRoot, deadline);
      if (absl::IsDeadlineExceeded(bytes.status())) {
        return absl::DeadlineExceededError(members_.TooLate({rank}, deadline));
      }
      if (!bytes.ok()) return bytes.status();
      ReplicaAnswer answer;
      if (!answer.ParseFromString(*bytes)) {
        return absl::InternalError(
            absl::StrCat(members_.Describe(rank), " sent ", bytes->size(), " bytes that are no answer"));
      }
      if (answer.check() == check_) return answer;
    }
  }

  absl::StatusOr<ReplicaAnswer> Ask(int rank, ReplicaRequest request) {
    request.set_check(check_);
    if (rank == ranks_.rank()) return tensors_.Answer(request);
    OTT_RETURN_IF_ERROR(ranks_.Post(rank, kFromRoot, request.SerializeAsString()));
    OTT_ASSIGN_OR_RETURN(ReplicaAnswer answer, Receive(rank, decided_));
    if (answer.has_error()) {
      return absl::UnavailableError(absl::StrCat(members_.Describe(rank), ": ", answer.error()));
    }
    return answer;
  }

  void ReceiveAnnouncements(const ReplicaAnnouncement& mine) {
    std::vector<int> late;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      if (rank == ranks_.rank()) {
        announcements_[rank] = mine;
        continue;
      }
      absl::StatusOr<ReplicaAnswer> answer = Receive(rank, announced_);
      if (answer.ok()) {
        announcements_[rank] = answer->announcement();
      } else {
        verdict_.add_missing_ranks(members_.Name(rank));
        if (absl::IsDeadlineExceeded(answer.status())) {
          late.push_back(rank);
        } else {
          AddReason(std::string(answer.status().message()));
        }
      }
    }
    if (!late.empty()) AddReason(members_.TooLate(late, announced_));
  }

  void AddReason(std::string_view reason) {
    absl::StrAppend(verdict_.mutable_reason(), verdict_.reason().empty() ? "" : "; ", std::string(reason));
  }

  void NotCompared(std::string_view reason) {
    verdict_.set_outcome(NOT_COMPARED);
    AddReason(reason);
  }

  bool CanCompare() {
    for (auto announced = announcements_.begin(); announced != announcements_.end();) {
      const auto& [rank, announcement] = *announced;
      if (announcement.error().empty()) {
        ++announced;
        continue;
      }
      AddReason(absl::StrCat(members_.Describe(rank), ": ", announcement.error()));
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

  // Of all ranks, also of those that did not answer.
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

  // Names everyone outside the expected group.
  void SetCulprits(const RanksOfBytes& groups, RanksOfBytes::const_iterator expected, bool has_majority) {
    verdict_.set_outcome(DIFFERENT);
    verdict_.set_has_majority(has_majority);
    if (!has_majority) return;
    std::vector<int> culprits;
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      if (group != expected) culprits.insert(culprits.end(), group->second.begin(), group->second.end());
    }
    std::sort(culprits.begin(), culprits.end());
    for (const int rank : culprits) {
      verdict_.add_culprit_ranks(members_.Name(rank));
      verdict_.add_culprit_hosts(ranks_.host(rank));
    }
  }

  // And in nothing else.
  static bool DifferInOrder(const std::map<std::string, absl::StatusOr<ReplicaAnswer>>& schemas) {
    std::optional<std::vector<std::string>> first;
    for (const auto& [unused, answer] : schemas) {
      if (!answer.ok()) return false;
      std::vector<std::string> tensors;
      for (const TensorSchema& tensor : answer->schema().tensors()) {
        tensors.push_back(absl::StrCat(tensor.path(), " ", Describe(tensor)));
      }
      std::sort(tensors.begin(), tensors.end());
      if (!first.has_value()) first = tensors;
      if (tensors != *first) return false;
    }
    return true;
  }

  bool SameSchema() {
    const RanksOfBytes groups = GroupBy(&ReplicaAnnouncement::schema_digest);
    if (groups.size() == 1) return true;
    ReplicaRequest request;
    request.set_schema(true);
    std::map<std::string, absl::StatusOr<ReplicaAnswer>> schemas;
    for (const auto& [schema, ranks] : groups) schemas.emplace(schema, Ask(ranks.front(), request));
    if (DifferInOrder(schemas)) {
      NotCompared("the ranks have the same tensors in another order; threads that add tensors have none");
      return false;
    }
    bool has_majority = false;
    const auto expected = Expected(groups, has_majority);
    SetCulprits(groups, expected, has_majority);
    const absl::StatusOr<ReplicaAnswer>& expected_schema = schemas.at(expected->first);
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      if (group == expected) continue;
      const absl::StatusOr<ReplicaAnswer>& schema = schemas.at(group->first);
      if (!expected_schema.ok() || !schema.ok()) {
        AddReason(absl::StrCat(members_.DescribeAll(group->second),
                               ": other names, dtypes or shapes, not shown: ",
                               (schema.ok() ? expected_schema : schema).status().message()));
        continue;
      }
      DescribeSchemas(group->second, schema->schema(), expected->second, expected_schema->schema());
    }
    return false;
  }

  // Says what is the first tensor that is not the same.
  void DescribeSchemas(const std::vector<int>& ranks, const ReplicaSchema& schema,
                       const std::vector<int>& expected_ranks, const ReplicaSchema& expected) {
    const auto at = [](const ReplicaSchema& of, int i) {
      return i < of.tensors_size() ? absl::StrCat("\"", of.tensors(i).path(), "\" ", Describe(of.tensors(i)))
                                   : std::string("missing");
    };
    for (int i = 0; i < std::max(schema.tensors_size(), expected.tensors_size()); ++i) {
      if (at(schema, i) == at(expected, i)) continue;
      if (verdict_.tensor().empty()) {
        verdict_.set_tensor(i < schema.tensors_size() ? schema.tensors(i).path()
                                                      : expected.tensors(i).path());
      }
      AddReason(absl::StrCat("tensor ", i, " is ", at(schema, i), " on ", members_.DescribeAll(ranks), ", ",
                             at(expected, i), " on ", members_.DescribeAll(expected_ranks)));
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
      if (options_.tolerance) Worsen(NOT_COMPARED);
      AddReason(absl::StrCat("not located: ", status.message()));
    }
    if (verdict_.missing_ranks_size() > 0) Worsen(NOT_COMPARED);
  }

  // WITHIN_TOLERANCE becomes what is worse.
  void Worsen(Outcome outcome) {
    if (verdict_.outcome() == WITHIN_TOLERANCE) verdict_.set_outcome(outcome);
  }

  // The first tensor beyond the tolerance, or else the first that differs, is the one that is located.
  absl::Status CompareTensorByTensor(const RanksOfBytes& groups) {
    for (size_t begin = 0; begin < tensors_.size();) {
      OTT_ASSIGN_OR_RETURN(const Window window, FirstDifferentFrom(begin, groups));
      for (size_t tensor = window.begin; tensor < window.end; ++tensor) {
        const RanksOfBytes of_tensor = GroupsOfTensor(window, tensor);
        if (of_tensor.size() == 1) continue;
        verdict_.set_num_different_tensors(verdict_.num_different_tensors() + 1);
        if (!verdict_.tensor().empty() || verdict_.outcome() == NOT_COMPARED) continue;
        if (options_.tolerance) {
          CompareWithTolerance(tensor, of_tensor);
        } else {
          Locate(tensor, of_tensor);
        }
      }
      begin = window.end;
      if (!verdict_.tensor().empty() && begin < tensors_.size()) {
        AddReason(absl::StrCat("tensors from ", begin, " on are not counted"));
        break;
      }
    }
    return absl::OkStatus();
  }

  // The digests of some tensors, by group.
  struct Window {
    size_t begin = 0;
    size_t end = 0;
    std::vector<std::pair<std::string, std::vector<int>>> digests;
  };

  absl::StatusOr<Window> AskForDigests(size_t begin, size_t end, bool combined, const RanksOfBytes& groups) {
    Window window{begin, end, {}};
    ReplicaRequest request;
    request.mutable_digests()->set_begin(static_cast<int64_t>(begin));
    request.mutable_digests()->set_end(static_cast<int64_t>(end));
    request.mutable_digests()->set_combined(combined);
    for (const auto& [unused, ranks] : groups) {
      OTT_ASSIGN_OR_RETURN(const ReplicaAnswer answer, Ask(ranks.front(), request));
      if (answer.digests().size() != (combined ? 1 : end - begin) * kDigestBytes) {
        return absl::InternalError("a list of digests has another length");
      }
      window.digests.emplace_back(answer.digests(), ranks);
    }
    return window;
  }

  absl::StatusOr<bool> AreEqual(size_t begin, size_t end, const RanksOfBytes& groups) {
    OTT_ASSIGN_OR_RETURN(const Window window, AskForDigests(begin, end, /*combined=*/true, groups));
    return std::all_of(window.digests.begin(), window.digests.end(),
                       [&](const auto& digest) { return digest.first == window.digests.front().first; });
  }

  // A window that holds the first tensor from `begin` on that differs, if any does; as many tensors as
  // options_.max_digest_bytes allows.
  absl::StatusOr<Window> FirstDifferentFrom(size_t begin, const RanksOfBytes& groups) {
    const size_t length =
        std::max<size_t>(1, options_.max_digest_bytes / kDigestBytes / std::max<size_t>(groups.size(), 1));
    size_t end = tensors_.size();
    while (end - begin > length) {
      const size_t middle = begin + (end - begin) / 2;
      OTT_ASSIGN_OR_RETURN(const bool equal, AreEqual(begin, middle, groups));
      (equal ? begin : end) = middle;
    }
    return AskForDigests(begin, end, /*combined=*/false, groups);
  }

  void CompareWithTolerance(size_t tensor, const RanksOfBytes& groups) {
    const absl::Status status = CompareAllWithTolerance(tensor, groups);
    if (status.ok()) return;
    Worsen(NOT_COMPARED);
    AddReason(absl::StrCat(tensors_[tensor].path, ": not compared: ", status.message()));
  }

  // Whose tensor agrees with that of most ranks is as good as any other of the kind, and who agrees with none
  // of these is a culprit. So nobody's place decides.
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
    RanksOfBytes culprits;
    for (size_t i = 0; i < contents.size(); ++i) {
      if (!is_good[i] && IsMajority(most)) culprits[absl::StrCat(i)] = contents[i];
    }
    DescribeTensor(tensor);
    SetCulprits(culprits, culprits.end(), !culprits.empty());
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
  // that.
  absl::StatusOr<std::vector<std::vector<bool>>> AgreementsOf(size_t tensor,
                                                              const std::vector<std::vector<int>>& contents) {
    const size_t num_pivots = std::min(contents.size(), kMaxPivots);
    std::vector<std::vector<bool>> agree(num_pivots, std::vector<bool>(contents.size(), true));
    std::vector<std::string> leaves;
    ReplicaRequest request;
    request.set_leaves_of_tensor(static_cast<int64_t>(tensor));
    for (const std::vector<int>& ranks : contents) {
      OTT_ASSIGN_OR_RETURN(ReplicaAnswer answer, Ask(ranks.front(), request));
      if (!leaves.empty() && leaves[0].size() != answer.leaves().size()) {
        return absl::InternalError("the tensor has other blocks");
      }
      leaves.push_back(std::move(*answer.mutable_leaves()));
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
        OTT_ASSIGN_OR_RETURN(bytes, AskForBlock(tensor, block, contents[i].front()));
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

  // Each of the other.
  bool AreWithinTolerance(size_t tensor, const std::string& a, const std::string& b) {
    TensorCompareOptions options;
    options.tolerance = *options_.tolerance;
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
    OTT_ASSIGN_OR_RETURN(const std::vector<int64_t> blocks,
                         DifferentBlocks(tensor, ranks.front(), expected_rank));
    TensorCompareOptions options;
    options.tolerance = *options_.tolerance;
    for (const int64_t block : blocks) {
      OTT_ASSIGN_OR_RETURN(const std::string bytes, AskForBlock(tensor, block, ranks.front()));
      OTT_ASSIGN_OR_RETURN(const std::string expected, AskForBlock(tensor, block, expected_rank));
      const TensorComparison comparison = CompareBlock(tensor, bytes, expected, options);
      if (comparison.worst.empty()) continue;
      const ElementDifference& worst = comparison.worst.front();
      return MakeDifference(ranks, tensor, block, worst, comparison.first_bit_difference);
    }
    return std::optional<FirstDifference>();
  }

  RanksOfBytes GroupsOfTensor(const Window& window, size_t tensor) const {
    RanksOfBytes groups;
    for (const auto& [bytes, ranks] : window.digests) {
      std::vector<int>& group = groups[bytes.substr((tensor - window.begin) * kDigestBytes, kDigestBytes)];
      group.insert(group.end(), ranks.begin(), ranks.end());
      std::sort(group.begin(), group.end());
    }
    return groups;
  }

  void DescribeTensor(size_t tensor) {
    const TensorView& view = tensors_[tensor].tensor.view;
    verdict_.set_tensor(tensors_[tensor].path);
    verdict_.set_tensor_position(static_cast<int64_t>(tensor));
    verdict_.set_dtype(std::string(Name(view.dtype())));
    for (const int64_t extent : view.shape()) verdict_.add_shape(extent);
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
      if (!status.ok()) AddReason(absl::StrCat("not located: ", status.message()));
    }
  }

  absl::Status LocateElement(size_t tensor, const std::vector<int>& culprits, int expected_rank) {
    OTT_ASSIGN_OR_RETURN(const std::vector<int64_t> blocks,
                         DifferentBlocks(tensor, culprits.front(), expected_rank));
    const int64_t block = blocks.front();
    OTT_ASSIGN_OR_RETURN(const std::string bytes, AskForBlock(tensor, block, culprits.front()));
    OTT_ASSIGN_OR_RETURN(const std::string expected, AskForBlock(tensor, block, expected_rank));
    TensorCompareOptions options;
    options.tolerance.bitwise = true;
    const std::optional<BitDifference> bits =
        CompareBlock(tensor, bytes, expected, options).first_bit_difference;
    if (!bits) return absl::InternalError("the tensor changed during the check");
    *verdict_.add_differences() = MakeDifference(culprits, tensor, block, bits->element, bits);
    return absl::OkStatus();
  }

  // At least one.
  absl::StatusOr<std::vector<int64_t>> DifferentBlocks(size_t tensor, int rank, int expected_rank) {
    ReplicaRequest request;
    request.set_leaves_of_tensor(static_cast<int64_t>(tensor));
    OTT_ASSIGN_OR_RETURN(const ReplicaAnswer theirs, Ask(rank, request));
    OTT_ASSIGN_OR_RETURN(const ReplicaAnswer expected, Ask(expected_rank, request));
    if (theirs.leaves().size() != expected.leaves().size()) {
      return absl::InternalError("the tensor has other blocks");
    }
    std::vector<int64_t> blocks;
    for (size_t leaf = 0; leaf < theirs.leaves().size(); leaf += kDigestBytes) {
      if (theirs.leaves().compare(leaf, kDigestBytes, expected.leaves(), leaf, kDigestBytes) != 0) {
        blocks.push_back(static_cast<int64_t>(leaf / kDigestBytes));
      }
    }
    if (blocks.empty()) return absl::InternalError("the blocks have the same digests");
    return blocks;
  }

  absl::StatusOr<std::string> AskForBlock(size_t tensor, int64_t block, int rank) {
    ReplicaRequest request;
    request.mutable_block()->set_tensor(static_cast<int64_t>(tensor));
    request.mutable_block()->set_block(block);
    OTT_ASSIGN_OR_RETURN(ReplicaAnswer answer, Ask(rank, request));
    return std::move(*answer.mutable_block());
  }

  TensorComparison CompareBlock(size_t tensor, const std::string& bytes, const std::string& expected,
                                const TensorCompareOptions& options) const {
    const DType dtype = tensors_[tensor].tensor.view.dtype();
    const auto view = [&](const std::string& block) {
      return TensorView(block.data(), dtype, {static_cast<int64_t>(block.size()) / SizeOf(dtype)});
    };
    return CompareTensors(view(expected), view(bytes), options);
  }

  // bits: of the block's first element that has others, which need not be this one.
  FirstDifference MakeDifference(const std::vector<int>& ranks, size_t tensor, int64_t block,
                                 const ElementDifference& element,
                                 const std::optional<BitDifference>& bits) const {
    const TensorView& view = tensors_[tensor].tensor.view;
    FirstDifference difference;
    for (const int rank : ranks) {
      difference.add_ranks(members_.Name(rank));
      difference.add_hosts(ranks_.host(rank));
    }
    difference.set_element(block * (kDigestBlockBytes / SizeOf(view.dtype())) + element.position);
    for (const int64_t i : IndexAt(view.shape(), difference.element())) difference.add_index(i);
    difference.set_value(element.current_text);
    difference.set_expected(element.reference_text);
    if (!bits || bits->element.position != element.position) return difference;
    if (bits->ulp_distance) difference.set_ulp_distance(*bits->ulp_distance);
    for (const int bit : bits->flipped_bits) difference.add_flipped_bits(bit);
    return difference;
  }

  Communicator& ranks_;
  const Members members_;
  const ReplicaCheckOptions& options_;
  const ReplicaTensors& tensors_;
  const uint64_t check_;
  const Deadline announced_;
  const Deadline decided_;
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
