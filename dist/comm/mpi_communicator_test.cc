#include "ott/dist/comm/mpi_communicator.h"

#include <mpi.h>

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/communicator_conformance.h"
#include "ott/dist/comm/ranks_gtest.h"

namespace ott {
namespace {

struct MpiRanks {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) { body(TestRanks()); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, CommunicatorConformance, MpiRanks);

TEST(MpiCommunicator, CoversMpiCommWorldByDefault) {
  int rank = -1, size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT_EQ(TestRanks().rank(), rank);
  EXPECT_EQ(TestRanks().size(), size);
}

TEST(MpiCommunicator, TakesACommunicatorOfTheProgram) {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -TestRanks().rank(), &reversed);
  MpiOptions options;
  options.communicator = MPI_Comm_c2f(reversed);
  const auto communicator = CreateMpiCommunicator(options);
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  // Works on a duplicate: the program may free its own.
  MPI_Comm_free(&reversed);
  EXPECT_EQ((*communicator)->rank(), TestRanks().size() - 1 - TestRanks().rank());
  EXPECT_TRUE((*communicator)->Barrier(ForTests()).ok());
}

TEST(MpiCommunicator, LeavesTheProgramsOwnMessagesAlone) {
  const int size = TestRanks().size();
  int sent = TestRanks().rank(), received = -1;
  const int right = (sent + 1) % size, left = (sent + size - 1) % size;
  MPI_Request request;
  MPI_Isend(&sent, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &request);
  ASSERT_TRUE(TestRanks().Barrier(ForTests()).ok());
  MPI_Recv(&received, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(received, left);
}

TEST(MpiCommunicator, ReportsTheMissingRankWhereNotAllCreateIt) {
  if (TestRanks().size() == 1) return;
  // Over a copy, so that a duplication nobody finishes stays out of the other tests' way.
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MpiOptions options;
  options.communicator = MPI_Comm_c2f(copy);
  options.timeout = std::chrono::milliseconds(50);
  if (TestRanks().rank() == 0) {
    const absl::Status status = CreateMpiCommunicator(options).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("rank 0"));
  }
}

}  // namespace
}  // namespace ott
