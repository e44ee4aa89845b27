// Needs a GPU, or the stand-in, which counts what comes to the host.

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/compare/report.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/core/dump/json_writer.h"
#include "ott/third_party/cuda/testing/leak_check.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {
namespace {

constexpr int64_t kElements = 50000;  // three blocks and a piece
constexpr int64_t kBlockElements = 16384;

const DType kDTypes[] = {DType::kFloat64,    DType::kFloat32,    DType::kFloat16, DType::kBFloat16,
                         DType::kFloat8E4M3, DType::kFloat8E5M2, DType::kInt8,    DType::kInt16,
                         DType::kInt32,      DType::kInt64,      DType::kUInt8,   DType::kUInt16,
                         DType::kUInt32,     DType::kUInt64,     DType::kBool,    DType::kComplex64,
                         DType::kComplex128};

// Two tensors on the host, and the same ones on a device.
class DeviceComparison : public testing::Test {
 protected:
  DeviceComparison() {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaMalloc(&memory_[i], kElements * 16), cudaSuccess);
      EXPECT_EQ(cudaStreamCreateWithFlags(&stream_[i], cudaStreamNonBlocking), cudaSuccess);
    }
  }
  ~DeviceComparison() override {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaStreamDestroy(stream_[i]), cudaSuccess);
      EXPECT_EQ(cudaFree(memory_[i]), cudaSuccess);
    }
  }

  // Both with the same finite elements.
  void Fill(DType dtype) {
    dtype_ = dtype;
    std::mt19937 random(static_cast<uint32_t>(dtype) + 1);
    bytes_[0].resize(kElements * SizeOf(dtype));
    for (uint8_t& byte : bytes_[0]) byte = static_cast<uint8_t>(random());
    // Clears the highest bit of a floating-point number's exponent.
    const int real_bytes =
        static_cast<int>(SizeOf(dtype)) / (dtype == DType::kComplex64 || dtype == DType::kComplex128 ? 2 : 1);
    for (size_t i = real_bytes - 1; i < bytes_[0].size(); i += real_bytes) bytes_[0][i] &= 0xbf;
    if (dtype == DType::kBool) {
      for (uint8_t& byte : bytes_[0]) byte &= 1;
    }
    bytes_[1] = bytes_[0];
  }

  TensorView View(int i) const { return TensorView(bytes_[i].data(), dtype_, {kElements}); }
  TensorView OnDevice(int i) const {
    Device device;
    device.kind = Device::Kind::kCuda;
    device.stream = stream_[i];
    return TensorView(memory_[i], dtype_, {kElements}, device);
  }
  void Upload() {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(
          cudaMemcpyAsync(memory_[i], bytes_[i].data(), bytes_[i].size(), cudaMemcpyHostToDevice, stream_[i]),
          cudaSuccess);
    }
  }

  // The comparison on the device says what that on the host does; the bytes that it brings to the host.
  int64_t ExpectTheHostsFigures(const TensorCompareOptions& options = {}) {
    Upload();
    const int64_t before = FindCudaStandIn() == nullptr ? 0 : CudaStandIn().Counts().bytes_to_host;
    TensorComparison actual = CompareTensors(OnDevice(0), OnDevice(1), options);
    const int64_t brought = FindCudaStandIn() == nullptr ? 0 : CudaStandIn().Counts().bytes_to_host - before;
    const TensorComparison expected = CompareTensors(View(0), View(1), options);
    // Sums are rounded in another order.
    EXPECT_DOUBLE_EQ(actual.mean_abs_error, expected.mean_abs_error);
    EXPECT_DOUBLE_EQ(actual.root_mean_square_error, expected.root_mean_square_error);
    if (!std::isnan(expected.cosine_similarity) || !std::isnan(actual.cosine_similarity)) {
      EXPECT_NEAR(actual.cosine_similarity, expected.cosine_similarity, 1e-12) << Name(dtype_);
    }
    actual.mean_abs_error = expected.mean_abs_error;
    actual.root_mean_square_error = expected.root_mean_square_error;
    actual.cosine_similarity = expected.cosine_similarity;
    EXPECT_EQ(*ToJson(ToValue(NamedComparison{"w", actual})),
              *ToJson(ToValue(NamedComparison{"w", expected})))
        << Name(dtype_);
    return brought;
  }

  DType dtype_ = DType::kFloat32;
  std::vector<uint8_t> bytes_[2];
  void* memory_[2] = {};
  cudaStream_t stream_[2] = {};
};

