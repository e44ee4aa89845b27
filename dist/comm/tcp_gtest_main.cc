#include "gtest/gtest.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/ranks_gtest.h"
#include "ott/dist/comm/tcp_communicator.h"

namespace ott {
namespace {

absl::StatusOr<std::unique_ptr<Communicator>> CreateFromEnvironment() {
  OTT_ASSIGN_OR_RETURN(const TcpOptions options, TcpOptionsFromEnvironment());
  return CreateTcpCommunicator(options);
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return ott::RunTestsOn(ott::CreateFromEnvironment());
}
