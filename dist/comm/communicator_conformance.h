// Checks what every Communicator must do, as GoogleTest tests shared by all implementations:
//
//   struct LocalRanks {
//     static void OnAllRanks(const std::function<void(Communicator&)>& body) {
//     body(*CreateLocalCommunicator()); }
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Local, CommunicatorConformance, LocalRanks);
//
// OnAllRanks runs body once for each rank of a group, at the same time. Ranks may be threads or processes.

#ifndef OTT_DIST_COMM_COMMUNICATOR_CONFORMANCE_H_
#define OTT_DIST_COMM_COMMUNICATOR_CONFORMANCE_H_

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Returns a deadline long enough for a loaded machine; a passing test never waits for it.
inline Deadline ForTests() { return Deadline::After(std::chrono::seconds(60)); }
inline Deadline Soon() { return Deadline::After(std::chrono::milliseconds(200)); }

template <typename Ranks>
class CommunicatorConformance : public testing::Test {};

TYPED_TEST_SUITE_P(CommunicatorConformance);

TYPED_TEST_P(CommunicatorConformance, RanksAgreeOnSizeAndHosts) {
  TypeParam::OnAllRanks([](Communicator& group) {
    ASSERT_GE(group.rank(), 0);
    ASSERT_LT(group.rank(), group.size());
    std::string mine = absl::StrCat(group.size());
    for (int rank = 0; rank < group.size(); ++rank) {
      EXPECT_FALSE(group.host(rank).empty());
      absl::StrAppend(&mine, " ", group.host(rank));
    }
    const auto all = group.AllGather(mine, ForTests());
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_THAT(*all, testing::Each(mine));
  });
}

TYPED_TEST_P(CommunicatorConformance, MessagesOfATagArriveWholeAndInOrder) {
  TypeParam::OnAllRanks([](Communicator& group) {
    const int right = (group.rank() + 1) % group.size();
    const int left = (group.rank() + group.size() - 1) % group.size();
    const std::string large(8 << 20, static_cast<char>('a' + group.rank()));
    ASSERT_TRUE(group.Post(right, 1, large).ok());
    ASSERT_TRUE(group.Post(right, 1, "").ok());
    ASSERT_TRUE(group.Post(right, 2, "of another tag").ok());
    ASSERT_TRUE(group.Post(right, 1, std::string("with \0 inside", 13)).ok());
    EXPECT_EQ(group.Receive(left, 2, ForTests()).value(), "of another tag");
    EXPECT_EQ(group.Receive(left, 1, ForTests()).value(),
              std::string(8 << 20, static_cast<char>('a' + left)));
    EXPECT_EQ(group.Receive(left, 1, ForTests()).value(), "");
    EXPECT_EQ(group.Receive(left, 1, ForTests()).value(), std::string("with \0 inside", 13));
  });
}

TYPED_TEST_P(CommunicatorConformance, ARankCanPostToItself) {
  TypeParam::OnAllRanks([](Communicator& group) {
    // Tags are no numbers of collectives.
    for (int tag = 0; tag < 9; ++tag) ASSERT_TRUE(group.Post(group.rank(), tag, absl::StrCat(tag)).ok());
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(group.Barrier(ForTests()).ok());
    for (int tag = 0; tag < 9; ++tag) {
      EXPECT_EQ(group.Receive(group.rank(), tag, ForTests()).value(), absl::StrCat(tag));
    }
  });
}

TYPED_TEST_P(CommunicatorConformance, ARankOrATagThatIsNoneIsAnError) {
  TypeParam::OnAllRanks([](Communicator& group) {
    for (const int none : {-1, group.size()}) {
      EXPECT_TRUE(absl::IsInvalidArgument(group.Post(none, 1, "x")));
      EXPECT_TRUE(absl::IsInvalidArgument(group.Send(none, 1, "x", ForTests())));
      EXPECT_TRUE(absl::IsInvalidArgument(group.Receive(none, 1, ForTests()).status()));
      std::string bytes;
      EXPECT_TRUE(absl::IsInvalidArgument(group.Broadcast(none, &bytes, ForTests())));
      EXPECT_TRUE(absl::IsInvalidArgument(group.Gather(none, "x", ForTests()).status()));
      EXPECT_TRUE(absl::IsInvalidArgument(group.GatherAvailable(none, "x", ForTests()).status()));
    }
    EXPECT_TRUE(absl::IsInvalidArgument(group.Post(0, -1, "x")));
    EXPECT_TRUE(absl::IsInvalidArgument(group.Flush(-1, ForTests())));
    EXPECT_TRUE(absl::IsInvalidArgument(group.Receive(0, -1, ForTests()).status()));
    EXPECT_TRUE(group.Barrier(ForTests()).ok());
  });
}

