#include "ott/dist/comm/local_communicator.h"

#include "gtest/gtest.h"
#include "ott/dist/comm/host_name.h"

namespace ott {
namespace {

TEST(LocalCommunicator, IsRankZeroOfOneOnThisHost) {
  const auto communicator = CreateLocalCommunicator();
  EXPECT_EQ(communicator->rank(), 0);
  EXPECT_EQ(communicator->size(), 1);
  EXPECT_EQ(communicator->host(0), HostName());
}

}  // namespace
}  // namespace ott
