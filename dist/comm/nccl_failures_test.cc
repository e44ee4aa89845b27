// Tests NCCL with ranks that call different collectives, and with one that dies.

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/check.h"
#include "ott/dist/comm/nccl_communicator.h"
#include "ott/dist/comm/tcp_communicator.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

Communicator* g_ranks = nullptr;

Deadline Late() { return Deadline::After(std::chrono::seconds(60)); }

std::string Name(int rank) { return "rank " + std::to_string(rank) + " (" + g_ranks->host(rank) + ")"; }

class NcclFailures : public ::testing::Test {
 protected:
  NcclFailures() {
    setenv("NCCL_HOSTID", ("rank" + std::to_string(g_ranks->rank())).c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_IB_DISABLE", "1", 1);
    auto control = g_ranks->Split(0, 0, Late());
    OTT_CHECK(control.ok()) << control.status();
    auto nccl = CreateNcclCommunicator(*std::move(control), NcclOptions());
    OTT_CHECK(nccl.ok()) << nccl.status();
    nccl_ = *std::move(nccl);
    EXPECT_EQ(cudaMalloc(&memory_, kManyElements * sizeof(int32_t)), cudaSuccess);
    EXPECT_EQ(cudaMemset(memory_, 0, kManyElements * sizeof(int32_t)), cudaSuccess);
  }
  ~NcclFailures() override {
    nccl_.reset();
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }

  // So many go by another protocol than a few. Where ranks differ by one of a few, the one with fewer ends as
  // if all were well.
  static constexpr int64_t kManyElements = 4 << 20;

  std::unique_ptr<NcclCommunicator> nccl_;
  const int last_ = g_ranks->size() - 1;
  void* memory_ = nullptr;
};

TEST_F(NcclFailures, ACollectiveThatDiffersEndsByItsDeadlineAndIsNamed) {
  constexpr auto kDeadline = std::chrono::seconds(3);
  ASSERT_TRUE(g_ranks->Barrier(Late()).ok());
  const auto begin = std::chrono::steady_clock::now();
  const int64_t count = nccl_->rank() == last_ ? kManyElements : 2;
  const absl::Status status = nccl_->AllReduceOnDevice(Reduction::kSum, DType::kInt32, memory_, count,
                                                       nullptr, Deadline::After(kDeadline));
  // NCCL itself may see that what it got is not what it waits for.
  EXPECT_TRUE(absl::IsUnavailable(status) || std::chrono::steady_clock::now() - begin >= kDeadline);
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("called AllReduceOnDevice #1 (sum of 2 int32)"));
  EXPECT_THAT(message, HasSubstr(Name(last_) + " called AllReduceOnDevice #1 (sum of 4194304 int32)"));
  EXPECT_EQ(nccl_->AreEqual({1}, Late()).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(NcclFailures, ARankThatDoesNotComeIsNamed) {
  ASSERT_TRUE(g_ranks->Barrier(Late()).ok());
  const Deadline deadline = Deadline::After(std::chrono::seconds(3));
  if (nccl_->rank() != last_) {
    const absl::Status status = nccl_->AreEqual({1}, deadline).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("nothing from " + Name(last_)));
  }
  EXPECT_TRUE(g_ranks->Barrier(Late()).ok());
}

// The last one, of ranks that live.
TEST_F(NcclFailures, ARankThatDiesIsAnErrorThatNamesIt) {
  ASSERT_TRUE(nccl_->AreEqual({1}, Late()).value());
  ASSERT_TRUE(g_ranks->Barrier(Late()).ok());
  if (nccl_->rank() == last_) std::_Exit(0);
  const absl::Status status = nccl_->AreEqual({2}, Deadline::After(std::chrono::seconds(20))).status();
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing from " + Name(last_)));
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto options = ott::TcpOptionsFromEnvironment();
  OTT_CHECK(options.ok()) << options.status();
  const auto ranks = ott::CreateTcpCommunicator(*options);
  OTT_CHECK(ranks.ok()) << ranks.status();
  ott::g_ranks = ranks->get();
  return RUN_ALL_TESTS();
}
