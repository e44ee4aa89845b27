#include "dist/check/replica_inquiry.h"

#include <algorithm>

#include "ott/core/base/status_macros.h"

namespace ott::internal {

absl::StatusOr<ReplicaAnswer> ReplicaInquiry::Receive(int rank, Deadline deadline) {
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
    // Others are of a check that was abandoned.
    if (answer.check() == check_) return answer;
  }
}

absl::StatusOr<ReplicaAnswer> ReplicaInquiry::Ask(int rank, ReplicaRequest request) {
  request.set_check(check_);
  ReplicaAnswer answer;
  if (rank == ranks_.rank()) {
    answer = tensors_.Answer(request);
  } else {
    OTT_RETURN_IF_ERROR(ranks_.Post(rank, kFromRoot, request.SerializeAsString()));
    OTT_ASSIGN_OR_RETURN(answer, Receive(rank, decided_));
  }
  if (answer.has_error()) {
    return absl::UnavailableError(absl::StrCat(members_.Describe(rank), ": ", answer.error()));
  }
  return answer;
}

absl::StatusOr<ReplicaSchema> ReplicaInquiry::Schema(int rank) {
  ReplicaRequest request;
  request.set_schema(true);
  OTT_ASSIGN_OR_RETURN(ReplicaAnswer answer, Ask(rank, std::move(request)));
  return std::move(*answer.mutable_schema());
}

absl::StatusOr<ReplicaInquiry::Window> ReplicaInquiry::Digests(size_t begin, size_t end, bool combined,
                                                               const RanksOfBytes& groups) {
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

absl::StatusOr<bool> ReplicaInquiry::AreEqual(size_t begin, size_t end, const RanksOfBytes& groups) {
  OTT_ASSIGN_OR_RETURN(const Window window, Digests(begin, end, /*combined=*/true, groups));
  return std::all_of(window.digests.begin(), window.digests.end(),
                     [&](const auto& digest) { return digest.first == window.digests.front().first; });
}

absl::StatusOr<ReplicaInquiry::Window> ReplicaInquiry::FirstDifferentFrom(size_t begin,
                                                                          const RanksOfBytes& groups) {
  const size_t length = std::max<size_t>(1, options_.max_digest_bytes / kDigestBytes / groups.size());
  size_t end = tensors_.size();
  while (end - begin > length) {
    const size_t middle = begin + (end - begin) / 2;
    OTT_ASSIGN_OR_RETURN(const bool equal, AreEqual(begin, middle, groups));
    (equal ? begin : end) = middle;
  }
  return Digests(begin, end, /*combined=*/false, groups);
}

absl::StatusOr<std::string> ReplicaInquiry::Leaves(size_t tensor, int rank) {
  ReplicaRequest request;
  request.set_leaves_of_tensor(static_cast<int64_t>(tensor));
  OTT_ASSIGN_OR_RETURN(ReplicaAnswer answer, Ask(rank, std::move(request)));
  return std::move(*answer.mutable_leaves());
}

absl::StatusOr<std::vector<int64_t>> ReplicaInquiry::DifferentBlocks(size_t tensor, int rank, int other) {
  OTT_ASSIGN_OR_RETURN(const std::string mine, Leaves(tensor, rank));
  OTT_ASSIGN_OR_RETURN(const std::string theirs, Leaves(tensor, other));
  if (mine.size() != theirs.size()) return absl::InternalError("the tensor has other blocks");
  std::vector<int64_t> blocks;
  for (size_t at = 0; at < mine.size(); at += kDigestBytes) {
    if (mine.compare(at, kDigestBytes, theirs, at, kDigestBytes) != 0) {
      blocks.push_back(static_cast<int64_t>(at / kDigestBytes));
    }
  }
  if (blocks.empty()) return absl::InternalError("the blocks have the same digests");
  return blocks;
}

absl::StatusOr<std::string> ReplicaInquiry::Block(size_t tensor, int64_t block, int rank) {
  ReplicaRequest request;
  request.mutable_block()->set_tensor(static_cast<int64_t>(tensor));
  request.mutable_block()->set_block(block);
  OTT_ASSIGN_OR_RETURN(ReplicaAnswer answer, Ask(rank, std::move(request)));
  return std::move(*answer.mutable_block());
}

}  // namespace ott::internal
