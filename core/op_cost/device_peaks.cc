#include "ott/core/op_cost/device_peaks.h"

#include <algorithm>
#include <cctype>

namespace ott {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

struct Gpu {
  std::string_view name;
  // TFLOP/s (TOP/s for int8), GB/s; 0: there is none, or it could not be confirmed.
  double fp64, fp32, fp64_tensor, tf32, fp16, fp8, int8, memory;
};

// The product with most words in a device's name is the device. Without sparsity: half of what data sheets of
// NVIDIA since Ampere put first. Sources of each group are the vendor's, read in these collections of them:
// [1] ml-engineering by S. Bekman, compute/accelerator, "TFLOPS comparison table" and "Accelerator memory".
// [2] G. K. Lockwood's pages on H100, B200 and B300 (Hopper white paper, Blackwell technical brief).
// [3] GPU reference of Waterline, September 2026 (data sheets, product briefs, clocks).
constexpr Gpu kGpus[] = {
    // V100 data sheet (SXM2, PCIe), T4 data sheet: [3].
    {"V100", 7.8, 15.7, 0, 0, 125, 0, 0, 900},
    {"V100-PCIE", 7, 14, 0, 0, 112, 0, 0, 900},
    {"T4", 0.254, 8.1, 0, 0, 65, 0, 130, 320},
    // A100 data sheet and white paper: [1], [3]. A800 differs in its links.
    {"A100-PCIE-40GB", 9.7, 19.5, 19.5, 156, 312, 0, 624, 1555},
    {"A100-SXM4-40GB", 9.7, 19.5, 19.5, 156, 312, 0, 624, 1555},
    {"A100 80GB PCIe", 9.7, 19.5, 19.5, 156, 312, 0, 624, 1935},
    {"A100", 9.7, 19.5, 19.5, 156, 312, 0, 624, 2039},
    {"A800", 9.7, 19.5, 19.5, 156, 312, 0, 624, 2039},
    // Data sheets of A10, A30 and A40: [3]; A30 is 56 of A100's multiprocessors at 1.44 GHz. Of A10G, which
    // has 80 multiprocessors, only products are told.
    {"A10G", 0, 35, 0, 35, 70, 0, 140, 600},
    {"A10", 0, 31.2, 0, 62.5, 125, 0, 250, 600},
    {"A30", 5.2, 10.3, 10.3, 82, 165, 0, 330, 933},
    {"A40", 0.58, 37.4, 0, 74.8, 149.7, 0, 299.3, 696},
    // Data sheets of L4, L40 and L40S: [1], [3].
    {"L40S", 1.43, 91.6, 0, 183, 362, 733, 733, 864},
    {"L40", 1.41, 90.5, 0, 90.5, 181, 362, 362, 864},
    {"L4", 0.47, 30.3, 0, 60, 121, 242, 242, 300},
    // H100 white paper and data sheet, H200 and GH200 data sheets: [1], [2], [3]. H20 as reported when it
    // came out; of H800 float64 is not confirmed.
    {"H100 PCIe", 25.6, 51.2, 51.2, 378, 756, 1513, 1513, 2000},
    {"H100 NVL", 30, 60, 60, 417.5, 835.5, 1670.5, 1670.5, 3900},
    {"H100", 33.5, 66.9, 66.9, 494.7, 989.4, 1978.9, 1978.9, 3350},
    {"H200 NVL", 30, 60, 60, 417.5, 835.5, 1670.5, 1670.5, 4800},
    {"H200", 33.5, 66.9, 66.9, 494.7, 989.4, 1978.9, 1978.9, 4800},
    {"GH200", 33.5, 66.9, 66.9, 494.7, 989.4, 1978.9, 1978.9, 4000},
    {"H20", 1, 44, 1, 74, 148, 296, 296, 4000},
    {"H800", 0, 66.9, 0, 494.7, 989.4, 1978.9, 1978.9, 3350},
    // HGX B200 and B300: an eighth of the board's figures; GB200 and GB300: a 72nd of the rack's: [1], [2],
    // [3].
    {"GB200", 40, 80, 40, 1250, 2500, 5000, 5000, 8000},
    {"B200", 37, 75, 37, 1125, 2250, 4500, 4500, 8000},
    {"GB300", 0, 83.3, 0, 1250, 2500, 5000, 167, 8000},
    {"B300", 1.25, 75, 1.25, 1125, 2250, 4500, 188, 8000},
    // AMD: matrix cores; float32 without rounding to TF32. Of MI250 and MI250X a device is one of two dies.
    // CDNA data sheets, ROCm's pages on the architectures; of MI300A to MI355X they are operations a clock
    // and
    // compute unit (256 of float32, 2048 of float16 in CDNA 3 and 4096 in CDNA 4) times 228, 304 or 256 units
    // at 2.1, 2.2 or 2.4 GHz: [1], [3]. MI100 multiplies bfloat16 at half of float16's rate, so neither is
    // told.
    {"MI100", 11.5, 23.1, 11.5, 46.1, 0, 0, 184.6, 1228.8},
    {"MI210", 22.6, 22.6, 45.3, 45.3, 181, 0, 181, 1638.4},
    {"MI250", 22.65, 22.65, 45.25, 45.25, 181.05, 0, 181.05, 1638.4},
    {"MI250X", 23.95, 23.95, 47.85, 47.85, 191.5, 0, 191.5, 1638.4},
    {"MI300A", 61.3, 122.6, 122.6, 122.6, 980.6, 1961.2, 1961.2, 5300},
    {"MI300X", 81.7, 163.4, 163.4, 163.4, 1307.4, 2614.9, 2614.9, 5300},
    {"MI325X", 81.7, 163.4, 163.4, 163.4, 1307.4, 2614.9, 2614.9, 6000},
    {"MI350X", 72.1, 144.2, 72.1, 144.2, 2306.9, 4613.7, 4613.7, 8000},
    {"MI355X", 78.6, 157.3, 78.6, 157.3, 2516.6, 5033.2, 5033.2, 8000},
};

// Fused multiply-adds a clock and multiprocessor: those with which multiprocessors times clock gives the
// figures above, and those of GeForce RTX 4090 and 5090, RTX A6000 and RTX PRO 6000 [3].
struct Architecture {
  int major, minor;
  double fp64, fp32, fp64_tensor, tf32, fp16, fp8, int8;
};

constexpr Architecture kArchitectures[] = {
    {7, 0, 32, 64, 0, 0, 512, 0, 0},
    {7, 5, 2, 64, 0, 0, 512, 0, 1024},
    {8, 0, 32, 64, 64, 512, 1024, 0, 2048},
    {8, 6, 2, 128, 0, 256, 512, 0, 1024},
    {8, 9, 2, 128, 0, 256, 512, 1024, 1024},
    {9, 0, 64, 128, 128, 1024, 2048, 4096, 4096},
    {10, 0, 64, 128, 64, 2048, 4096, 8192, 8192},
    {10, 3, 2, 128, 0, 2048, 4096, 8192, 0},
    {12, 0, 2, 128, 0, 256, 512, 1024, 1024},
};

// In lower case, at anything but letters and digits.
std::vector<std::string> Words(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      words.back().push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    } else {
      words.emplace_back();
    }
  }
  return words;
}

}  // namespace

