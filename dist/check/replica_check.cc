#include "ott/dist/check/replica_check.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dist/check/replica_inquiry.h"
#include "dist/check/replica_tensors.h"
#include "dist/check/replica_verdict.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/verdict.h"

namespace ott {
namespace {

using internal::kFromRoot;
using internal::kToRoot;
using internal::Members;
using internal::ReplicaAnnouncement;
using internal::ReplicaAnswer;
using internal::ReplicaRequest;
using internal::ReplicaTensors;

// Answers rank 0 until it has come to its verdict.
CrossCheckVerdict AnswerRoot(Communicator& ranks, const ReplicaCheckOptions& options,
                             const ReplicaTensors& tensors, const ReplicaAnnouncement& mine, uint64_t check,
                             Deadline deadline) {
  const Members members(ranks, options.names);
  CrossCheckVerdict failed;
  failed.set_mode(options.mode);
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
      const absl::StatusOr<std::string> bytes =
          options.silent->Receive(ranks, 0, members.Name(0), kFromRoot, deadline);
      if (!bytes.ok() || !request.ParseFromString(*bytes)) {
        failed.set_reason(absl::IsDeadlineExceeded(bytes.status()) ? members.TooLate({0}, deadline)
                          : bytes.ok() ? members.Describe(0) + " sent bytes that are no request"
                                       : std::string(bytes.status().message()));
        return failed;
      }
    } while (request.check() != check);
    if (request.has_verdict()) return request.verdict();
    answer = tensors.Answer(request);
  }
}

}  // namespace

ReplicaCheck::ReplicaCheck(std::unique_ptr<Communicator> ranks, std::chrono::nanoseconds timeout,
                           ReplicaCheckOptions options)
    : ranks_(std::move(ranks)), timeout_(timeout), options_(std::move(options)) {
  OTT_CHECK(options_.names.empty() || static_cast<int>(options_.names.size()) == ranks_->size())
      << options_.names.size() << " names";
  if (options_.silent == nullptr) options_.silent = std::make_shared<SilentRanks>();
}

CrossCheckVerdict ReplicaCheck::Run(int64_t iteration, absl::Span<const NamedTensor> named_tensors,
                                    const std::string& incomplete) {
  ReplicaTensors tensors(named_tensors);
  const ReplicaAnnouncement mine = tensors.Announce(iteration);
  return Run(mine, tensors, incomplete);
}

CrossCheckVerdict ReplicaCheck::RunWithoutTensors(int64_t iteration, const absl::Status& problem) {
  OTT_CHECK(!problem.ok()) << "iteration " << iteration;
  ReplicaAnnouncement mine;
  mine.set_iteration(iteration);
  mine.set_error(std::string(problem.message()));
  return Run(mine, ReplicaTensors({}), "");
}

// The words of ranks that have an error, or whose check is incomplete, differ from others' and are never
// found equal.
absl::StatusOr<bool> ReplicaCheck::AreAllEqual(const ReplicaAnnouncement& mine, const std::string& incomplete,
                                               Deadline deadline) const {
  const bool is_complete = mine.error().empty() && incomplete.empty();
  std::vector<uint64_t> words = {static_cast<uint64_t>(mine.iteration()), is_complete};
  for (const std::string* digest : {&mine.schema_digest(), &mine.tensors_digest()}) {
    uint64_t halves[2] = {};
    std::memcpy(halves, digest->data(), std::min(digest->size(), sizeof(halves)));
    words.insert(words.end(), std::begin(halves), std::end(halves));
  }
  OTT_ASSIGN_OR_RETURN(const bool are_equal, options_.are_equal(words, deadline));
  return are_equal && is_complete;
}

CrossCheckVerdict ReplicaCheck::Run(const ReplicaAnnouncement& mine, const ReplicaTensors& tensors,
                                    const std::string& incomplete) {
  const uint64_t check = ++num_checks_;
  // Leaves those that fail here time for messages, and the others time to answer questions and to hear the
  // verdict.
  const Deadline compared = Deadline::After(timeout_ / 4);
  const Deadline announced = Deadline::After(timeout_ / 2);
  const Deadline decided = Deadline::After(timeout_ / 4 * 3);
  const Deadline received = Deadline::After(timeout_);
  CrossCheckVerdict verdict;
  absl::StatusOr<bool> are_equal = false;
  if (options_.are_equal != nullptr) are_equal = AreAllEqual(mine, incomplete, compared);
  if (are_equal.value_or(false) && ranks_->size() > 1) {
    verdict = internal::AllReplicasEqual(options_, tensors, mine);
  } else if (ranks_->rank() == 0) {
    verdict = internal::DecideOnReplicas(*ranks_, options_, tensors, mine, check, announced, decided);
    if (!are_equal.ok() && verdict.missing_ranks_size() == ranks_->size() - 1) {
      // They may have found all equal, and gone on: nobody is called missing.
      verdict.clear_missing_ranks();
      verdict.set_reason(absl::StrCat("the digests could not be compared: ", are_equal.status().message(),
                                      "; then ", verdict.reason()));
    }
    if (!incomplete.empty()) {
      Worsen(NOT_COMPARED, verdict);
      AddReason(incomplete, verdict);
    }
    for (const int rank : verdict.culprit_ranks()) verdict.add_culprit_named_before(times_named_[rank]++);
    verdict.set_worst_outcome(verdict.outcome());
    ReplicaRequest request;
    request.set_check(check);
    *request.mutable_verdict() = verdict;
    for (int rank = 1; rank < ranks_->size(); ++rank) {
      // A rank that cannot be reached is missing already, or will say so itself.
      (void)ranks_->Post(rank, kFromRoot, request.SerializeAsString());
    }
  } else {
    verdict = AnswerRoot(*ranks_, options_, tensors, mine, check, received);
  }
  verdict.set_rank(Members(*ranks_, options_.names).Name(ranks_->rank()));
  verdict.set_host(ranks_->host(ranks_->rank()));
  return verdict;
}

}  // namespace ott
