#include "ott/dist/replica_check.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/digest.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/dist/rank_list.h"
#include "ott/dist/replica_check.pb.h"

namespace ott {
namespace {

using internal::ReplicaAnnouncement;
using internal::ReplicaAnswer;
using internal::ReplicaRequest;
using internal::ReplicaSchema;
using internal::TensorSchema;

constexpr int kToRoot = 0;
constexpr int kFromRoot = 1;
// Groups of culprits whose elements are looked up.
constexpr size_t kMaxDifferences = 4;

std::string ToBytes(const Digest& digest) {
  std::string bytes(sizeof(digest.low) + sizeof(digest.high), '\0');
  std::memcpy(bytes.data(), &digest.low, sizeof(digest.low));
  std::memcpy(bytes.data() + sizeof(digest.low), &digest.high, sizeof(digest.high));
  return bytes;
}
constexpr size_t kDigestBytes = 16;

absl::StatusOr<std::string> DigestOf(std::string_view bytes) {
  OTT_ASSIGN_OR_RETURN(
      const TensorDigest digest,
      ComputeDigest(TensorView(bytes.data(), DType::kUInt8, {static_cast<int64_t>(bytes.size())})));
  return ToBytes(digest.root);
}

std::string Describe(const TensorSchema& tensor) {
  return absl::StrCat(tensor.dtype(), " [", absl::StrJoin(tensor.shape(), ", "), "]");
}

}  // namespace

// This rank's tensors and what it tells of them.
class internal::ReplicaTensors {
 public:
  explicit ReplicaTensors(absl::Span<const NamedTensor> tensors) : tensors_(tensors) {}

  ReplicaAnnouncement Announce(int64_t iteration) {
    ReplicaAnnouncement announcement;
    announcement.set_iteration(iteration);
    if (const absl::Status status = ComputeDigests(announcement); !status.ok()) {
      announcement.set_error(std::string(status.message()));
    }
    return announcement;
  }

  ReplicaAnswer Answer(const ReplicaRequest& request) const {
    ReplicaAnswer answer;
    answer.set_check(request.check());
    if (request.has_schema()) {
      *answer.mutable_schema() = Schema();
    } else if (request.has_digests()) {
      for (const TensorDigest& digest : digests_) answer.mutable_digests()->append(ToBytes(digest.root));
    } else if (request.has_leaves_of_tensor()) {
      answer.mutable_leaves();
      for (const Digest& leaf : digests_[request.leaves_of_tensor()].leaves) {
        answer.mutable_leaves()->append(ToBytes(leaf));
      }
    } else {
      absl::StatusOr<std::string> block = Block(request.block().tensor(), request.block().block());
      if (block.ok()) {
        answer.set_block(*std::move(block));
      } else {
        answer.set_error(std::string(block.status().message()));
      }
    }
    return answer;
  }

  size_t size() const { return tensors_.size(); }
  const NamedTensor& operator[](size_t tensor) const { return tensors_[tensor]; }

 private:
  absl::Status ComputeDigests(ReplicaAnnouncement& announcement) {
    std::string all;
    for (const NamedTensor& tensor : tensors_) {
      absl::StatusOr<TensorDigest> digest = ComputeDigest(tensor.tensor.view);
      if (!digest.ok()) {
        return absl::Status(digest.status().code(),
                            absl::StrCat(tensor.path, ": ", digest.status().message()));
      }
      all.append(ToBytes(digest->root));
      digests_.push_back(*std::move(digest));
    }
    OTT_ASSIGN_OR_RETURN(*announcement.mutable_tensors_digest(), DigestOf(all));
    OTT_ASSIGN_OR_RETURN(*announcement.mutable_schema_digest(), DigestOf(Schema().SerializeAsString()));
    return absl::OkStatus();
  }

  ReplicaSchema Schema() const {
    ReplicaSchema schema;
    for (const NamedTensor& tensor : tensors_) {
      TensorSchema& description = *schema.add_tensors();
      description.set_path(tensor.path);
      description.set_dtype(std::string(Name(tensor.tensor.view.dtype())));
      for (const int64_t extent : tensor.tensor.view.shape()) description.add_shape(extent);
    }
    return schema;
  }

  absl::StatusOr<std::string> Block(int64_t tensor, int64_t block) const {
    const TensorView& view = tensors_[tensor].tensor.view;
    Tensor host{view, nullptr};
    if (view.device().kind != Device::Kind::kHost || !view.is_contiguous()) {
      OTT_ASSIGN_OR_RETURN(host, CloneToHost(view));
    }
    const int64_t begin = block * kDigestBlockBytes;
    const int64_t length = std::min(kDigestBlockBytes, view.num_bytes() - begin);
    return std::string(static_cast<const char*>(host.view.data()) + begin, length);
  }

