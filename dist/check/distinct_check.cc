#include "ott/dist/check/distinct_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dist/check/replica_tensors.h"
#include "ott/core/digest/digest.h"
#include "ott/dist/check/distinct_check.pb.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

using internal::DistinctTensor;
using internal::DistinctTensors;

// The ranks that have the same elements, and the first one's tensor.
struct Holders {
  std::vector<int> ranks;
  DistinctTensor tensor;
};

DistinctTensors Describe(int64_t iteration, const std::vector<NamedTensor>& tensors,
                         const std::string& unmatched, const absl::Status& problem) {
  DistinctTensors description;
  description.set_iteration(iteration);
  description.set_unmatched(unmatched);
  if (!problem.ok()) description.set_error(std::string(problem.message()));
  for (const NamedTensor& tensor : tensors) {
    std::string digest = tensor.digest;
    if (tensor.content != NamedTensor::Content::kDigest) {
      const absl::StatusOr<TensorDigest> computed = ComputeDigest(tensor.tensor.view);
      if (!computed.ok()) {
        description.set_error(absl::StrCat(tensor.path, ": ", computed.status().message()));
        break;
      }
      digest = computed->root.ToString();
    }
    DistinctTensor& added = *description.add_tensors();
    added.set_path(tensor.path);
    added.set_dtype(internal::DTypeNameOf(tensor));
    for (const int64_t extent : tensor.tensor.view.shape()) added.add_shape(extent);
    // Ranks without elements have nothing that another one has, too; and an image may be that of other
    // tensors.
    const bool is_stand_in = tensor.content == NamedTensor::Content::kStandIn;
    if (tensor.tensor.view.num_elements() > 0 && !is_stand_in) added.set_digest(std::move(digest));
  }
  return description;
}

}  // namespace

DistinctCheck::DistinctCheck(std::unique_ptr<Communicator> ranks, std::chrono::nanoseconds timeout,
                             std::shared_ptr<SilentRanks> silent, std::vector<int64_t> groups,
                             RootExchange::AllGather all_gather)
    : groups_(std::move(groups)),
      exchange_(std::move(ranks), timeout, std::move(silent), std::move(all_gather)) {}

CrossCheckVerdict DistinctCheck::Run(int64_t iteration, const std::vector<NamedTensor>& tensors,
                                     const std::string& unmatched, const absl::Status& problem) {
  const absl::StatusOr<std::string> bytes =
      exchange_.Exchange(Describe(iteration, tensors, unmatched, problem).SerializeAsString(),
                         [&](const RootExchange::Contributions& contributions) -> RootExchange::Decision {
                           return {BuildVerdict(iteration, contributions).SerializeAsString(), false, ""};
                         });
  CrossCheckVerdict verdict;
  if (bytes.ok() && verdict.ParseFromString(*bytes)) return verdict;
  verdict.set_mode(DISTINCT);
  verdict.set_iteration(iteration);
  verdict.set_outcome(NOT_COMPARED);
  verdict.set_reason(std::string(bytes.status().message()));
  return verdict;
}

CrossCheckVerdict DistinctCheck::BuildVerdict(int64_t iteration,
                                              const RootExchange::Contributions& contributions) const {
  const Communicator& ranks = exchange_.ranks();
  CrossCheckVerdict verdict;
  verdict.set_mode(DISTINCT);
  verdict.set_iteration(iteration);
  verdict.set_outcome(ALL_DISTINCT);
  const auto not_compared = [&](const std::string& reason) {
    Worsen(NOT_COMPARED, verdict);
    AddReason(reason, verdict);
  };
  if (!contributions.problem.empty()) not_compared(contributions.problem);
  DistinctTensors of_rank_zero;
  of_rank_zero.ParseFromString(contributions.by_rank.at(0));
  const std::string& unmatched = of_rank_zero.unmatched();
  if (!unmatched.empty()) not_compared(unmatched);
  if (ranks.size() == 1) not_compared("one rank alone has nobody to differ from");
  // In rank 0's order of insertion; what it lacks behind it.
  std::vector<std::string> paths;
  std::map<std::string, std::map<std::string, Holders>> holders_of_digest;  // by path
  for (const auto& [rank, bytes] : contributions.by_rank) {
    DistinctTensors described;
    if (!described.ParseFromString(bytes)) {
      described.set_error(absl::StrCat(bytes.size(), " bytes that are no tensors"));
    } else if (described.iteration() != iteration && described.error().empty()) {
      described.set_error(absl::StrCat("is in iteration ", described.iteration()));
    }
    if (!described.error().empty()) {
      not_compared(absl::StrCat(FormatRank(rank, ranks.host(rank)), ": ", described.error()));
      continue;
    }
    for (const DistinctTensor& tensor : described.tensors()) {
      auto& of_path = holders_of_digest[tensor.path()];
      if (of_path.empty()) paths.push_back(tensor.path());
      Holders& holders = of_path[tensor.digest()];
      if (holders.ranks.empty()) holders.tensor = tensor;
      holders.ranks.push_back(rank);
    }
  }
  verdict.set_num_tensors(static_cast<int64_t>(paths.size()));
  if (paths.empty() && unmatched.empty()) not_compared("no tensors to compare");
  for (const std::string& path : paths) {
    const Holders* alike = nullptr;
    size_t num_ranks = 0;
    const auto& of_path = holders_of_digest[path];
    for (const auto& [digest, holders] : of_path) {
      num_ranks += holders.ranks.size();
      if (digest.empty()) continue;
      std::set<int64_t> groups;
      for (const int rank : holders.ranks) groups.insert(groups_[rank]);
      if (groups.size() > 1 && (alike == nullptr || holders.ranks.front() < alike->ranks.front())) {
        alike = &holders;
      }
    }
    if (of_path.size() == 1 && of_path.count("") == 1) {
      not_compared(absl::StrCat(path, ": no rank has elements of it"));
    }
    if (alike == nullptr) {
      if (num_ranks < contributions.by_rank.size()) {
        not_compared(absl::StrCat(path, ": on ", num_ranks, " of ", ranks.size(), " ranks only"));
      }
      continue;
    }
    verdict.set_num_different_tensors(verdict.num_different_tensors() + 1);
    Worsen(DIFFERENT, verdict);
    if (!verdict.tensor().empty()) continue;
    verdict.set_tensor(path);
    verdict.set_dtype(alike->tensor.dtype());
    *verdict.mutable_shape() = alike->tensor.shape();
    for (const int rank : alike->ranks) {
      verdict.add_culprit_ranks(rank);
      verdict.add_culprit_hosts(ranks.host(rank));
    }
  }
  verdict.set_worst_outcome(verdict.outcome());
  return verdict;
}

}  // namespace ott