TYPED_TEST_P(CommunicatorConformance, SendWaitsOnlyUntilTheBytesAreTaken) {
  TypeParam::OnAllRanks([](Communicator& group) {
    const int last = group.size() - 1;
    if (group.rank() == 0) {
      EXPECT_TRUE(group.Send(last, 3, std::string(1 << 20, 'x'), ForTests()).ok());
    }
    if (group.rank() == last) {
      EXPECT_EQ(group.Receive(0, 3, ForTests()).value().size(), size_t{1} << 20);
    }
    EXPECT_TRUE(group.Flush(3, ForTests()).ok());
    EXPECT_TRUE(group.Flush(3, Deadline::Now()).ok());
  });
}

TYPED_TEST_P(CommunicatorConformance, ReceiveGivesUpAtItsDeadlineAndNamesTheRank) {
  TypeParam::OnAllRanks([](Communicator& group) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(absl::IsDeadlineExceeded(group.Receive(0, 9, Deadline::Now()).status()));
    const absl::Status status = group.Receive(0, 9, Deadline::After(std::chrono::milliseconds(20))).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_EQ(std::string(status.message()),
              absl::StrCat("rank ", group.rank(), " (", group.host(group.rank()), "): Receive with tag 9: ",
                           "nothing from rank 0 (", group.host(0), ") within 0.02 s"));
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
  });
}

TYPED_TEST_P(CommunicatorConformance, CollectivesMoveEachRanksBytesInOrderOfRank) {
  TypeParam::OnAllRanks([](Communicator& group) {
    std::vector<std::string> all;
    for (int rank = 0; rank < group.size(); ++rank)
      all.push_back(rank == 0 ? "" : absl::StrCat("of rank ", rank, std::string(rank * 1000, '.')));
    const std::string& mine = all[group.rank()];
    for (int root = 0; root < group.size(); ++root) {
      std::string bytes = mine;
      ASSERT_TRUE(group.Broadcast(root, &bytes, ForTests()).ok());
      EXPECT_EQ(bytes, all[root]);
      const auto parts = group.Gather(root, mine, ForTests());
      ASSERT_TRUE(parts.ok()) << parts.status();
      EXPECT_EQ(*parts, group.rank() == root ? all : std::vector<std::string>());
    }
    EXPECT_EQ(group.AllGather(mine, ForTests()).value(), all);
  });
}

TYPED_TEST_P(CommunicatorConformance, AllReduceSumsAndFindsMinimumAndMaximum) {
  TypeParam::OnAllRanks([](Communicator& group) {
    const int size = group.size();
    std::vector<double> doubles = {1.0 * group.rank(), -0.5};
    std::vector<float> floats(1000, static_cast<float>(group.rank() + 1));
    std::vector<int64_t> integers = {int64_t{1} << (40 + group.rank() % 8), group.rank()};
    ASSERT_TRUE(group.AllReduce(Reduction::kSum, absl::MakeSpan(doubles), ForTests()).ok());
    ASSERT_TRUE(group.AllReduce(Reduction::kMax, absl::MakeSpan(floats), ForTests()).ok());
    ASSERT_TRUE(group.AllReduce(Reduction::kMin, absl::MakeSpan(integers), ForTests()).ok());
    EXPECT_THAT(doubles, testing::ElementsAre(size * (size - 1) / 2, -0.5 * size));
    EXPECT_THAT(floats, testing::Each(static_cast<float>(size)));
    EXPECT_THAT(integers, testing::ElementsAre(int64_t{1} << 40, 0));
  });
}

