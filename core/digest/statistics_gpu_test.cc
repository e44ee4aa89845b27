#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/digest/statistics_on_device.h"
#include "ott/core/tensor/element.h"
#include "ott/third_party/cuda/testing/leak_check.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {
namespace {

// Elements on the host, and the same ones on a device.
class StatisticsOnDeviceTest : public testing::Test {
 protected:
  static constexpr int64_t kBytes = 5 * kDigestBlockBytes + 1000;

  StatisticsOnDeviceTest() {
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    device_.kind = Device::Kind::kCuda;
    device_.stream = stream_;
    FillWithRandomBits();
  }
  ~StatisticsOnDeviceTest() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }

  // Fills with huge and tiny floating-point numbers, NaN and infinities.
  void FillWithRandomBits() {
    std::mt19937 random(1);
    for (uint8_t& byte : bytes_) byte = static_cast<uint8_t>(random());
    Copy();
  }

  void FillWithNumbers(DType dtype) {
    std::mt19937_64 random(2);
    std::normal_distribution<double> normal(0, 3);
    VisitDType(dtype, [&](auto element) {
      using T = decltype(element);
      auto* const elements = reinterpret_cast<T*>(bytes_.data());
      for (size_t i = 0; i < kBytes / sizeof(T); ++i) {
        if constexpr (kIsComplex<T>) {
          using Part = typename T::value_type;
          elements[i] = T(static_cast<Part>(normal(random)), static_cast<Part>(normal(random)));
        } else if constexpr (std::is_integral_v<T>) {
          elements[i] = static_cast<T>(std::abs(10 * normal(random)));
        } else {
          elements[i] = FromDouble<T>(normal(random));
        }
      }
    });
    Copy();
  }

