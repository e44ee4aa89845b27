#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/local_communicator.h"
#include "ott/dist/comm/nccl_communicator.h"

namespace ott {
namespace {

TEST(NcclCommunicator, NamesTheRankAndTheCallWhereADeviceIsMissing) {
  NcclOptions options;
  options.device = 1000;
  const absl::Status status = CreateNcclCommunicator(CreateLocalCommunicator(), options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("rank 0 ("));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("cudaSetDevice(device_)"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("GPU on every rank"));
}

}  // namespace
}  // namespace ott
