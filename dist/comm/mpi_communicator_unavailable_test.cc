#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/mpi_communicator.h"

namespace ott {
namespace {

TEST(MpiCommunicatorUnavailable, SaysWhatIsMissing) {
  const absl::Status status = CreateMpiCommunicator().status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("built without MPI"));
}

}  // namespace
}  // namespace ott