TEST_F(DeviceComparison, EqualTensorsOfAnyDTypeStayOnTheDevice) {
  for (const DType dtype : kDTypes) {
    Fill(dtype);
    EXPECT_LE(ExpectTheHostsFigures(), 16 * (kElements / kBlockElements + 1)) << Name(dtype);
  }
  // Equal bytes of two dtypes are other numbers.
  Fill(DType::kFloat32);
  Upload();
  TensorCompareOptions numbers;
  numbers.compare_dtype = false;
  const TensorView floats = OnDevice(0);
  dtype_ = DType::kInt32;
  EXPECT_EQ(CompareTensors(floats, OnDevice(1), numbers).status, CompareStatus::kMismatch);
}

TEST_F(DeviceComparison, OnlyBlocksThatDifferComeToTheHost) {
  for (const DType dtype : kDTypes) {
    Fill(dtype);
    bytes_[1][(kBlockElements + 123) * SizeOf(dtype)] ^= 1;
    EXPECT_LE(ExpectTheHostsFigures(), 2 * kBlockElements * SizeOf(dtype) + 16 * 4) << Name(dtype);
    TensorCompareOptions options;
    options.tolerance.bitwise = true;
    ExpectTheHostsFigures(options);
  }
}

TEST_F(DeviceComparison, WhatIsNotFiniteIsCountedAndMatchesNothing) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                            DType::kFloat8E4M3, DType::kFloat8E5M2, DType::kComplex64}) {
    Fill(dtype);
    for (std::vector<uint8_t>& bytes : bytes_) {
      std::memset(bytes.data() + (2 * kBlockElements + 5) * SizeOf(dtype), 0xff, SizeOf(dtype));
    }
    ExpectTheHostsFigures();
    EXPECT_EQ(CompareTensors(OnDevice(0), OnDevice(1)).status, CompareStatus::kMismatch) << Name(dtype);
    TensorCompareOptions options;
    options.tolerance.nan_equal = true;
    ExpectTheHostsFigures(options);
  }
}

TEST_F(DeviceComparison, TensorsThatDifferEverywhereAreComparedOnTheHost) {
  Fill(DType::kFloat32);
  for (size_t i = 0; i < bytes_[1].size(); i += 4) bytes_[1][i] ^= 1;
  ExpectTheHostsFigures();
}

TEST_F(DeviceComparison, TheWorkOfBothStreamsComesFirst) {
  for (int seed = 1; seed <= 50; ++seed) {
    if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(seed);
    Fill(DType::kFloat32);
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(cudaMemsetAsync(memory_[i], 10 + i, kElements * 4, stream_[i]), cudaSuccess);
      ASSERT_EQ(cudaMemsetAsync(memory_[i], seed, kElements * 4, stream_[i]), cudaSuccess);
    }
    EXPECT_EQ(CompareTensors(OnDevice(0), OnDevice(1)).status, CompareStatus::kBitwiseEqual) << seed;
  }
}

TEST_F(DeviceComparison, ErrorsAreNoPassAndLeaveNothing) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "errors cannot be had at will";
  Fill(DType::kFloat32);
  bytes_[1][5] ^= 1;
  Upload();
  ExpectErrorsAreToldAndNothingLeaks([&] {
    const TensorComparison comparison = CompareTensors(OnDevice(0), OnDevice(1));
    EXPECT_FALSE(Passes(comparison.status));
    if (comparison.status != CompareStatus::kCouldNotCompare) return absl::OkStatus();
    return absl::InternalError(comparison.detail);
  });
}

}  // namespace
}  // namespace ott
