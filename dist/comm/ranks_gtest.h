// For tests that run on several ranks (mpi_cc_test, tcp_cc_test). Every rank runs the same tests in the same
// order; link //dist/comm:mpi_gtest_main or //dist/comm:tcp_gtest_main instead of gtest_main. Rank 0 reports,
// the other ranks' failures included.

#ifndef OTT_DIST_COMM_RANKS_GTEST_H_
#define OTT_DIST_COMM_RANKS_GTEST_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Returns all ranks of the test.
Communicator& TestRanks();

// Runs all tests on these ranks; what main returns. REQUIRES: testing::InitGoogleTest was called
int RunTestsOn(absl::StatusOr<std::unique_ptr<Communicator>> ranks);

}  // namespace ott

#endif  // OTT_DIST_COMM_RANKS_GTEST_H_
