#include "ott/core/op_cost/device_peaks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(DevicePeaks, DevicesAreFoundByTheNameTheDriverTells) {
  EXPECT_EQ(PeaksByName("NVIDIA H100 80GB HBM3")->name, "H100");
  EXPECT_EQ(PeaksByName("NVIDIA H100 PCIe")->name, "H100 PCIe");
  EXPECT_EQ(PeaksByName("NVIDIA A100-SXM4-40GB")->name, "A100-SXM4-40GB");
  EXPECT_EQ(PeaksByName("NVIDIA A100-SXM4-80GB")->name, "A100");
  EXPECT_EQ(PeaksByName("Tesla T4")->name, "T4");
  EXPECT_EQ(PeaksByName("h200")->memory, 4.8e12);
  EXPECT_EQ(PeaksByName("AMD Instinct MI300X")->fp16_tensor, 1307.4e12);
  EXPECT_FALSE(PeaksOf("AMD Radeon VII", 9, 0, 60, 1.8e9, 1e12).has_value());
  EXPECT_FALSE(PeaksByName("Quadro T400").has_value());
  EXPECT_FALSE(PeaksByName("").has_value());
  EXPECT_EQ(PeaksByName("NVIDIA B200")->fp16_tensor, 2250e12);
  EXPECT_EQ(PeaksByName("NVIDIA GB200")->fp16_tensor, 2500e12);
  EXPECT_EQ(PeaksByName("Tesla V100-PCIE-16GB")->fp16_tensor, 112e12);
  EXPECT_EQ(PeaksByName("Tesla V100-SXM2-16GB")->fp16_tensor, 125e12);
  EXPECT_EQ(PeaksByName("NVIDIA H200 NVL")->fp16_tensor, 835.5e12);
  EXPECT_GT(KnownGpus().size(), 30u);
  for (const std::string& name : KnownGpus()) EXPECT_EQ(PeaksByName(name)->name, name);
}

// Smaller types are faster by powers of two.
TEST(DevicePeaks, RatesOfADeviceStandInTheRatiosOfItsHardware) {
  for (const std::string& name : KnownGpus()) {
    const DevicePeaks peaks = PeaksByName(name).value();
    EXPECT_GE(peaks.memory, 300e9) << name;
    EXPECT_LE(peaks.memory, 8000e9) << name;
    EXPECT_GE(peaks.fp32, 8e12) << name;
    EXPECT_LE(peaks.fp32, 170e12) << name;
    EXPECT_GE(std::min({peaks.fp64, peaks.fp64_tensor, peaks.tf32_tensor, peaks.int8_tensor}), 0) << name;
    // NVIDIA cut the peaks of H20, and of B300's doubles and integers, so their ratios are no powers of two.
    const bool is_cut = name == "H20" || name == "B300" || name == "GB300";
    std::vector<double> ratios = {peaks.fp64 / peaks.fp32, peaks.fp64_tensor / peaks.fp32};
    if (is_cut) ratios.clear();
    if (peaks.tf32_tensor > 0) {
      ratios.insert(ratios.end(),
                    {peaks.fp16_tensor / peaks.tf32_tensor, peaks.fp8_tensor / peaks.tf32_tensor});
      if (!is_cut) ratios.push_back(peaks.int8_tensor / peaks.tf32_tensor);
      EXPECT_GE(peaks.tf32_tensor, 0.99 * peaks.fp32) << name;
    }
    for (const double ratio : ratios) {
      EXPECT_GE(ratio, 0) << name;
      if (ratio == 0) continue;
      EXPECT_NEAR(std::exp2(std::round(std::log2(ratio))) / ratio, 1, 0.014) << name << " " << ratio;
    }
  }
}

