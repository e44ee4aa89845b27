#include "ott/dist/comm/simulated_communicator.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/communicator_conformance.h"
#include "ott/dist/comm/communicator_transport.h"
#include "ott/dist/comm/message_communicator.h"

namespace ott {
namespace {

std::vector<std::string> Hosts(int size) {
  std::vector<std::string> hosts;
  for (int rank = 0; rank < size; ++rank) hosts.push_back(absl::StrCat("host", rank));
  return hosts;
}

template <int size>
struct Threads {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) {
    auto ranks = CreateSimulatedCommunicators(Hosts(size));
    std::vector<std::thread> threads;
    for (auto& rank : ranks) threads.emplace_back([&body, &rank] { body(*rank); });
    for (std::thread& thread : threads) thread.join();
  }
};

using Sizes = testing::Types<Threads<1>, Threads<2>, Threads<3>, Threads<4>, Threads<7>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, CommunicatorConformance, Sizes);

using Gathered = absl::StatusOr<std::vector<std::string>>;

// Runs body where a library gathers for the collectives, and `change` changes what it gathered.
void OnGatheringThreads(
    int size, const std::function<void(Communicator&)>& body,
    const std::function<void(Gathered&)>& change = [](Gathered&) {}) {
  auto libraries = CreateSimulatedCommunicators(Hosts(size));
  auto ranks = CreateSimulatedCommunicators(Hosts(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      body(*MakeMessageCommunicator(MakeTransportOver(std::move(ranks[rank])), MakeGroup(Hosts(size)),
                                    [&](std::string_view bytes, Deadline deadline) {
                                      Gathered all = libraries[rank]->AllGather(bytes, deadline);
                                      change(all);
                                      return all;
                                    }));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <int size>
struct GatheringThreads {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) { OnGatheringThreads(size, body); }
};

using GatheringSizes = testing::Types<GatheringThreads<1>, GatheringThreads<2>, GatheringThreads<4>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Gathering, CommunicatorConformance, GatheringSizes);

TEST(MessageCommunicator, ALibraryThatFailedIsNotAskedAgain) {
  std::atomic<int> num_asked = 0;
  const auto fail = [&](Gathered& all) {
    ++num_asked;
    all = absl::UnavailableError("gone");
  };
  OnGatheringThreads(
      3,
      [](Communicator& group) {
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ(group.AllGather(absl::StrCat(group.rank()), ForTests()).value(),
                    (std::vector<std::string>{"0", "1", "2"}));
        }
      },
      fail);
  EXPECT_EQ(num_asked, 3);
}

TEST(MessageCommunicator, WhoBringsALibraryWhatIsOfNoCollectiveOfTheGroupIsNamed) {
  OnGatheringThreads(
      2,
      [](Communicator& group) {
        EXPECT_EQ(std::string(group.Barrier(ForTests()).message()),
                  absl::StrCat("rank ", group.rank(), " (host", group.rank(),
                               "): Barrier #1: rank 1 (host1) called what is none of its collectives"));
      },
      [](Gathered& all) { (*all)[1] = "?"; });
  OnGatheringThreads(2, [](Communicator& group) {
    const auto first = group.Split(0, 0, ForTests()), second = group.Split(0, 0, ForTests());
    const int me = group.rank();
    EXPECT_EQ(std::string((**(me == 0 ? first : second)).Barrier(ForTests()).message()),
              absl::StrCat("rank ", me, " (host", me, "): Barrier #1: rank ", 1 - me, " (host", 1 - me,
                           ") called Barrier #1 of another group instead"));
  });
}

// Says of each message what it is told to.
class ToldTransport final : public Transport {
 public:
  absl::Status status;
  uint64_t dropped_before = 0;

  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string host() const override { return "a"; }
  absl::Status Post(int, Channel, std::string_view) override { return absl::OkStatus(); }
  absl::Status Flush(Channel, Deadline) override { return status; }
  absl::StatusOr<std::string> Receive(int, Channel, Deadline) override { return status; }
  void DropBefore(Channel channel) override { dropped_before = channel.number; }
};

