// On processes of its own, started without MPI.

#include "ott/dist/comm/tcp_communicator.h"

#include <functional>

#include "gtest/gtest.h"
#include "ott/dist/comm/communicator_conformance.h"
#include "ott/dist/comm/ranks_gtest.h"

namespace ott {
namespace {

struct TcpRanks {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) { body(TestRanks()); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Tcp, CommunicatorConformance, TcpRanks);

}  // namespace
}  // namespace ott
