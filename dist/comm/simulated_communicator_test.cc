#include "ott/dist/comm/simulated_communicator.h"

#include <functional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ott/dist/comm/communicator_conformance.h"

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

TEST(SimulatedCommunicator, OneThreadCanPlayAllRanksWhereNobodyWaits) {
  const auto ranks = CreateSimulatedCommunicators({"node0", "node1"});
  EXPECT_EQ(ranks[1]->rank(), 1);
  EXPECT_EQ(ranks[0]->host(1), "node1");
  ASSERT_TRUE(ranks[1]->Post(0, 4, "hello").ok());
  EXPECT_EQ(ranks[0]->Receive(1, 4, Deadline::Now()).value(), "hello");
}

}  // namespace
}  // namespace ott