TEST(DevicePeaks, ArchitecturesGiveWhatDataSheetsSay) {
  // A100: 108 multiprocessors at 1.41 GHz; H100 SXM: 132 at 1.83 GHz.
  for (const auto& [name, major, sm_count, clock, error] :
       {std::tuple("A100", 8, 108, 1.41e9, 0.005), {"H100", 9, 132, 1.83e9, 0.08}}) {
    const DevicePeaks peaks = PeaksOf("", major, 0, sm_count, clock, 2e12).value();
    const DevicePeaks sheet = PeaksByName(name).value();
    for (double DevicePeaks::*const rate :
         {&DevicePeaks::fp64, &DevicePeaks::fp32, &DevicePeaks::fp64_tensor, &DevicePeaks::tf32_tensor,
          &DevicePeaks::fp16_tensor, &DevicePeaks::fp8_tensor, &DevicePeaks::int8_tensor}) {
      EXPECT_NEAR(peaks.*rate, sheet.*rate, error * sheet.*rate) << name;
    }
    EXPECT_NEAR(peaks.fp16_tensor, sheet.fp16_tensor, 0.005 * sheet.fp16_tensor);
    EXPECT_EQ(peaks.memory, 2e12);
    EXPECT_EQ(peaks.name, absl::StrCat("compute capability ", major, ".0"));
  }
  EXPECT_FALSE(PeaksOf("", 1, 0, 10, 1e9, 0).has_value());
  // B300 is as B200, whose float32 is that of this clock; of GeForce half is held back, of RTX A6000 nothing.
  const struct {
    const char* name;
    int major, minor, sm_count;
    double clock, fp16, fp32;
  } devices[] = {{"V100", 7, 0, 80, 1.53e9, 125e12, 15.7e12},
                 {"T4", 7, 5, 40, 1.59e9, 65e12, 8.1e12},
                 {"NVIDIA GeForce RTX 4090", 8, 9, 128, 2.52e9, 165.2e12, 82.6e12},
                 {"NVIDIA RTX A6000", 8, 6, 84, 1.8e9, 154.8e12, 38.7e12},
                 {"B200", 10, 0, 148, 1.86e9, 2250e12, 70.5e12},
                 {"B300", 10, 3, 148, 1.86e9, 2250e12, 70.5e12},
                 {"NVIDIA GeForce RTX 5090", 12, 0, 170, 2.41e9, 209.5e12, 104.8e12}};
  for (const auto& device : devices) {
    const DevicePeaks peaks =
        *PeaksOf(device.name, device.major, device.minor, device.sm_count, device.clock, 0);
    EXPECT_NEAR(peaks.fp16_tensor / device.fp16, 1, 0.006) << device.name;
    EXPECT_NEAR(peaks.fp32 / device.fp32, 1, 0.006) << device.name;
  }
  EXPECT_NEAR(PeaksOf("NVIDIA GeForce RTX 4090", 8, 9, 128, 2.52e9, 0)->int8_tensor, 660.6e12, 1e12);
}

TEST(DevicePeaks, AMDsPeaksAreOperationsAClockAndUnit) {
  struct {
    const char* name;
    double units, clock, fp16;
  } devices[] = {{"MI300A", 228, 2.1e9, 2048},
                 {"MI300X", 304, 2.1e9, 2048},
                 {"MI325X", 304, 2.1e9, 2048},
                 {"MI350X", 256, 2.2e9, 4096},
                 {"MI355X", 256, 2.4e9, 4096}};
  for (const auto& device : devices) {
    const DevicePeaks peaks = *PeaksByName(device.name);
    EXPECT_NEAR(peaks.fp16_tensor / (device.units * device.clock * device.fp16), 1, 1e-3) << device.name;
    EXPECT_NEAR(peaks.fp8_tensor / peaks.fp16_tensor, 2, 1e-3) << device.name;
    EXPECT_NEAR(peaks.fp32 / (device.units * device.clock * 256), 1, 1e-3) << device.name;
  }
}

TEST(DevicePeaks, APartOfADeviceAndADeviceWithoutAClockAreNotKnown) {
  EXPECT_FALSE(PeaksByName("NVIDIA A100-SXM4-40GB MIG 1g.5gb").has_value());
  EXPECT_FALSE(PeaksOf("NVIDIA RTX A6000", 8, 6, 84, 0, 0).has_value());
}

TEST(DevicePeaks, EachTypeHasItsRateIfTheDeviceHasIt) {
  for (const char* const name : {"H100", "V100"}) {
    const DevicePeaks peaks = *PeaksByName(name);
    for (int i = 0; i < kNumDTypes; ++i) {
      const auto dtype = static_cast<DType>(i);
      const bool is_double = dtype == DType::kFloat64 || dtype == DType::kComplex128;
      const bool is_single = dtype == DType::kFloat32 || dtype == DType::kComplex64;
      const bool is_float = IsFloatingPoint(dtype) || IsComplex(dtype);
      const double rates[] = {is_double  ? peaks.fp64
                              : is_float ? peaks.fp32
                                         : 0,
                              is_double                                         ? peaks.fp64_tensor
                              : is_single                                       ? peaks.tf32_tensor
                              : is_float && SizeOf(dtype) == 2                  ? peaks.fp16_tensor
                              : is_float                                        ? peaks.fp8_tensor
                              : dtype == DType::kInt8 || dtype == DType::kUInt8 ? peaks.int8_tensor
                                                                                : 0};
      for (const bool tensor_cores : {false, true}) {
        const double rate = rates[tensor_cores];
        EXPECT_EQ(peaks.Flops(dtype, tensor_cores), rate > 0 ? std::optional(rate) : std::nullopt)
            << name << i;
      }
    }
  }
}

}  // namespace
}  // namespace ott