TYPED_TEST_P(CommunicatorConformance, AllReduceGivesEveryRankTheSameBits) {
  TypeParam::OnAllRanks([](Communicator& group) {
    std::vector<float> values(333);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i * 7 + group.rank() * 1000)) *
                  std::pow(10.0f, static_cast<float>(i % 9));
    }
    ASSERT_TRUE(group.AllReduce(Reduction::kSum, absl::MakeSpan(values), ForTests()).ok());
    const std::string mine(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    const auto all = group.AllGather(mine, ForTests());
    ASSERT_TRUE(all.ok()) << all.status();
    EXPECT_THAT(*all, testing::Each(testing::Eq(mine)));
  });
}

TYPED_TEST_P(CommunicatorConformance, NanOnOneRankStaysNan) {
  TypeParam::OnAllRanks([](Communicator& group) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kMin, Reduction::kMax}) {
      double value = group.rank() == group.size() - 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;
      ASSERT_TRUE(group.AllReduce(reduction, absl::MakeSpan(&value, 1), ForTests()).ok());
      EXPECT_TRUE(std::isnan(value));
    }
  });
}

TYPED_TEST_P(CommunicatorConformance, AllReduceOfDifferentLengthsIsAnErrorOnEveryRank) {
  TypeParam::OnAllRanks([](Communicator& group) {
    std::vector<double> values(group.rank() == group.size() - 1 ? 3 : 2);
    const absl::Status status = group.AllReduce(Reduction::kSum, absl::MakeSpan(values), ForTests());
    EXPECT_EQ(absl::IsInvalidArgument(status), group.size() > 1) << status;
    if (group.size() > 1) {
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr("3 values to reduce, 2 here"));
    }
  });
}

TYPED_TEST_P(CommunicatorConformance, AllReduceMergesBytesInOrderOfRank) {
  TypeParam::OnAllRanks([](Communicator& group) {
    std::string bytes = absl::StrCat(group.rank(), ",");
    const Communicator::Merge append = [](std::string_view from, std::string* into) {
      into->append(from);
      return absl::OkStatus();
    };
    ASSERT_TRUE(group.AllReduce(append, &bytes, ForTests()).ok());
    std::string expected;
    for (int rank = 0; rank < group.size(); ++rank) absl::StrAppend(&expected, rank, ",");
    EXPECT_EQ(bytes, expected);
  });
}

TYPED_TEST_P(CommunicatorConformance, AnErrorOfMergeReachesEveryRank) {
  TypeParam::OnAllRanks([](Communicator& group) {
    std::string bytes = "mine";
    const int last = group.size() - 1;
    if (group.rank() == last) bytes = "theirs";
    const Communicator::Merge refuse = [](std::string_view from, std::string*) {
      return from == "theirs" ? absl::InvalidArgumentError("cannot be merged") : absl::OkStatus();
    };
    const absl::Status status = group.AllReduce(refuse, &bytes, ForTests());
    EXPECT_EQ(absl::IsInvalidArgument(status), group.size() > 1) << status;
    if (group.size() > 1) {
      EXPECT_THAT(std::string(status.message()),
                  testing::HasSubstr(
                      absl::StrCat("with rank ", last, " (", group.host(last), "): cannot be merged")));
    }
  });
}

TYPED_TEST_P(CommunicatorConformance, NoRankLeavesABarrierBeforeTheLastHasEntered) {
  TypeParam::OnAllRanks([](Communicator& group) {
    const bool last = group.rank() == group.size() - 1;
    if (last) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const auto entered = std::chrono::steady_clock::now();
    ASSERT_TRUE(group.Barrier(ForTests()).ok());
    const auto left = std::chrono::steady_clock::now();
    std::string last_entered(sizeof(entered), '\0');
    if (last) std::memcpy(last_entered.data(), &entered, sizeof(entered));
    ASSERT_TRUE(group.Broadcast(group.size() - 1, &last_entered, ForTests()).ok());
    // All ranks of a test run on one machine, whose monotonic clock they share.
    std::chrono::steady_clock::time_point latest;
    std::memcpy(&latest, last_entered.data(), sizeof(latest));
    EXPECT_GE(left, latest);
  });
}

