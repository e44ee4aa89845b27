#include "ott/dist/comm/local_communicator.h"

#include <functional>

#include "gtest/gtest.h"
#include "ott/dist/comm/communicator_conformance.h"
#include "ott/dist/comm/host_name.h"

namespace ott {
namespace {

struct LocalRank {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) { body(*CreateLocalCommunicator()); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Local, CommunicatorConformance, LocalRank);

TEST(LocalCommunicator, IsRankZeroOfOneOnThisHost) {
  const auto communicator = CreateLocalCommunicator();
  EXPECT_EQ(communicator->rank(), 0);
  EXPECT_EQ(communicator->size(), 1);
  EXPECT_EQ(communicator->host(0), HostName());
}

}  // namespace
}  // namespace ott
