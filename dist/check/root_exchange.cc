#include "ott/dist/check/root_exchange.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/root_exchange.pb.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

using internal::kFromRoot;
using internal::kToRoot;
using internal::RootMessage;

}  // namespace

RootExchange::RootExchange(std::unique_ptr<Communicator> ranks, std::chrono::nanoseconds timeout,
                           std::shared_ptr<SilentRanks> silent, AllGather all_gather)
    : ranks_(std::move(ranks)),
      timeout_(timeout),
      silent_(std::move(silent)),
      all_gather_(std::move(all_gather)) {}

absl::StatusOr<std::string> RootExchange::Exchange(std::string_view mine, const Decide& decide) {
  ++round_;
  if (std::optional<std::string> decision = DecideEverywhere(mine, decide)) return *std::move(decision);
  if (ranks_->rank() == 0) return DecideAsRoot(mine, decide);
  return AwaitDecision(mine);
}

std::optional<std::string> RootExchange::DecideEverywhere(std::string_view mine, const Decide& decide) {
  if (all_gather_ == nullptr) return std::nullopt;
  RootMessage message;
  message.set_round(round_);
  message.set_contents(std::string(mine));
  const auto all = all_gather_(message.SerializeAsString(), Deadline::After(timeout_ / 4));
  if (!all.ok()) return std::nullopt;
  Contributions contributions;
  for (int rank = 0; rank < ranks_->size(); ++rank) {
    if (!message.ParseFromString((*all)[rank]) || message.round() != round_) return std::nullopt;
    contributions.by_rank[rank] = message.contents();
  }
  return decide(contributions).contents;
}

void RootExchange::Post(int rank, const RootMessage& message) {
  // A rank that cannot be reached is missing already, or will say so itself.
  (void)ranks_->Post(rank, rank == 0 ? kToRoot : kFromRoot, message.SerializeAsString());
}

absl::StatusOr<RootMessage> RootExchange::ReceiveFrom(int rank, Deadline deadline) {
  while (true) {
    OTT_ASSIGN_OR_RETURN(const std::string bytes, silent_->Receive(*ranks_, rank, rank, kToRoot, deadline));
    RootMessage message;
    if (!message.ParseFromString(bytes)) {
      return absl::InternalError(absl::StrCat(FormatRank(rank, ranks_->host(rank)), " sent ", bytes.size(),
                                              " bytes that are no message"));
    }
    if (message.round() == round_) return message;
  }
}

RootExchange::Contributions RootExchange::ReceiveAll(std::string_view mine) {
  // Leaves the others time to hear the decision.
  const Deadline deadline = Deadline::After(timeout_ / 2);
  Contributions contributions;
  contributions.by_rank[0] = std::string(mine);
  std::vector<int> late;
  std::vector<std::string> problems;
  for (int rank = 1; rank < ranks_->size(); ++rank) {
    absl::StatusOr<RootMessage> message = ReceiveFrom(rank, deadline);
    if (message.ok()) {
      contributions.by_rank[rank] = std::move(*message->mutable_contents());
    } else if (absl::IsDeadlineExceeded(message.status())) {
      late.push_back(rank);
    } else {
      problems.emplace_back(message.status().message());
    }
  }
  if (!late.empty()) problems.push_back("nothing from " + FormatRanks(late));
  contributions.problem = absl::StrJoin(problems, "; ");
  return contributions;
}

bool RootExchange::AllStillWait(const Contributions& contributions) {
  RootMessage question;
  question.set_round(round_);
  question.set_kind(RootMessage::DO_YOU_WAIT);
  for (const auto& [rank, unused] : contributions.by_rank) {
    if (rank != 0) Post(rank, question);
  }
  const Deadline deadline = Deadline::After(timeout_ / 4);
  bool all = true;
  for (const auto& [rank, unused] : contributions.by_rank) {
    if (rank != 0) all = ReceiveFrom(rank, deadline).ok() && all;
  }
  return all;
}

std::string RootExchange::DecideAsRoot(std::string_view mine, const Decide& decide) {
  const Contributions contributions = ReceiveAll(mine);
  Decision decision = decide(contributions);
  if (decision.binds && !AllStillWait(contributions)) decision = {decision.otherwise, false, ""};
  RootMessage message;
  message.set_round(round_);
  message.set_kind(RootMessage::DECISION);
  message.set_contents(decision.contents);
  message.set_binds(decision.binds);
  for (int rank = 1; rank < ranks_->size(); ++rank) Post(rank, message);
  return decision.contents;
}

absl::StatusOr<std::string> RootExchange::AwaitDecision(std::string_view mine) {
  RootMessage message;
  message.set_round(round_);
  message.set_kind(RootMessage::CONTRIBUTION);
  message.set_contents(std::string(mine));
  Post(0, message);
  Deadline deadline = Deadline::After(timeout_);
  while (true) {
    const absl::StatusOr<std::string> bytes = silent_->Receive(*ranks_, 0, 0, kFromRoot, deadline);
    if (absl::IsDeadlineExceeded(bytes.status())) {
      return absl::DeadlineExceededError(absl::StrCat("nothing from ", FormatRank(0, ranks_->host(0)),
                                                      " within ", deadline.Seconds(), " s"));
    }
    OTT_RETURN_IF_ERROR(bytes.status());
    RootMessage received;
    if (!received.ParseFromString(*bytes)) {
      return absl::InternalError(
          absl::StrCat(FormatRank(0, ranks_->host(0)), " sent bytes that are no message"));
    }
    const bool is_now = received.round() == round_;
    if (received.kind() == RootMessage::DECISION && (is_now || received.binds())) return received.contents();
    if (received.kind() == RootMessage::DO_YOU_WAIT && is_now) {
      message.clear_contents();
      message.set_kind(RootMessage::STILL_WAITS);
      Post(0, message);
      // Having said so, it may not go on alone.
      deadline = Deadline::After(2 * timeout_);
    }
  }
}

}  // namespace ott
