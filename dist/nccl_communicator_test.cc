// Needs a GPU.

#include "ott/dist/nccl_communicator.h"

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/communicator_conformance.h"
#include "ott/dist/local_communicator.h"

namespace ott {
namespace {

struct NcclRank {
  static void OnAllRanks(const std::function<void(Communicator&)>& body) {
    const auto communicator = CreateNcclCommunicator(CreateLocalCommunicator(), NcclOptions());
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    body(**communicator);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Nccl, CommunicatorConformance, NcclRank);

TEST(NcclCommunicator, ReducesAndBroadcastsInDeviceMemory) {
  const auto communicator = CreateNcclCommunicator(CreateLocalCommunicator(), NcclOptions());
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  const std::vector<float> values = {1.5f, -2.0f, 3.25f};
  const size_t num_bytes = values.size() * sizeof(float);
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, num_bytes), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device, values.data(), num_bytes, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_TRUE((*communicator)
                  ->AllReduceOnDevice(Reduction::kSum, DType::kFloat32, device, 3, nullptr, ForTests())
                  .ok());
  EXPECT_TRUE((*communicator)->BroadcastOnDevice(0, device, num_bytes, nullptr, ForTests()).ok());
  std::vector<float> back(values.size());
  ASSERT_EQ(cudaMemcpy(back.data(), device, num_bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, values);
  EXPECT_TRUE(absl::IsInvalidArgument(
      (*communicator)->AllReduceOnDevice(Reduction::kSum, DType::kBool, device, 1, nullptr, ForTests())));
  cudaFree(device);
}

}  // namespace
}  // namespace ott
