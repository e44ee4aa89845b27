// Needs a GPU; its ranks are processes that share it.

#include "ott/dist/comm/nccl_communicator.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/communicator_conformance.h"
#include "ott/dist/comm/ranks_gtest.h"

namespace ott {
namespace {

// NCCL takes ranks with one device and one host for a mistake. With names of their own they look like ranks
// of different hosts, and talk over sockets.
absl::StatusOr<std::unique_ptr<NcclCommunicator>> CreateOnSharedDevice() {
  setenv("NCCL_HOSTID", ("rank" + std::to_string(TestRanks().rank())).c_str(), 1);
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("NCCL_IB_DISABLE", "1", 1);
  auto control = TestRanks().Split(0, 0, ForTests());
  if (!control.ok()) return control.status();
  return CreateNcclCommunicator(*std::move(control), NcclOptions());
}

// One for all tests.
absl::StatusOr<std::unique_ptr<NcclCommunicator>>& Nccl() {
  static auto& communicator = *new auto(CreateOnSharedDevice());
  return communicator;
}

struct NcclRanks {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) {
    ASSERT_TRUE(Nccl().ok()) << Nccl().status();
    body(**Nccl());
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Nccl, CommunicatorConformance, NcclRanks);

// Floats in device memory.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values) : size_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, size_ * sizeof(float)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(float), cudaMemcpyHostToDevice), cudaSuccess);
  }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  ~DeviceFloats() { cudaFree(data_); }

  void* data() { return data_; }
  std::vector<float> Read() const {
    std::vector<float> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  const size_t size_;
  void* data_ = nullptr;
};

TEST(NcclCommunicator, ReducesInDeviceMemory) {
  ASSERT_TRUE(Nccl().ok()) << Nccl().status();
  NcclCommunicator& nccl = **Nccl();
  const auto rank = static_cast<float>(nccl.rank());
  const auto size = static_cast<float>(nccl.size());
  DeviceFloats values({rank, 1.5f, -rank});
  ASSERT_TRUE(
      nccl.AllReduceOnDevice(Reduction::kSum, DType::kFloat32, values.data(), 3, nullptr, ForTests()).ok());
  const float sum = size * (size - 1) / 2;
  EXPECT_THAT(values.Read(), testing::ElementsAre(sum, 1.5f * size, -sum));
  EXPECT_TRUE(absl::IsInvalidArgument(
      nccl.AllReduceOnDevice(Reduction::kSum, DType::kBool, values.data(), 1, nullptr, ForTests())));
}

TEST(NcclCommunicator, BroadcastsInDeviceMemory) {
  ASSERT_TRUE(Nccl().ok()) << Nccl().status();
  NcclCommunicator& nccl = **Nccl();
  DeviceFloats values({static_cast<float>(nccl.rank()), 0.25f * static_cast<float>(nccl.rank())});
  const int root = nccl.size() - 1;
  ASSERT_TRUE(nccl.BroadcastOnDevice(root, values.data(), 2 * sizeof(float), nullptr, ForTests()).ok());
  EXPECT_THAT(values.Read(),
              testing::ElementsAre(static_cast<float>(root), 0.25f * static_cast<float>(root)));
}

// The last: an aborted communicator is of no use any more.
TEST(NcclCommunicator, AMissingRankCostsTheDeadlineAndAborts) {
  ASSERT_TRUE(Nccl().ok()) << Nccl().status();
  NcclCommunicator& nccl = **Nccl();
  if (nccl.size() == 1) return;
  DeviceFloats values({1.0f});
  if (nccl.rank() != 0) {
    const absl::Status status =
        nccl.AllReduceOnDevice(Reduction::kSum, DType::kFloat32, values.data(), 1, nullptr, Soon());
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_EQ(
        nccl.AllReduceOnDevice(Reduction::kSum, DType::kFloat32, values.data(), 1, nullptr, Soon()).code(),
        absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_TRUE(nccl.Barrier(ForTests()).ok()) << "what does not go through NCCL goes on";
}

}  // namespace
}  // namespace ott