  void Copy() { ASSERT_EQ(cudaMemcpy(memory_, bytes_.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess); }

  TensorView OnDevice(DType dtype, int64_t offset, const Dims& shape, const Dims& strides) const {
    return {static_cast<const uint8_t*>(memory_) + offset, dtype, shape, strides, device_};
  }

  static void ExpectNear(double actual, double expected, double error) {
    if (std::isfinite(expected)) {
      EXPECT_NEAR(actual, expected, error);
    } else {
      EXPECT_EQ(std::isnan(actual), std::isnan(expected));
    }
  }

  // Compares the same view of both.
  void ExpectEqual(DType dtype, int64_t offset, const Dims& shape, const Dims& strides) {
    SCOPED_TRACE(testing::Message() << Name(dtype) << ShapeToString(shape) << ShapeToString(strides) << " at "
                                    << offset);
    const auto started = StartStatisticsOnDevice(OnDevice(dtype, offset, shape, strides));
    ASSERT_TRUE(started.ok()) << started.status();
    const auto actual = (*started)->Get();
    ASSERT_TRUE(actual.ok()) << actual.status();
    const auto expected =
        ComputeDigestAndStatistics(TensorView(bytes_.data() + offset, dtype, shape, strides));
    EXPECT_EQ(actual->digest, expected->digest);
    const SketchedStatistics& host = expected->statistics;
    EXPECT_EQ(actual->statistics.num_nan, host.num_nan);
    EXPECT_EQ(actual->statistics.num_infinite, host.num_infinite);
    EXPECT_EQ(actual->statistics.max_abs, host.max_abs);
    ExpectNear(actual->statistics.norm, host.norm, 1e-6 * host.norm);
    if (!std::isfinite(host.norm)) return;
    for (int i = 0; i < TensorSketch::kNumSums; ++i) {
      ExpectNear(actual->statistics.sketch.sums[i], host.sketch.sums[i],
                 TensorSketch::kResolution * host.norm);
    }
  }

  void ExpectEqualForAllLayouts(DType dtype) {
    const int64_t size = SizeOf(dtype);
    const int64_t most = kBytes / size;
    ExpectEqual(dtype, 0, {}, {});
    for (const int64_t count : {int64_t{1}, int64_t{63}, int64_t{2048}, int64_t{2049}, most}) {
      ExpectEqual(dtype, 0, {count}, {1});
    }
    ExpectEqual(dtype, size, {3, 5, 7}, {35, 7, 1});
    // Transposed, with gaps, repeated, and backwards.
    ExpectEqual(dtype, 0, {101, 30}, {1, 101});
    ExpectEqual(dtype, 0, {40, 80}, {200, 2});
    ExpectEqual(dtype, size, {4, 800}, {0, 1});
    ExpectEqual(dtype, size * 2999, {3000}, {-1});
    ExpectEqual(dtype, 0, {2, 1, 3, 2, 2, 2, 2, 2}, {1, 1, 2, 6, 12, 24, 48, 96});
  }

  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(kBytes);
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Device device_;
};

TEST_F(StatisticsOnDeviceTest, AreTheHostsForAllDTypesAndLayouts) {
  for (const DTypeInfo& dtype : kDTypes) {
    FillWithNumbers(dtype.dtype);
    ExpectEqualForAllLayouts(dtype.dtype);
  }
}

TEST_F(StatisticsOnDeviceTest, AreTheHostsForNanInfinitiesAndNumbersWhoseSquaresOverflow) {
  for (const DTypeInfo& dtype : kDTypes) {
    if (dtype.dtype != DType::kBool) ExpectEqual(dtype.dtype, 0, {kBytes / dtype.size}, {1});
  }
  const float few[] = {1e30f, -1e-30f, 3, std::numeric_limits<float>::infinity(), std::nanf("")};
  for (size_t i = 0; i < std::size(few); ++i) {
    std::vector<float> floats(5000, few[i]);
    std::copy_n(reinterpret_cast<const uint8_t*>(floats.data()), floats.size() * sizeof(float),
                bytes_.begin());
    Copy();
    ExpectEqual(DType::kFloat32, 0, {5000}, {1});
  }
}

TEST_F(StatisticsOnDeviceTest, AreTheHostsWhereElementsAreNotAligned) {
  for (const int64_t offset : {1, 3, 4, 8}) {
    ExpectEqual(DType::kUInt8, offset, {70000}, {1});
    ExpectEqual(DType::kFloat32, offset, {3000}, {1});
  }
}

TEST_F(StatisticsOnDeviceTest, AreOfTheirMomentWhateverTheStreamGetsLater) {
  FillWithNumbers(DType::kFloat32);
  const TensorView whole = OnDevice(DType::kFloat32, 0, {kBytes / 4}, {1});
  const TensorView transposed = OnDevice(DType::kFloat32, 0, {200, 300}, {1, 200});
  for (const TensorView& view : {whole, transposed}) {
    const auto expected =
        ComputeDigestAndStatistics(TensorView(bytes_.data(), DType::kFloat32, view.shape(), view.strides()));
    for (int seed = 0; seed < 20; ++seed) {
      if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(seed);
      ASSERT_EQ(cudaMemsetAsync(memory_, seed, kBytes, stream_), cudaSuccess);
      ASSERT_EQ(cudaMemcpyAsync(memory_, bytes_.data(), kBytes, cudaMemcpyHostToDevice, stream_),
                cudaSuccess);
      const auto started = StartStatisticsOnDevice(view);
      ASSERT_EQ(cudaMemsetAsync(memory_, seed, kBytes, stream_), cudaSuccess);
      ASSERT_TRUE(started.ok()) << started.status();
      EXPECT_EQ((*started)->Get()->digest, expected->digest) << seed;
      EXPECT_EQ((*started)->Get()->statistics.max_abs, expected->statistics.max_abs) << seed;
    }
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
}

TEST_F(StatisticsOnDeviceTest, BringLessThan200BytesToTheHostWhateverTheSize) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "a GPU does not count bytes";
  for (const int64_t count : {int64_t{1}, kBytes / 4}) {
    CudaStandIn().Reset(1);
    EXPECT_TRUE(ComputeDigestAndStatistics(OnDevice(DType::kFloat32, 0, {count}, {1})).ok());
    EXPECT_EQ(CudaStandIn().Counts().bytes_to_host, 176);
  }
  CudaStandIn().Reset(1);
  EXPECT_TRUE(ComputeDigestAndStatistics(OnDevice(DType::kFloat32, 0, {100, 200}, {1, 100})).ok());
  EXPECT_EQ(CudaStandIn().Counts().bytes_to_host, 176);
}

TEST_F(StatisticsOnDeviceTest, OfATensorWithoutElementsNeedNoDevice) {
  const TensorView empty = OnDevice(DType::kFloat32, 0, {3, 0}, {1, 1});
  EXPECT_FALSE(HasStatisticsOnDevice(empty));
  const auto actual = ComputeDigestAndStatistics(empty);
  ASSERT_TRUE(actual.ok()) << actual.status();
  EXPECT_EQ(actual->digest, ComputeDigest(empty)->root);
  EXPECT_EQ(actual->statistics.norm, 0);
}

TEST_F(StatisticsOnDeviceTest, WithMoreDimensionsThanAKernelTakesAreReadOnTheHost) {
  const TensorView view =
      OnDevice(DType::kFloat32, 0, {2, 2, 2, 2, 2, 2, 2, 2, 2}, {1, 2, 4, 8, 16, 32, 64, 128, 256});
  EXPECT_FALSE(HasStatisticsOnDevice(view));
  EXPECT_EQ(ComputeDigestAndStatistics(view)->digest,
            ComputeDigestAndStatistics(TensorView(bytes_.data(), view.dtype(), view.shape(), view.strides()))
                ->digest);
}

TEST_F(StatisticsOnDeviceTest, TellErrorsAndLeakNothing) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "errors of a GPU cannot be had at will";
  for (const Dims& strides : {Dims{200, 1}, Dims{1, 100}}) {
    const auto expected =
        ComputeDigestAndStatistics(TensorView(bytes_.data(), DType::kFloat32, {100, 200}, strides));
    ExpectErrorsAreToldAndNothingLeaks([&]() -> absl::Status {
      const auto started = StartStatisticsOnDevice(OnDevice(DType::kFloat32, 0, {100, 200}, strides));
      if (!started.ok()) return started.status();
      const auto actual = (*started)->Get();
      if (actual.ok()) {
        EXPECT_EQ(actual->digest, expected->digest);
      }
      return actual.status();
    });
  }
}

}  // namespace
}  // namespace ott
