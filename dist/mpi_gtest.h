// For tests that run on several ranks (mpi_cc_test). Every rank runs the same tests in the same order; link
// //dist:mpi_gtest_main instead of gtest_main. Rank 0 reports, the other ranks' failures included.

#ifndef OTT_DIST_MPI_GTEST_H_
#define OTT_DIST_MPI_GTEST_H_

#include "ott/dist/communicator.h"

namespace ott {

// All ranks of the test.
Communicator& TestRanks();

}  // namespace ott

#endif  // OTT_DIST_MPI_GTEST_H_
