#include "ott/dist/comm/simulated_communicator.h"

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

template <int size>
struct Threads {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) {
    auto ranks = CreateSimulatedCommunicators(std::vector<std::string>(size, "host"));
    std::vector<std::thread> threads;
    for (auto& rank : ranks) threads.emplace_back([&body, &rank] { body(*rank); });
    for (std::thread& thread : threads) thread.join();
  }
};

using Sizes = testing::Types<Threads<1>, Threads<2>, Threads<3>, Threads<4>, Threads<7>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, CommunicatorConformance, Sizes);

// The same, where a library gathers for the collectives.
template <int size>
struct GatheringThreads {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) {
    const std::vector<std::string> hosts(size, "host");
    auto libraries = CreateSimulatedCommunicators(hosts);
    auto ranks = CreateSimulatedCommunicators(hosts);
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < hosts.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const auto gathering =
            MakeMessageCommunicator(MakeTransportOver(std::move(ranks[rank])), MakeGroup(hosts),
                                    [&](std::string_view bytes, Deadline deadline) {
                                      return libraries[rank]->AllGather(bytes, deadline);
                                    });
        body(*gathering);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
};

using GatheringSizes = testing::Types<GatheringThreads<1>, GatheringThreads<2>, GatheringThreads<4>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Gathering, CommunicatorConformance, GatheringSizes);

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
      groups.push_back(CreateSimulatedCommunicators(std::vector<std::string>(kSize, "host")));
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

TEST(SimulatedCommunicator, OneThreadCanPlayAllRanksWhereNobodyWaits) {
  const auto ranks = CreateSimulatedCommunicators({"node0", "node1"});
  EXPECT_EQ(ranks[1]->rank(), 1);
  EXPECT_EQ(ranks[0]->host(1), "node1");
  ASSERT_TRUE(ranks[1]->Post(0, 4, "hello").ok());
  EXPECT_EQ(ranks[0]->Receive(1, 4, Deadline::Now()).value(), "hello");
}

}  // namespace
}  // namespace ott