  const absl::Span<const NamedTensor> tensors_;
  std::vector<TensorDigest> digests_;
};

namespace {

using internal::ReplicaTensors;

std::string TooLate(const Communicator& ranks, int rank, Deadline deadline) {
  return absl::StrCat("nothing from rank ", rank, " (", ranks.host(rank), ") within ", deadline.Seconds(),
                      " s");
}

// Rank 0's part: asks, and comes to the verdict.
class Judge {
 public:
  // Who has not announced anything by `announced` is missing; the rest is done by `decided`.
  Judge(Communicator& ranks, const ReplicaTensors& tensors, uint64_t check, Deadline announced,
        Deadline decided)
      : ranks_(ranks), tensors_(tensors), check_(check), announced_(announced), decided_(decided) {}

  CrossCheckVerdict Decide(const ReplicaAnnouncement& mine) {
    verdict_.set_mode(REPLICAS);
    verdict_.set_iteration(mine.iteration());
    verdict_.set_num_tensors(static_cast<int64_t>(tensors_.size()));
    HearAnnouncements(mine);
    if (!CanCompare()) return verdict_;
    if (!SameSchema()) return verdict_;
    CompareContents();
    return verdict_;
  }

 private:
  using RanksOfBytes = std::map<std::string, std::vector<int>>;

  // The next answer to this check.
  absl::StatusOr<ReplicaAnswer> Hear(int rank, Deadline deadline) {
    while (true) {
      absl::StatusOr<std::string> bytes = ranks_.Receive(rank, kToRoot, deadline);
      if (absl::IsDeadlineExceeded(bytes.status())) {
        return absl::DeadlineExceededError(TooLate(ranks_, rank, deadline));
      }
      if (!bytes.ok()) return bytes.status();
      ReplicaAnswer answer;
      if (!answer.ParseFromString(*bytes)) {
        return absl::InternalError(
            absl::StrCat("rank ", rank, " sent ", bytes->size(), " bytes that are no answer"));
      }
      if (answer.check() == check_) return answer;
    }
  }

  absl::StatusOr<ReplicaAnswer> Ask(int rank, ReplicaRequest request) {
    request.set_check(check_);
    if (rank == ranks_.rank()) return tensors_.Answer(request);
    OTT_RETURN_IF_ERROR(ranks_.Post(rank, kFromRoot, request.SerializeAsString()));
    OTT_ASSIGN_OR_RETURN(ReplicaAnswer answer, Hear(rank, decided_));
    if (answer.has_error()) {
      return absl::UnavailableError(
          absl::StrCat("rank ", rank, " (", ranks_.host(rank), "): ", answer.error()));
    }
    return answer;
  }

  void HearAnnouncements(const ReplicaAnnouncement& mine) {
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      if (rank == ranks_.rank()) {
        announcements_[rank] = mine;
        continue;
      }
      absl::StatusOr<ReplicaAnswer> answer = Hear(rank, announced_);
      if (answer.ok()) {
        announcements_[rank] = answer->announcement();
      } else {
        verdict_.add_missing_ranks(rank);
        if (!absl::IsDeadlineExceeded(answer.status())) AddReason(std::string(answer.status().message()));
      }
    }
    if (verdict_.missing_ranks_size() > 0) {
      AddReason(absl::StrCat("nothing from ",
                             FormatRanks({verdict_.missing_ranks().begin(), verdict_.missing_ranks().end()}),
                             " within ", announced_.Seconds(), " s"));
    }
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
      AddReason(absl::StrCat("rank ", rank, " (", ranks_.host(rank), "): ", announcement.error()));
      verdict_.add_missing_ranks(rank);
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
        parts.push_back(absl::StrCat(FormatRanks(ranks), ": iteration ", iteration));
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

  // The group that more than half of the ranks are in, or else rank 0's.
  RanksOfBytes::const_iterator Expected(const RanksOfBytes& groups, bool& has_majority) const {
    const auto largest = std::max_element(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      return a.second.size() < b.second.size();
    });
    has_majority = 2 * largest->second.size() > announcements_.size();
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
      verdict_.add_culprit_ranks(rank);
      verdict_.add_culprit_hosts(ranks_.host(rank));
    }
  }

