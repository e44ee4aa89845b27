#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/local_communicator.h"
#include "ott/dist/comm/nccl_communicator.h"

namespace ott {
namespace {

TEST(NcclCommunicatorUnavailable, SaysWhatIsMissing) {
  const absl::Status status = CreateNcclCommunicator(CreateLocalCommunicator(), NcclOptions()).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("built without NCCL"));
}

}  // namespace
}  // namespace ott
