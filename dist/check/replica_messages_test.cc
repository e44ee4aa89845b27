// Tests what ranks tell each other in a check of replicas: late, damaged, or of another check.

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dist/check/ranks_for_test.h"
#include "dist/check/replica_for_test.h"
#include "dist/check/replica_tensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/digest/digest.h"
#include "ott/dist/check/replica_check.h"
#include "ott/dist/check/root_exchange.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ReplicaCheck, RanksInDifferentIterationsAreNotCompared) {
  OnRanks(2, [](int rank, Communicator& ranks) {
    ReplicaCheck check(GroupOf(ranks), seconds(60));
    const CrossCheckVerdict verdict = check.Run(30 + rank, ReplicaModel().Tensors());
    EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
    EXPECT_THAT(verdict.reason(), HasSubstr("rank 0 (node0): iteration 30, rank 1 (node1): iteration 31"));
  });
}

TEST(ReplicaCheck, WhoSendsBytesThatAreNoMessageIsNamed) {
  for (const int damaged : {0, 1}) {
    OnRanks(2, [&](int rank, Communicator& ranks) {
      std::unique_ptr<Communicator> group = GroupOf(ranks);
      if (rank == damaged) {
        EXPECT_TRUE(group->Post(1 - rank, rank == 0 ? internal::kFromRoot : internal::kToRoot, "\xff").ok());
        return;
      }
      const CrossCheckVerdict verdict =
          ReplicaCheck(std::move(group), seconds(60)).Run(3, ReplicaModel().Tensors());
      EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
      EXPECT_EQ(verdict.reason(), damaged == 1 ? "rank 1 (node1) sent 1 bytes that are no answer"
                                               : "rank 0 (node0) sent bytes that are no request");
    });
  }
}

TEST(ReplicaCheck, AMissingRankIsNamedAndTakesPartAgainLater) {
  std::promise<void> given_up, caught_up;
  OnRanks(3, [&](int rank, Communicator& ranks) {
    ReplicaCheck check(GroupOf(ranks), seconds(1));
    if (rank == 2) given_up.get_future().wait();
    const CrossCheckVerdict first = check.Run(0, ReplicaModel().Tensors());
    if (rank == 0) given_up.set_value();
    if (rank == 0) caught_up.get_future().wait();
    if (rank == 2) caught_up.set_value();
    const CrossCheckVerdict second = check.Run(1, ReplicaModel().Tensors());
    EXPECT_EQ(first.outcome(), NOT_COMPARED);
    EXPECT_THAT(first.missing_ranks(), ElementsAre(2));
    EXPECT_EQ(first.reason(), "nothing from rank 2 (node2) within 0.5 s");
    EXPECT_EQ(second.outcome(), BITWISE_EQUAL) << second.DebugString();
  });
}

TEST(ReplicaCheck, ASilentRankIsWaitedForOnlyOnce) {
  constexpr auto kTimeout = seconds(1);
  constexpr int kNumChecks = 20;
  const ReplicaModel model;
  for (const int silent : {0, 1}) {
    auto ranks = CreateSimulatedCommunicators({"a", "b"});
    ReplicaCheck check(std::move(ranks[1 - silent]), kTimeout);
    const auto start = std::chrono::steady_clock::now();
    for (int iteration = 0; iteration < kNumChecks; ++iteration) {
      const CrossCheckVerdict verdict = check.Run(iteration, model.Tensors());
      EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
      EXPECT_THAT(verdict.reason(), HasSubstr(silent == 0 ? "nothing from rank 0 (a) within 1 s"
                                                          : "nothing from rank 1 (b) within 0.5 s"));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, kNumChecks * kTimeout / 4);
  }
}

TEST(ReplicaTensors, WhatIsAskedOfNoTensorIsAnError) {
  const ReplicaModel model;
  std::vector<NamedTensor> named = model.Tensors();
  named.push_back({"z",
                   {TensorView(model.bias.data(), {1}), nullptr},
                   NamedTensor::Content::kDigest,
                   ComputeDigest(TensorView(model.bias.data(), {1}))->root.ToString()});
  internal::ReplicaTensors tensors(named);
  tensors.Announce(0);
  const auto has_error = [&](const std::function<void(internal::ReplicaRequest&)>& ask) {
    internal::ReplicaRequest request;
    ask(request);
    return tensors.Answer(request).has_error();
  };
  for (int64_t at = -2; at <= 6; ++at) {
    EXPECT_EQ(has_error([&](auto& request) { request.set_leaves_of_tensor(at); }), at < 0 || at > 3) << at;
    for (int64_t end = -2; end <= 6; ++end) {
      EXPECT_EQ(has_error([&](auto& request) {
                  request.mutable_digests()->set_begin(at);
                  request.mutable_digests()->set_end(end);
                }),
                at < 0 || end < at || end > 5);
    }
    // By name, they are "empty", "layer.bias", "layer.weights", "step" and "z", of so many blocks.
    const int64_t num_blocks =
        at < 0 || at > 3 ? 0 : std::vector<int64_t>{0, 1, 3, 1}[static_cast<size_t>(at)];
    for (int64_t block = -1; block <= 4; ++block) {
      EXPECT_EQ(has_error([&](auto& request) {
                  request.mutable_block()->set_tensor(at);
                  request.mutable_block()->set_block(block);
                }),
                block < 0 || block >= num_blocks)
          << at << ", block " << block;
    }
  }
}

