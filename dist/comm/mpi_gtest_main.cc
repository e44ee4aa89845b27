#include "gtest/gtest.h"
#include "ott/dist/comm/mpi_communicator.h"
#include "ott/dist/comm/ranks_gtest.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return ott::RunTestsOn(ott::CreateMpiCommunicator());
}