TYPED_TEST_P(CommunicatorConformance, ABarrierWithoutOneRankEndsAtItsDeadlineAndTheGroupGoesOn) {
  TypeParam::OnAllRanks([](Communicator& group) {
    if (group.size() == 1) return;
    const int late = group.size() - 1;
    if (group.rank() == late) {
      ASSERT_TRUE(group.Receive(0, 1, ForTests()).ok());
      (void)group.Barrier(Soon());
    } else {
      const auto start = std::chrono::steady_clock::now();
      const absl::Status status = group.Barrier(Soon());
      EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
      // A rank that waits for the late rank itself names it; one that waits for somebody in between may have
      // heard it.
      if (group.rank() == (late & (late - 1))) {
        EXPECT_THAT(std::string(status.message()),
                    testing::ContainsRegex(absl::StrCat("Barrier #.*nothing from rank ", late)));
      }
      if (group.rank() == 0) {
        ASSERT_TRUE(group.Post(late, 1, "go on").ok());
      }
    }
    EXPECT_THAT(group.AllGather("on", ForTests()).value(), testing::Each("on"));
  });
}

TYPED_TEST_P(CommunicatorConformance, GatherAvailableReturnsWhatCameAndNamesWhoIsMissing) {
  TypeParam::OnAllRanks([](Communicator& group) {
    if (group.size() == 1) return;
    const int late = group.size() - 1;
    if (group.rank() == late) {
      ASSERT_TRUE(group.Receive(0, 1, ForTests()).ok());
      EXPECT_TRUE(group.GatherAvailable(0, "late", ForTests()).ok());
      (void)group.Gather(0, "late", Soon());
    } else {
      const auto parts = group.GatherAvailable(0, absl::StrCat(group.rank()), Soon());
      ASSERT_TRUE(parts.ok()) << parts.status();
      for (size_t rank = 0; rank < parts->size(); ++rank) {
        if (static_cast<int>(rank) == late) {
          EXPECT_TRUE(absl::IsDeadlineExceeded((*parts)[rank].status()));
          EXPECT_THAT(std::string((*parts)[rank].status().message()),
                      testing::HasSubstr(absl::StrCat("nothing from rank ", late)));
        } else {
          EXPECT_EQ((*parts)[rank].value(), absl::StrCat(rank));
        }
      }
      const absl::Status status = group.Gather(0, "", Soon()).status();
      if (group.rank() == 0) {
        EXPECT_TRUE(absl::IsDeadlineExceeded(status));
        EXPECT_THAT(std::string(status.message()),
                    testing::HasSubstr(
                        absl::StrCat(": nothing from rank ", late, " (", group.host(late), ") within")));
        ASSERT_TRUE(group.Post(late, 1, "go on").ok());
      }
    }
    const auto parts = group.Gather(0, absl::StrCat("again ", group.rank()), ForTests());
    ASSERT_TRUE(parts.ok()) << parts.status();
    for (size_t rank = 0; rank < parts->size(); ++rank)
      EXPECT_EQ((*parts)[rank], absl::StrCat("again ", rank));
  });
}

TYPED_TEST_P(CommunicatorConformance, ARankThatCallsAnotherCollectiveIsNamed) {
  TypeParam::OnAllRanks([](Communicator& group) {
    if (group.size() == 1) return;
    const int other = group.size() - 1;
    const absl::Status status =
        group.rank() == other ? group.Gather(0, "", Soon()).status() : group.AllGather("", Soon()).status();
    EXPECT_FALSE(status.ok() && group.rank() != other);
    if (group.rank() == 0) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
      EXPECT_THAT(std::string(status.message()),
                  testing::ContainsRegex(absl::StrCat("AllGather #.*rank ", other, " \\(.*called Gather #")));
    }
    EXPECT_TRUE(group.Barrier(ForTests()).ok());
  });
}