  bool SameSchema() {
    const RanksOfBytes groups = GroupBy(&ReplicaAnnouncement::schema_digest);
    if (groups.size() == 1) return true;
    bool has_majority = false;
    const auto expected = Expected(groups, has_majority);
    SetCulprits(groups, expected, has_majority);

    ReplicaRequest request;
    request.set_schema(true);
    const absl::StatusOr<ReplicaAnswer> expected_schema = Ask(expected->second.front(), request);
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      if (group == expected) continue;
      const absl::StatusOr<ReplicaAnswer> schema = Ask(group->second.front(), request);
      if (!expected_schema.ok() || !schema.ok()) {
        AddReason(absl::StrCat(FormatRanks(group->second), ": other names, dtypes or shapes, not shown: ",
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
                                   : std::string("no further tensor");
    };
    for (int i = 0; i < std::max(schema.tensors_size(), expected.tensors_size()); ++i) {
      if (at(schema, i) == at(expected, i)) continue;
      if (verdict_.tensor().empty()) {
        verdict_.set_tensor(i < schema.tensors_size() ? schema.tensors(i).path()
                                                      : expected.tensors(i).path());
      }
      AddReason(absl::StrCat("tensor ", i, " is ", at(schema, i), " on ", FormatRanks(ranks), ", ",
                             at(expected, i), " on ", FormatRanks(expected_ranks)));
      return;
    }
  }

  void CompareContents() {
    if (tensors_.size() == 0) return NotCompared("no tensor to compare");
    const RanksOfBytes groups = GroupBy(&ReplicaAnnouncement::tensors_digest);
    if (groups.size() == 1) {
      verdict_.set_outcome(verdict_.missing_ranks_size() == 0 ? BITWISE_EQUAL : NOT_COMPARED);
      return;
    }
    verdict_.set_outcome(DIFFERENT);
    std::vector<std::pair<std::string, std::vector<int>>> digests;  // of each group
    ReplicaRequest request;
    request.set_digests(true);
    for (const auto& [unused, ranks] : groups) {
      absl::StatusOr<ReplicaAnswer> answer = Ask(ranks.front(), request);
      if (!answer.ok() || answer->digests().size() != tensors_.size() * kDigestBytes) {
        return AddReason(absl::StrCat("not located: ", answer.ok() ? "a list of digests has another length"
                                                                   : std::string(answer.status().message())));
      }
      digests.emplace_back(answer->digests(), ranks);
    }
    std::optional<size_t> first;
    for (size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      if (GroupsOfTensor(digests, tensor).size() == 1) continue;
      verdict_.set_num_different_tensors(verdict_.num_different_tensors() + 1);
      if (!first) first = tensor;
    }
    if (first) Locate(*first, GroupsOfTensor(digests, *first));
  }

  RanksOfBytes GroupsOfTensor(const std::vector<std::pair<std::string, std::vector<int>>>& digests,
                              size_t tensor) const {
    RanksOfBytes groups;
    for (const auto& [bytes, ranks] : digests) {
      std::vector<int>& group = groups[bytes.substr(tensor * kDigestBytes, kDigestBytes)];
      group.insert(group.end(), ranks.begin(), ranks.end());
      std::sort(group.begin(), group.end());
    }
    return groups;
  }

  // Narrows the difference of one tensor down to an element.
  void Locate(size_t tensor, const RanksOfBytes& groups) {
    const TensorView& view = tensors_[tensor].tensor.view;
    verdict_.set_tensor(tensors_[tensor].path);
    verdict_.set_dtype(std::string(Name(view.dtype())));
    for (const int64_t extent : view.shape()) verdict_.add_shape(extent);
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
    ReplicaRequest leaves;
    leaves.set_leaves_of_tensor(static_cast<int64_t>(tensor));
    OTT_ASSIGN_OR_RETURN(const ReplicaAnswer theirs, Ask(culprits.front(), leaves));
    OTT_ASSIGN_OR_RETURN(const ReplicaAnswer expected, Ask(expected_rank, leaves));
    if (theirs.leaves().size() != expected.leaves().size()) {
      return absl::InternalError("the tensor has other blocks");
    }
    const auto leaf =
        std::mismatch(theirs.leaves().begin(), theirs.leaves().end(), expected.leaves().begin()).first;
    if (leaf == theirs.leaves().end()) return absl::InternalError("the blocks have the same digests");
    const int64_t block = (leaf - theirs.leaves().begin()) / static_cast<int64_t>(kDigestBytes);

    ReplicaRequest bytes;
    bytes.mutable_block()->set_tensor(static_cast<int64_t>(tensor));
    bytes.mutable_block()->set_block(block);
    OTT_ASSIGN_OR_RETURN(const ReplicaAnswer their_block, Ask(culprits.front(), bytes));
    OTT_ASSIGN_OR_RETURN(const ReplicaAnswer expected_block, Ask(expected_rank, bytes));
    if (their_block.block().size() != expected_block.block().size()) {
      return absl::InternalError("the blocks have different lengths");
    }
    return AddDifference(culprits, tensors_[tensor].tensor.view, block, their_block.block(),
                         expected_block.block());
  }

  absl::Status AddDifference(const std::vector<int>& culprits, const TensorView& view, int64_t block,
                             const std::string& bytes, const std::string& expected) {
    const int64_t element_size = SizeOf(view.dtype());
    const Dims elements = {static_cast<int64_t>(bytes.size()) / element_size};
    TensorCompareOptions options;
    options.tolerance.bitwise = true;
    const std::optional<BitDifference> bits =
        CompareTensors(TensorView(expected.data(), view.dtype(), elements),
                       TensorView(bytes.data(), view.dtype(), elements), options)
            .first_bit_difference;
    if (!bits) return absl::InternalError("the tensor changed during the check");

    FirstDifference& difference = *verdict_.add_differences();
    for (const int rank : culprits) {
      difference.add_ranks(rank);
      difference.add_hosts(ranks_.host(rank));
    }
    difference.set_element(block * (kDigestBlockBytes / element_size) + bits->element.position);
    for (const int64_t i : IndexAt(view.shape(), difference.element())) difference.add_index(i);
    difference.set_value(bits->element.current_text);
    difference.set_expected(bits->element.reference_text);
    if (bits->ulp_distance) difference.set_ulp_distance(*bits->ulp_distance);
    for (const int bit : bits->flipped_bits) difference.add_flipped_bits(bit);
    return absl::OkStatus();
  }

  Communicator& ranks_;
  const ReplicaTensors& tensors_;
  const uint64_t check_;
  const Deadline announced_;
  const Deadline decided_;
  std::map<int, ReplicaAnnouncement> announcements_;  // by rank
  CrossCheckVerdict verdict_;
};

// Answers rank 0 until it has come to its verdict.
CrossCheckVerdict Serve(Communicator& ranks, const ReplicaTensors& tensors, const ReplicaAnnouncement& mine,
                        uint64_t check, Deadline deadline) {
  CrossCheckVerdict failed;
  failed.set_mode(REPLICAS);
  failed.set_outcome(NOT_COMPARED);
  failed.set_iteration(mine.iteration());
  failed.set_num_tensors(static_cast<int64_t>(tensors.size()));

  ReplicaAnswer answer;
  answer.set_check(check);
  *answer.mutable_announcement() = mine;
  while (true) {
    if (const absl::Status status = ranks.Post(0, kToRoot, answer.SerializeAsString()); !status.ok()) {
      failed.set_reason(std::string(status.message()));
      return failed;
    }
    ReplicaRequest request;
    do {
      absl::StatusOr<std::string> bytes = ranks.Receive(0, kFromRoot, deadline);
      if (!bytes.ok() || !request.ParseFromString(*bytes)) {
        failed.set_reason(absl::IsDeadlineExceeded(bytes.status()) ? TooLate(ranks, 0, deadline)
                          : bytes.ok()                             ? "rank 0 sent bytes that are no request"
                                                                   : std::string(bytes.status().message()));
        return failed;
      }
    } while (request.check() != check);
    if (request.has_verdict()) return request.verdict();
    answer = tensors.Answer(request);
  }
}

}  // namespace

ReplicaCheck::ReplicaCheck(std::unique_ptr<Communicator> ranks, std::chrono::nanoseconds timeout)
    : ranks_(std::move(ranks)), timeout_(timeout) {}

CrossCheckVerdict ReplicaCheck::Run(int64_t iteration, absl::Span<const NamedTensor> named_tensors) {
  ReplicaTensors tensors(named_tensors);
  const ReplicaAnnouncement mine = tensors.Announce(iteration);
  return Run(mine, tensors);
}

CrossCheckVerdict ReplicaCheck::RunWithoutTensors(int64_t iteration, const absl::Status& problem) {
  OTT_CHECK(!problem.ok()) << "iteration " << iteration;
  ReplicaAnnouncement mine;
  mine.set_iteration(iteration);
  mine.set_error(std::string(problem.message()));
  return Run(mine, ReplicaTensors({}));
}

CrossCheckVerdict ReplicaCheck::Run(const ReplicaAnnouncement& mine, const ReplicaTensors& tensors) {
  const uint64_t check = ++num_checks_;
  CrossCheckVerdict verdict;
  if (ranks_->rank() == 0) {
    // Leaves the others time to answer questions and to hear the verdict.
    Judge judge(*ranks_, tensors, check, Deadline::After(timeout_ / 2), Deadline::After(timeout_ / 4 * 3));
    verdict = judge.Decide(mine);
    for (const int rank : verdict.culprit_ranks()) verdict.add_culprit_named_before(times_named_[rank]++);
    ReplicaRequest request;
    request.set_check(check);
    *request.mutable_verdict() = verdict;
    for (int rank = 1; rank < ranks_->size(); ++rank) {
      // Who cannot be reached is missing already, or will say so itself.
      (void)ranks_->Post(rank, kFromRoot, request.SerializeAsString());
    }
  } else {
    verdict = Serve(*ranks_, tensors, mine, check, Deadline::After(timeout_));
  }
  verdict.set_rank(ranks_->rank());
  verdict.set_host(ranks_->host(ranks_->rank()));
  return verdict;
}

}  // namespace ott
