#include "ott/core/op_cost/device_peaks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

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
  // 108 multiprocessors at 1.41 GHz.
  const DevicePeaks a100 = PeaksOf("", 8, 0, 108, 1.41e9, 0).value();
  const DevicePeaks sheet = PeaksByName("A100").value();
  for (double DevicePeaks::*const rate :
       {&DevicePeaks::fp64, &DevicePeaks::fp32, &DevicePeaks::fp64_tensor, &DevicePeaks::tf32_tensor,
        &DevicePeaks::fp16_tensor, &DevicePeaks::fp8_tensor, &DevicePeaks::int8_tensor}) {
    EXPECT_NEAR(a100.*rate, sheet.*rate, 0.005 * sheet.*rate);
  }
  // V100: 80 at 1.53 GHz; T4: 40 at 1.59 GHz.
  EXPECT_NEAR(PeaksOf("", 7, 0, 80, 1.53e9, 0)->fp16_tensor, 125e12, 1e12);
  EXPECT_NEAR(PeaksOf("", 7, 5, 40, 1.59e9, 0)->fp16_tensor, 65e12, 1e12);
  // H100 SXM: 132 at 1.83 GHz.
  EXPECT_NEAR(PeaksOf("", 9, 0, 132, 1.83e9, 0)->fp16_tensor, 989e12, 2e12);
  // GeForce RTX 4090: 128 at 2.52 GHz; RTX A6000, of which nothing is held back: 84 at 1.8 GHz.
  EXPECT_NEAR(PeaksOf("NVIDIA GeForce RTX 4090", 8, 9, 128, 2.52e9, 0)->fp16_tensor, 165.2e12, 1e12);
  EXPECT_NEAR(PeaksOf("NVIDIA GeForce RTX 4090", 8, 9, 128, 2.52e9, 0)->fp32, 82.6e12, 1e12);
  EXPECT_NEAR(PeaksOf("NVIDIA GeForce RTX 4090", 8, 9, 128, 2.52e9, 0)->int8_tensor, 660.6e12, 1e12);
  EXPECT_NEAR(PeaksOf("NVIDIA RTX A6000", 8, 6, 84, 1.8e9, 0)->fp16_tensor, 154.8e12, 1e12);
  EXPECT_FALSE(PeaksOf("", 1, 0, 10, 1e9, 0).has_value());
  // B200: 148 at 1.86 GHz, B300 alike; GeForce RTX 5090: 170 at 2.41 GHz.
  EXPECT_NEAR(PeaksOf("", 10, 0, 148, 1.86e9, 0)->fp16_tensor, 2250e12, 10e12);
  EXPECT_NEAR(PeaksOf("", 10, 3, 148, 1.86e9, 0)->fp16_tensor, 2250e12, 10e12);
  EXPECT_NEAR(PeaksOf("NVIDIA GeForce RTX 5090", 12, 0, 170, 2.41e9, 0)->fp16_tensor, 209.5e12, 1e12);
  EXPECT_NEAR(PeaksOf("NVIDIA GeForce RTX 5090", 12, 0, 170, 2.41e9, 0)->fp32, 104.8e12, 0.3e12);
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

TEST(DevicePeaks, WhatADeviceLacksIsNotKnown) {
  const DevicePeaks v100 = *PeaksByName("V100");
  EXPECT_EQ(v100.Flops(DType::kFloat16, true), 125e12);
  EXPECT_EQ(v100.Flops(DType::kFloat16, false), 15.7e12);
  EXPECT_FALSE(v100.Flops(DType::kFloat32, true).has_value());
  EXPECT_FALSE(v100.Flops(DType::kFloat8E4M3, true).has_value());
  EXPECT_FALSE(v100.Flops(DType::kBool, false).has_value());
}

}  // namespace
}  // namespace ott