TYPED_TEST_P(CommunicatorConformance, ARankThatReducesInAnotherWayIsNamed) {
  TypeParam::OnAllRanks([](Communicator& group) {
    if (group.size() == 1) return;
    // All of eight bytes.
    double number = 1;
    float floats[2] = {1, 1};
    int64_t integer = 1;
    std::string bytes(8, '.');
    const auto reduce = [&](Reduction reduction, auto span) {
      return group.AllReduce(reduction, span, Soon());
    };
    const auto doubles = absl::MakeSpan(&number, 1);
    const Communicator::Merge merge = [](std::string_view, std::string*) { return absl::OkStatus(); };
    const std::pair<std::string, std::function<absl::Status()>> others[] = {
        {"(min of doubles)", [&] { return reduce(Reduction::kMin, doubles); }},
        {"(max of doubles)", [&] { return reduce(Reduction::kMax, doubles); }},
        {"(sum of floats)", [&] { return reduce(Reduction::kSum, absl::MakeSpan(floats)); }},
        {"(max of int64s)", [&] { return reduce(Reduction::kMax, absl::MakeSpan(&integer, 1)); }},
        {"(merge)", [&] { return group.AllReduce(merge, &bytes, Soon()); }}};
    for (const auto& [other, reduce_otherwise] : others) {
      const absl::Status status = group.rank() == 1 ? reduce_otherwise() : reduce(Reduction::kSum, doubles);
      EXPECT_FALSE(status.ok()) << other;
      if (group.rank() == 0) {
        EXPECT_THAT(std::string(status.message()),
                    testing::AllOf(testing::HasSubstr("(sum of doubles): rank 1 ("),
                                   testing::HasSubstr(other + " instead")));
      }
      EXPECT_TRUE(group.Barrier(ForTests()).ok());
    }
  });
}

TYPED_TEST_P(CommunicatorConformance, SplitMakesGroupsOrderedByKey) {
  TypeParam::OnAllRanks([](Communicator& group) {
    for (const int num_parts : {1, 2}) {
      const int color = group.rank() % num_parts;
      const auto part = group.Split(color, -group.rank(), ForTests());
      ASSERT_TRUE(part.ok()) << part.status();
      const int expected_size = (group.size() + num_parts - 1 - color) / num_parts;
      EXPECT_EQ((*part)->size(), expected_size);
      EXPECT_EQ((*part)->rank(), expected_size - 1 - group.rank() / num_parts);
      EXPECT_EQ((*part)->host((*part)->rank()), group.host(group.rank()));
      const auto members = (*part)->AllGather(absl::StrCat(group.rank()), ForTests());
      ASSERT_TRUE(members.ok()) << members.status();
      for (int member = 0; member < expected_size; ++member) {
        EXPECT_EQ((*members)[member], absl::StrCat((expected_size - 1 - member) * num_parts + color));
      }
    }
  });
}

TYPED_TEST_P(CommunicatorConformance, GroupsDoNotHearEachOther) {
  TypeParam::OnAllRanks([](Communicator& group) {
    auto first = group.Split(0, 0, ForTests());
    auto second = group.Split(0, 0, ForTests());
    ASSERT_TRUE(first.ok() && second.ok());
    ASSERT_TRUE((*first)->Post(group.rank(), 1, "first").ok());
    ASSERT_TRUE((*second)->Post(group.rank(), 1, "second").ok());
    ASSERT_TRUE(group.Post(group.rank(), 1, "all").ok());
    EXPECT_EQ(group.Receive(group.rank(), 1, ForTests()).value(), "all");
    EXPECT_EQ((*second)->Receive(group.rank(), 1, ForTests()).value(), "second");
    EXPECT_EQ((*first)->Receive(group.rank(), 1, ForTests()).value(), "first");
  });
}

REGISTER_TYPED_TEST_SUITE_P(
    CommunicatorConformance, RanksAgreeOnSizeAndHosts, MessagesOfATagArriveWholeAndInOrder,
    ARankCanPostToItself, ARankOrATagThatIsNoneIsAnError, SendWaitsOnlyUntilTheBytesAreTaken,
    ReceiveGivesUpAtItsDeadlineAndNamesTheRank, CollectivesMoveEachRanksBytesInOrderOfRank,
    AllReduceSumsAndFindsMinimumAndMaximum, AllReduceGivesEveryRankTheSameBits, NanOnOneRankStaysNan,
    AllReduceOfDifferentLengthsIsAnErrorOnEveryRank, AllReduceMergesBytesInOrderOfRank,
    AnErrorOfMergeReachesEveryRank, NoRankLeavesABarrierBeforeTheLastHasEntered,
    ABarrierWithoutOneRankEndsAtItsDeadlineAndTheGroupGoesOn,
    GatherAvailableReturnsWhatCameAndNamesWhoIsMissing, ARankThatCallsAnotherCollectiveIsNamed,
    ARankThatReducesInAnotherWayIsNamed, SplitMakesGroupsOrderedByKey, GroupsDoNotHearEachOther);

}  // namespace ott

#endif  // OTT_DIST_COMM_COMMUNICATOR_CONFORMANCE_H_
