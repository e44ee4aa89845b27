// Needs a GPU; its ranks are processes that share it.

#include "ott/dist/comm/nccl_communicator.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
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

TEST(NcclCommunicator, AreEqualTellsWhetherAllRanksBroughtTheSame) {
  ASSERT_TRUE(Nccl().ok()) << Nccl().status();
  NcclCommunicator& nccl = **Nccl();
  const auto rank = static_cast<uint64_t>(nccl.rank());
  const std::vector<uint64_t> same = {0, 1, ~uint64_t{0}, uint64_t{1} << 63};
  EXPECT_TRUE(nccl.AreEqual(same, ForTests()).value());
  EXPECT_EQ(nccl.AreEqual({5, rank}, ForTests()).value(), nccl.size() == 1);
  EXPECT_EQ(nccl.AreEqual({rank == 0 ? ~uint64_t{0} : 0}, ForTests()).value(), nccl.size() == 1);
  EXPECT_TRUE(nccl.AreEqual({}, ForTests()).value());
}

// What rank 0 gets where each rank brings its bytes.
std::vector<std::string> Gather(NcclCommunicator& nccl, const std::string& bytes) {
  EXPECT_TRUE(nccl.BeginGather(bytes, /*all_wait=*/true, ForTests()).ok());
  const auto gathered = nccl.TakeGathered(ForTests(), ForTests());
  EXPECT_TRUE(gathered.ok() && gathered->has_value()) << gathered.status();
  return gathered.ok() && gathered->has_value() ? **gathered : std::vector<std::string>();
}

TEST(NcclCommunicator, GathersBytesOfWhateverSizeAtRankZero) {
  ASSERT_TRUE(Nccl().ok()) << Nccl().status();
  NcclCommunicator& nccl = **Nccl();
  for (const size_t size : {0, 1, 16376, 16384, 131064, 131065, 400000, 5}) {
    const auto bytes = [&](int rank) {
      return std::string(size * static_cast<size_t>(rank + 1) / static_cast<size_t>(nccl.size()),
                         static_cast<char>('a' + rank));
    };
    std::vector<std::string> expected;
    for (int rank = 0; nccl.rank() == 0 && rank < nccl.size(); ++rank) expected.push_back(bytes(rank));
    EXPECT_EQ(Gather(nccl, bytes(nccl.rank())), expected) << size;
    // On the same stream, and in the same order everywhere.
    EXPECT_TRUE(nccl.AreEqual({size}, ForTests()).value());
  }
}

TEST(NcclCommunicator, AGatherHoldsNobodyWhoComesFirst) {
  ASSERT_TRUE(Nccl().ok()) << Nccl().status();
  NcclCommunicator& nccl = **Nccl();
  Gather(nccl, "");  // which connects the ranks
  const int late = nccl.size() - 1;
  if (nccl.rank() == late && late > 0) {
    ASSERT_TRUE(nccl.Receive(0, 7, ForTests()).ok());
  }
  ASSERT_TRUE(nccl.BeginGather(std::string(1000, 'x'), /*all_wait=*/false, ForTests()).ok());
  if (nccl.rank() == 0 && late > 0) {
    EXPECT_EQ(nccl.TakeGathered(Deadline::Now(), ForTests()).value(), std::nullopt);
    ASSERT_TRUE(nccl.Post(late, 7, "come").ok());
  }
  const auto gathered = nccl.TakeGathered(ForTests(), ForTests());
  ASSERT_TRUE(gathered.ok()) << gathered.status();
  EXPECT_EQ((*gathered)->size(), nccl.rank() == 0 ? static_cast<size_t>(nccl.size()) : 0);
}

// Ranks look at different moments, and could not begin again at the same.
TEST(NcclCommunicator, WithoutWaitingBytesThatAreMoreThanAnyBeforeComeTheNextTime) {
  auto control = TestRanks().Split(0, 0, ForTests());
  ASSERT_TRUE(control.ok()) << control.status();
  const auto nccl = CreateNcclCommunicator(*std::move(control), NcclOptions());
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  const bool is_last = (*nccl)->rank() + 1 == (*nccl)->size();
  for (const size_t expected : {0, 200000}) {
    ASSERT_TRUE(
        (*nccl)->BeginGather(std::string(is_last ? 200000 : 10, 'x'), /*all_wait=*/false, ForTests()).ok());
    const auto gathered = (*nccl)->TakeGathered(ForTests(), ForTests());
    ASSERT_TRUE(gathered.ok()) << gathered.status();
    if ((*nccl)->rank() != 0) continue;
    EXPECT_EQ((*gathered)->back().size(), expected);
    if ((*nccl)->size() > 1) {
      EXPECT_EQ((*gathered)->front().size(), 10u);
    }
  }
}

TEST(NcclCommunicator, AGatherThatNobodyTookIsDropped) {
  ASSERT_TRUE(Nccl().ok()) << Nccl().status();
  NcclCommunicator& nccl = **Nccl();
  ASSERT_TRUE(nccl.BeginGather("dropped", /*all_wait=*/false, ForTests()).ok());
  const std::vector<std::string> gathered = Gather(nccl, "taken");
  if (nccl.rank() == 0) {
    EXPECT_THAT(gathered, testing::Each(testing::StrEq("taken")));
  }
}

TEST(NcclCommunicator, ThreadsMayCallItAtOnceAndKeepTheirDevices) {
  ASSERT_TRUE(Nccl().ok()) << Nccl().status();
  NcclCommunicator& nccl = **Nccl();
  int num_devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&num_devices), cudaSuccess);
  const auto compare = [&] {
    ASSERT_EQ(cudaSetDevice(num_devices - 1), cudaSuccess);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(nccl.AreEqual({1, 2, 3}, ForTests()).value());
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, num_devices - 1);
  };
  std::thread other(compare);
  compare();
  other.join();
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

// Of the stand-in, where OTT_NCCL_FAIL asks for it.
TEST(NcclCommunicator, AnAsynchronousErrorIsToldAndAborts) {
  if (std::getenv("OTT_NCCL_FAIL") == nullptr) GTEST_SKIP() << "only with OTT_NCCL_FAIL";
  auto control = TestRanks().Split(0, 0, ForTests());
  ASSERT_TRUE(control.ok()) << control.status();
  const auto nccl = CreateNcclCommunicator(*std::move(control), NcclOptions());
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  const absl::Status status = (*nccl)->AreEqual({1}, Soon()).status();
  if ((*nccl)->rank() == 0) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("remote process exited"));
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
  EXPECT_EQ((*nccl)->AreEqual({1}, Soon()).status().code(), absl::StatusCode::kFailedPrecondition);
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
