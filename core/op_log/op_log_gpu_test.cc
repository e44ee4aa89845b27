// Operations whose tensors are in device memory.

#include <cuda_runtime_api.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/op_log.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/third_party/cuda/testing/leak_check.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {
namespace {

class OpLogOnDevice : public ::testing::Test {
 protected:
  static constexpr int64_t kElements = 50000;
  static inline const Dims kShape = {200, 250};
  static inline const Dims kStrides = {250, 1};
  static inline const Dims kTransposed = {1, 200};
  static constexpr int64_t kBytes = kElements * 4;

  OpLogOnDevice() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    for (int64_t i = 0; i < kElements; ++i) host_[i] = static_cast<float>(i % 1000) - 500;
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    device_.kind = Device::Kind::kCuda;
    device_.stream = stream_;
  }
  ~OpLogOnDevice() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }

  // Logs an operation that reads the host's numbers, also transposed, and makes zeros of them in place; its
  // tensors are overwritten as soon as they were told. What Finish() says.
  absl::Status LogAnOperation(const std::string& path) {
    OpLog::Options options;
    options.path = path;
    auto log = OpLog::Create(options);
    EXPECT_TRUE(log.ok()) << log.status();
    OpRanges ranges;
    ranges.TellObserver(log->get());
    absl::Status status = (*log)->BeginIteration(0);
    cudaMemcpyAsync(memory_, host_.data(), kBytes, cudaMemcpyHostToDevice, stream_);
    {
      const TensorView x(memory_, DType::kFloat32, kShape, kStrides, device_);
      const TensorView transposed(memory_, DType::kFloat32, kShape, kTransposed, device_);
      OpRange op(OpRange::Op("zero").In(ranges), {{"x", x}, {"transposed", transposed}});
      cudaMemsetAsync(memory_, 0, kBytes, stream_);
      op.Outputs({{"y", x}});
      cudaMemsetAsync(memory_, 1, kBytes, stream_);
    }
    ranges.TellObserver(nullptr);
    status.Update((*log)->Finish());
    cudaStreamSynchronize(stream_);
    return status;
  }

  const std::string dir_ = testing::TempDir() + "op_log_on_device";
  std::vector<float> host_ = std::vector<float>(kElements);
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Device device_;
};

TEST_F(OpLogOnDevice, TensorsAreLoggedAsTheyWereInTheOrderOfTheirStream) {
  const std::vector<float> zeros(kElements);
  const auto expected = [](const std::vector<float>& data, const Dims& shape, const Dims& strides) {
    return *ComputeDigestAndStatistics(TensorView(data.data(), DType::kFloat32, shape, strides));
  };
  const DigestAndStatistics of_tensors[] = {expected(host_, kShape, kStrides),
                                            expected(host_, kShape, kTransposed),
                                            expected(zeros, kShape, kStrides)};
  for (int seed = 0; seed < 20; ++seed) {
    if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(seed);
    const std::string path = dir_ + "/" + std::to_string(seed);
    const absl::Status status = LogAnOperation(path);
    ASSERT_TRUE(status.ok()) << status;
    if (FindCudaStandIn() != nullptr) {
      EXPECT_LE(CudaStandIn().Counts().bytes_to_host, 3 * 200);
    }
    const auto log = ReadOpLog(path);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_EQ(log->ops.size(), 1u);
    const LoggedOp& op = log->ops[0];
    ASSERT_EQ(op.num_tensors(), 3);
    for (int i = 0; i < 3; ++i) {
      const SketchedStatistics& statistics = of_tensors[i].statistics;
      EXPECT_EQ(op.digest(i), of_tensors[i].digest) << i;
      EXPECT_NEAR(op.norm(i), statistics.norm, 1e-6 * statistics.norm) << i;
      EXPECT_EQ(op.max_abs(i), statistics.max_abs) << i;
      for (int sum = 0; sum < TensorSketch::kNumSums; ++sum) {
        EXPECT_NEAR(op.sketch(i)[sum], statistics.sketch.sums[sum], 1e-6 * statistics.norm) << i;
      }
    }
  }
}

TEST_F(OpLogOnDevice, ErrorsAreToldAndNothingLeaks) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "errors of a GPU cannot be had at will";
  int number = 0;
  ExpectErrorsAreToldAndNothingLeaks([&] { return LogAnOperation(dir_ + "/" + std::to_string(number++)); });
}

}  // namespace
}  // namespace ott