TEST(MessageCommunicator, ACallThatFailsNamesBothRanksAndTheCause) {
  const auto transport = std::make_shared<ToldTransport>();
  const auto group = MakeMessageCommunicator(transport, MakeGroup({"a", "b"}));
  const Deadline deadline = Deadline::After(std::chrono::seconds(3));
  const auto expect = [](const absl::Status& status, const std::string& message) {
    EXPECT_EQ(std::string(status.message()), message);
  };
  transport->status = absl::UnavailableError("lost");
  expect(group->Receive(1, 4, deadline).status(), "rank 0 (a): Receive with tag 4: from rank 1 (b): lost");
  expect(group->Gather(0, "", deadline).status(), "rank 0 (a): Gather #1: from rank 1 (b): lost");
  expect(group->Send(1, 4, "", deadline), "lost");
  transport->status = absl::DeadlineExceededError("late");
  expect(group->Send(1, 4, "", deadline), "rank 0 (a): Send to rank 1 (b) with tag 4: not taken within 3 s");
  expect(group->Flush(4, deadline), "rank 0 (a): Flush of tag 4: not taken within 3 s");
  expect(group->Gather(1, "", deadline).status(), "rank 0 (a): Gather #2: not taken within 3 s");
  expect(group->Gather(0, "", deadline).status(),
         "rank 0 (a): Gather #3: nothing from rank 1 (b) within 3 s");
  EXPECT_EQ(transport->dropped_before, 3u);
  // While ranks tell each other their hosts, each knows its own.
  expect(MakeMessageCommunicator(transport, deadline).status(),
         "rank 0 (a): AllGather #1: not taken within 3 s");
}

// Returns the first rank that a rank misses of those below it in the binomial tree; -1 if all are there.
int FirstMissing(int rank, int size, const std::set<int>& missing) {
  for (int distance = 1; (rank & distance) == 0 && rank + distance < size; distance *= 2) {
    const int below = rank + distance;
    const int first = missing.count(below) > 0 ? below : FirstMissing(below, size, missing);
    if (first >= 0) return first;
  }
  return -1;
}

// Returns the rank that another has to name if these are missing; -1 if it cannot know.
int RankToName(int rank, int size, const std::set<int>& missing) {
  if (const int below = FirstMissing(rank, size, missing); below >= 0) return below;
  const int above = rank & (rank - 1);
  if (missing.count(above) > 0) return above;
  for (int from = above; from > 0; from &= from - 1) {
    if (missing.count(from & (from - 1)) > 0) return -1;
  }
  return FirstMissing(0, size, missing);
}

TEST(SimulatedCommunicator, EveryRankNamesTheOneThatIsMissing) {
  constexpr int kSize = 8;
  std::vector<std::set<int>> cases = {{0, 3}, {0, 6}, {2, 7}};
  for (int rank = 0; rank < kSize; ++rank) cases.push_back({rank});
  // Each rank gives up a tenth of a second before the one above it, which a loaded machine may not keep to.
  for (int attempt = 0; attempt < 10 && !cases.empty(); ++attempt) {
    std::vector<std::vector<std::unique_ptr<Communicator>>> groups;
    std::vector<std::vector<std::string>> messages;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < cases.size(); ++i) {
      groups.push_back(CreateSimulatedCommunicators(Hosts(kSize)));
      messages.emplace_back(kSize);
    }
    const Deadline deadline = Deadline::After(std::chrono::milliseconds(1600));
    for (size_t i = 0; i < cases.size(); ++i) {
      for (int rank = 0; rank < kSize; ++rank) {
        if (cases[i].count(rank) > 0) continue;
        threads.emplace_back([&groups, &messages, &deadline, i, rank] {
          messages[i][rank] = std::string(groups[i][rank]->Barrier(deadline).message());
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<std::set<int>> failed;
    for (size_t i = 0; i < cases.size(); ++i) {
      bool are_named = true;
      for (int rank = 0; rank < kSize; ++rank) {
        if (cases[i].count(rank) > 0) continue;
        const int named = RankToName(rank, kSize, cases[i]);
        const std::string expected =
            named < 0 ? "nothing from rank" : absl::StrCat("nothing from rank ", named);
        if (messages[i][rank].find(expected) != std::string::npos) continue;
        are_named = false;
        std::cout << "rank " << rank << " has to name " << named << ": " << messages[i][rank] << "\n";
      }
      if (!are_named) failed.push_back(cases[i]);
    }
    cases = failed;
  }
  EXPECT_TRUE(cases.empty());
}

}  // namespace
}  // namespace ott