TEST(ReplicaCheck, AnnouncesFiftyBytesWhateverTheNumberOfTensors) {
  auto ranks = CreateSimulatedCommunicators({"a", "b"});
  const ReplicaModel model;
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 1000; ++i)
    tensors.push_back({"tensor" + std::to_string(i), {TensorView(model.bias.data(), {1}), nullptr}});
  ReplicaCheck(std::move(ranks[1]), milliseconds(1)).Run(1'000'000, tensors);
  const auto announcement = ranks[0]->Receive(1, 0, Deadline::Now()).value();
  EXPECT_LE(announcement.size(), 50u);
}

TEST(ReplicaCheck, WhereDigestsCannotBeComparedThoseWhoWentOnAreNotCalledMissing) {
  for (const int scene : {0, 1, 2, 3}) {
    const bool fails = scene % 2 == 1, second_comes = scene >= 2;
    OnRanks(3, [&](int rank, Communicator& ranks) {
      ReplicaCheckOptions options;
      options.are_equal = [fails](absl::Span<const uint64_t>, Deadline deadline) -> absl::StatusOr<bool> {
        EXPECT_LE(deadline.Remaining(), milliseconds(200)) << "a quarter of the time";
        if (fails) return absl::UnavailableError("the library is gone");
        return false;
      };
      ReplicaCheck check(GroupOf(ranks), milliseconds(800), options);
      if (rank == 2 || (rank == 1 && !second_comes)) return;
      const CrossCheckVerdict verdict = check.Run(3, ReplicaModel().Tensors());
      EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
      const std::string late =
          absl::StrCat("nothing from ", second_comes ? "rank 2 (node2)" : "ranks 1, 2", " within 0.4 s");
      EXPECT_EQ(verdict.missing_ranks_size(), second_comes ? 1 : fails ? 0 : 2);
      EXPECT_EQ(verdict.reason(), fails && !second_comes
                                      ? "the digests could not be compared: the library is gone; then " + late
                                      : late);
    });
  }
}

TEST(ReplicaCheck, AnswersThatAreNoneAreToldAndThoseOfAnotherCheckPassedOver) {
  const ReplicaModel right;
  ReplicaModel wrong;
  wrong.weights[35000] = 1;
  const std::vector<NamedTensor> of_right = right.Tensors(), of_wrong = wrong.Tensors();
  internal::ReplicaTensors good(of_right), bad(of_wrong);
  good.Announce(3);
  const internal::ReplicaAnnouncement announcement = bad.Announce(3);
  internal::ReplicaAnswer answer;
  const std::vector<std::pair<std::string, std::function<void(const internal::ReplicaRequest&)>>> damages = {
      {"a list of digests has another length", [&](const auto&) { answer.set_digests("?"); }},
      {"the tensor has other blocks", [&](const auto&) { answer.clear_leaves(); }},
      {"the blocks have the same digests",
       [&](const auto& request) {
         if (request.has_leaves_of_tensor()) answer = good.Answer(request);
       }},
      {"the tensor changed during the check",
       [&](const auto& request) {
         if (request.has_block()) answer = good.Answer(request);
       }},
      {"rank 1 (node1): gone", [&](const auto&) { answer.set_error("gone"); }}};
  for (const auto& [reason, damage] : damages) {
    OnRanks(2, [&, &reason = reason, &damage = damage](int rank, Communicator& ranks) {
      std::unique_ptr<Communicator> group = GroupOf(ranks);
      if (rank == 0) {
        const CrossCheckVerdict verdict = ReplicaCheck(std::move(group), seconds(60)).Run(3, of_right);
        EXPECT_EQ(verdict.outcome(), DIFFERENT);
        EXPECT_EQ(verdict.reason(), "not located: " + reason);
        return;
      }
      answer.Clear();
      *answer.mutable_announcement() = announcement;
      while (true) {
        for (const uint64_t check : {9, 1}) {
          answer.set_check(check);
          ASSERT_TRUE(group->Post(0, internal::kToRoot, answer.SerializeAsString()).ok());
        }
        internal::ReplicaRequest request;
        ASSERT_TRUE(
            request.ParseFromString(*group->Receive(0, internal::kFromRoot, Deadline::After(seconds(60)))));
        if (request.has_verdict()) return;
        answer = bad.Answer(request);
        damage(request);
      }
    });
  }
}

TEST(ReplicaCheck, AVerdictOfAnotherCheckIsPassedOver) {
  OnRanks(2, [](int rank, Communicator& ranks) {
    std::unique_ptr<Communicator> group = GroupOf(ranks);
    for (const uint64_t check : {9, 1}) {
      if (rank == 1) break;
      internal::ReplicaRequest request;
      request.set_check(check);
      request.mutable_verdict()->set_outcome(check == 1 ? BITWISE_EQUAL : DIFFERENT);
      EXPECT_TRUE(group->Post(1, internal::kFromRoot, request.SerializeAsString()).ok());
    }
    if (rank == 0) return;
    EXPECT_EQ(ReplicaCheck(std::move(group), seconds(60)).Run(3, ReplicaModel().Tensors()).outcome(),
              BITWISE_EQUAL);
  });
}

}  // namespace
}  // namespace ott
