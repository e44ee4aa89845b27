#include "ott/dist/check/root_exchange.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/root_exchange.pb.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

using internal::RootMessage;

constexpr int kToRoot = 0;
constexpr int kFromRoot = 1;

}  // namespace

RootExchange::RootExchange(std::unique_ptr<Communicator> ranks, std::chrono::nanoseconds timeout,
                           std::shared_ptr<SilentRanks> silent)
    : ranks_(std::move(ranks)), timeout_(timeout), silent_(std::move(silent)) {}

absl::StatusOr<std::string> RootExchange::Exchange(std::string_view mine, const Judge& judge) {
  ++round_;
  if (ranks_->rank() == 0) return Rule(mine, judge);
  return Obey(mine);
}

void RootExchange::Post(int rank, const RootMessage& message) {
  // Who cannot be reached is missing already, or will say so itself.
  (void)ranks_->Post(rank, rank == 0 ? kToRoot : kFromRoot, message.SerializeAsString());
}

absl::StatusOr<RootMessage> RootExchange::HearFrom(int rank, Deadline deadline) {
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

RootExchange::Brought RootExchange::Hear(std::string_view mine) {
  // Leaves the others time to hear the ruling.
  const Deadline deadline = Deadline::After(timeout_ / 2);
  Brought brought;
  brought.by_rank[0] = std::string(mine);
  std::vector<int> late;
  for (int rank = 1; rank < ranks_->size(); ++rank) {
    absl::StatusOr<RootMessage> message = HearFrom(rank, deadline);
    if (message.ok()) {
      brought.by_rank[rank] = std::move(*message->mutable_contents());
    } else if (absl::IsDeadlineExceeded(message.status())) {
      late.push_back(rank);
    } else {
      absl::StrAppend(&brought.problem, brought.problem.empty() ? "" : "; ",
                      std::string(message.status().message()));
    }
  }
  if (!late.empty()) {
    absl::StrAppend(&brought.problem, brought.problem.empty() ? "" : "; ", "nothing from ",
                    FormatRanks(late));
  }
  return brought;
}

bool RootExchange::AllStillWait(const Brought& brought) {
  RootMessage question;
  question.set_round(round_);
  question.set_kind(RootMessage::DO_YOU_WAIT);
  for (const auto& [rank, unused] : brought.by_rank) {
    if (rank != 0) Post(rank, question);
  }
  const Deadline deadline = Deadline::After(timeout_ / 4);
  bool all = true;
  for (const auto& [rank, unused] : brought.by_rank) {
    if (rank != 0) all = HearFrom(rank, deadline).ok() && all;
  }
  return all;
}

std::string RootExchange::Rule(std::string_view mine, const Judge& judge) {
  const Brought brought = Hear(mine);
  Ruling ruling = judge(brought);
  if (ruling.binds && !AllStillWait(brought)) ruling = {ruling.otherwise, false, ""};
  RootMessage message;
  message.set_round(round_);
  message.set_kind(RootMessage::RULING);
  message.set_contents(ruling.contents);
  message.set_binds(ruling.binds);
  for (int rank = 1; rank < ranks_->size(); ++rank) Post(rank, message);
  return ruling.contents;
}

absl::StatusOr<std::string> RootExchange::Obey(std::string_view mine) {
  RootMessage message;
  message.set_round(round_);
  message.set_kind(RootMessage::BRING);
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
    RootMessage heard;
    if (!heard.ParseFromString(*bytes)) {
      return absl::InternalError(
          absl::StrCat(FormatRank(0, ranks_->host(0)), " sent bytes that are no message"));
    }
    const bool is_now = heard.round() == round_;
    if (heard.kind() == RootMessage::RULING && (is_now || heard.binds())) return heard.contents();
    if (heard.kind() == RootMessage::DO_YOU_WAIT && is_now) {
      message.clear_contents();
      message.set_kind(RootMessage::STILL_WAITS);
      Post(0, message);
      // Having said so, it may not go on alone.
      deadline = Deadline::After(2 * timeout_);
    }
  }
}

}  // namespace ott
