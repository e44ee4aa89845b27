#include "ott/dist/check/root_exchange.h"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dist/check/ranks_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/check/root_exchange.pb.h"

namespace ott {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kNumRanks = 3;

RootExchange::Decision Join(const RootExchange::Contributions& contributions, bool binds) {
  std::string all;
  for (const auto& [rank, contents] : contributions.by_rank) all += contents;
  return {all + contributions.problem, binds, "later"};
}

void Post(Communicator& ranks, int to, uint64_t round, internal::RootMessage::Kind kind, bool binds = false) {
  internal::RootMessage message;
  message.set_round(round);
  message.set_kind(kind);
  message.set_contents(absl::StrCat("of ", round, binds ? ", binds" : ""));
  message.set_binds(binds);
  EXPECT_TRUE(
      ranks.Post(to, to == 0 ? internal::kToRoot : internal::kFromRoot, message.SerializeAsString()).ok());
}

// Runs each rank's part in a thread of its own, after messages of another round that are no part of it.
void OnExchanges(std::chrono::nanoseconds timeout, const std::function<void(int, RootExchange&)>& part,
                 const RootExchange::AllGather& all_gather = nullptr) {
  OnRanks(kNumRanks, [&](int rank, Communicator& ranks) {
    std::unique_ptr<Communicator> group = GroupOf(ranks);
    for (int to = 0; to < kNumRanks; ++to) {
      if (rank == 0 && to > 0) Post(*group, to, 100, internal::RootMessage::DECISION);
      if (rank > 0 && to == 0) Post(*group, to, 100, internal::RootMessage::CONTRIBUTION);
    }
    RootExchange exchange(std::move(group), timeout, std::make_shared<SilentRanks>(), all_gather);
    part(rank, exchange);
  });
}

std::string RunOnce(RootExchange& exchange, int rank, bool binds) {
  const auto decision = exchange.Exchange(
      std::to_string(rank),
      [binds](const RootExchange::Contributions& contributions) { return Join(contributions, binds); });
  return decision.ok() ? *decision : std::string(decision.status().message());
}

TEST(RootExchange, AllReceiveOneDecisionThoughALibraryFails) {
  using All = absl::StatusOr<std::vector<std::string>>;
  for (const All& gathered : {All(absl::UnavailableError("gone")), All(std::vector<std::string>(3, "\xff")),
                              All(std::vector<std::string>(3, ""))}) {
    OnExchanges(
        seconds(60),
        [](int rank, RootExchange& exchange) {
          for (const bool binds : {false, true}) EXPECT_EQ(RunOnce(exchange, rank, binds), "012");
        },
        [&](std::string_view, Deadline) { return gathered; });
  }
}

TEST(RootExchange, WhoSendsBytesThatAreNoMessageIsNamed) {
  for (const int damaged : {0, 1}) {
    OnRanks(2, [&](int rank, Communicator& ranks) {
      std::unique_ptr<Communicator> group = GroupOf(ranks);
      if (rank == damaged) {
        EXPECT_TRUE(group->Post(1 - rank, rank == 0 ? internal::kFromRoot : internal::kToRoot, "\xff").ok());
        return;
      }
      RootExchange exchange(std::move(group), seconds(60), std::make_shared<SilentRanks>());
      EXPECT_EQ(RunOnce(exchange, rank, false), damaged == 1
                                                    ? "0rank 1 (node1) sent 1 bytes that are no message"
                                                    : "rank 0 (node0) sent bytes that are no message");
    });
  }
}

TEST(RootExchange, WhoDoesNotComeIsNamedAndWaitedForOnce) {
  OnExchanges(seconds(1), [](int rank, RootExchange& exchange) {
    if (rank == 2) return;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(RunOnce(exchange, rank, false), "01nothing from rank 2");
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));
  });
}

TEST(RootExchange, WhoSaidThatItWaitsDoesSoAndWhatBindsIsFoundInALaterRound) {
  using Message = internal::RootMessage;
  std::promise<void> gave_up, decided;
  OnRanks(2, [&](int rank, Communicator& ranks) {
    constexpr auto kTimeout = milliseconds(400);
    std::unique_ptr<Communicator> group = GroupOf(ranks);
    if (rank == 0) {
      const auto receive = [&](std::chrono::nanoseconds timeout) {
        return group->Receive(1, internal::kToRoot, Deadline::After(timeout)).ok();
      };
      EXPECT_TRUE(receive(seconds(60)));
      Post(*group, 1, 1, Message::DO_YOU_WAIT);
      EXPECT_TRUE(receive(seconds(60)));
      EXPECT_FALSE(receive(kTimeout * 3 / 2));
      Post(*group, 1, 1, Message::DECISION);
      gave_up.get_future().wait();
      Post(*group, 1, 2, Message::DECISION);
      Post(*group, 1, 2, Message::DECISION, true);
      return decided.set_value();
    }
    RootExchange exchange(std::move(group), kTimeout, std::make_shared<SilentRanks>());
    EXPECT_EQ(RunOnce(exchange, 1, false), "of 1");
    EXPECT_EQ(RunOnce(exchange, 1, false), "nothing from rank 0 (node0) within 0.4 s");
    gave_up.set_value();
    decided.get_future().wait();
    EXPECT_EQ(RunOnce(exchange, 1, false), "of 2, binds");
  });
}

}  // namespace
}  // namespace ott
