// MPI initialised by the program with MPI_THREAD_FUNNELED.

#include <mpi.h>

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/mpi_communicator.h"

namespace ott {
namespace {

TEST(MpiCommunicator, RefusesASecondThreadWhereMpiAllowsOnlyOne) {
  const auto communicator = CreateMpiCommunicator();
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  absl::Status from_other_thread;
  std::thread([&] { from_other_thread = (*communicator)->Post(0, 1, "message"); }).join();
  EXPECT_TRUE(absl::IsFailedPrecondition(from_other_thread)) << from_other_thread;
  EXPECT_THAT(std::string(from_other_thread.message()), testing::HasSubstr("MPI_THREAD_MULTIPLE"));
  EXPECT_TRUE((*communicator)->Post((*communicator)->rank(), 1, "message").ok());
  EXPECT_EQ(
      (*communicator)->Receive((*communicator)->rank(), 1, Deadline::After(std::chrono::seconds(9))).value(),
      "message");
}

TEST(MpiCommunicator, DoesNotFinaliseWhatTheProgramInitialised) {
  { ASSERT_TRUE(CreateMpiCommunicator().ok()); }
  int finalized = 1;
  MPI_Finalized(&finalized);
  EXPECT_FALSE(finalized);
}

TEST(MpiCommunicator, MayOutliveMpiAndNobodyMakesAnother) {
  const auto communicator = CreateMpiCommunicator();
  MPI_Finalize();
  const absl::Status status = CreateMpiCommunicator().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