std::optional<double> DevicePeaks::Flops(DType dtype, bool tensor_cores) const {
  double peak = 0;
  switch (dtype) {
    case DType::kFloat64:
    case DType::kComplex128:
      peak = tensor_cores ? fp64_tensor : fp64;
      break;
    case DType::kFloat32:
    case DType::kComplex64:
      peak = tensor_cores ? tf32_tensor : fp32;
      break;
    case DType::kFloat16:
    case DType::kBFloat16:
      // Without Tensor Cores arithmetic of kernels for training runs in float32.
      peak = tensor_cores ? fp16_tensor : fp32;
      break;
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      peak = tensor_cores ? fp8_tensor : fp32;
      break;
    case DType::kInt8:
    case DType::kUInt8:
      peak = tensor_cores ? int8_tensor : 0;
      break;
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
    case DType::kBool:
      break;
  }
  return peak > 0 ? std::optional<double>(peak) : std::nullopt;
}

std::optional<DevicePeaks> PeaksByName(std::string_view name) {
  const std::vector<std::string> words = Words(name);
  // A part of a device has a part of its peaks.
  if (std::find(words.begin(), words.end(), "mig") != words.end()) return std::nullopt;
  const Gpu* best = nullptr;
  size_t best_size = 0;
  for (const Gpu& gpu : kGpus) {
    const std::vector<std::string> known = Words(gpu.name);
    const bool has_all = std::all_of(known.begin(), known.end(), [&](const std::string& word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    });
    if (has_all && known.size() > best_size) {
      best = &gpu;
      best_size = known.size();
    }
  }
  if (best == nullptr) return std::nullopt;
  DevicePeaks peaks;
  peaks.name = best->name;
  peaks.fp64 = best->fp64 * kTera;
  peaks.fp32 = best->fp32 * kTera;
  peaks.fp64_tensor = best->fp64_tensor * kTera;
  peaks.tf32_tensor = best->tf32 * kTera;
  peaks.fp16_tensor = best->fp16 * kTera;
  peaks.fp8_tensor = best->fp8 * kTera;
  peaks.int8_tensor = best->int8 * kTera;
  peaks.memory = best->memory * kGiga;
  return peaks;
}

std::vector<std::string> KnownGpus() {
  std::vector<std::string> names;
  for (const Gpu& gpu : kGpus) names.emplace_back(gpu.name);
  return names;
}

std::optional<DevicePeaks> PeaksOf(std::string_view name, int compute_major, int compute_minor, int sm_count,
                                   double clock_hz, double memory) {
  // AMD's numbers are those of other architectures; traces tell no clock.
  if (name.find("AMD") != std::string_view::npos || !(sm_count * clock_hz > 0)) return std::nullopt;
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.major != compute_major || architecture.minor != compute_minor) continue;
    const double scale = 2.0 * sm_count * clock_hz;  // a fused multiply-add is two operations
    DevicePeaks peaks;
    peaks.name = "compute capability " + std::to_string(compute_major) + "." + std::to_string(compute_minor);
    peaks.fp64 = architecture.fp64 * scale;
    peaks.fp32 = architecture.fp32 * scale;
    peaks.fp64_tensor = architecture.fp64_tensor * scale;
    const double float_scale = name.find("GeForce") == std::string_view::npos ? scale : scale / 2;
    peaks.tf32_tensor = architecture.tf32 * float_scale;
    peaks.fp16_tensor = architecture.fp16 * float_scale;
    peaks.fp8_tensor = architecture.fp8 * float_scale;
    peaks.int8_tensor = architecture.int8 * scale;
    peaks.memory = memory;
    return peaks;
  }
  return std::nullopt;
}

}  // namespace ott
