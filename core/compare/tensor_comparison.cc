#include "ott/core/compare/tensor_comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/compare/element_comparer.h"
#include "ott/core/compare/device_comparison.h"
#include "ott/core/tensor/device_copy.h"
#include "ott/core/tensor/element.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/core/tensor/strided_copy.h"
#include "ott/core/tensor/tensor.h"

namespace ott {
namespace {

// Elements are compared in blocks that stay in the first-level cache. Threads take chunks of them; the
// figures of chunks are merged in the order of the chunks, so that they do not depend on the threads.
constexpr int64_t kBlockElements = 2048;
constexpr int64_t kChunkElements = 512 * kBlockElements;
// The elements that one page fault may map.
constexpr int64_t kFaultElements = 64 * kBlockElements;

// Hands out a tensor's elements block by block, without gaps, as T.
template <typename T>
class Blocks {
 public:
  explicit Blocks(const Tensor& tensor)
      : view_(tensor.view),
        scattered_(tensor.scattered.get()),
        as_they_are_(IsOfT(view_.dtype())),
        direct_(as_they_are_ && view_.is_contiguous() && scattered_ == nullptr) {}

  const T* Get(int64_t begin, int64_t end) {
    if (direct_) return reinterpret_cast<const T*>(static_cast<const char*>(view_.data())) + begin;
    if (as_they_are_ && scattered_ != nullptr && begin < end) {
      if (const void* const found = scattered_->Find(begin, end)) return static_cast<const T*>(found);
    }
    if (as_they_are_) {
      Copy(begin, end, block_);
    } else {
      VisitDType(view_.dtype(), [&](auto element) { Convert<decltype(element)>(begin, end); });
    }
    return block_;
  }

 private:
  // Bools are taken as bytes, since one that is neither 0 nor 1 is no C++ bool.
  static bool IsOfT(DType dtype) {
    if constexpr (std::is_same_v<T, long double>) {
      return false;
    } else {
      return dtype == DTypeOf<T>() || (std::is_same_v<T, uint8_t> && dtype == DType::kBool);
    }
  }

  void Copy(int64_t begin, int64_t end, void* to) const {
    if (scattered_ != nullptr) {
      scattered_->Copy(begin, end, to);
    } else {
      CopyElements(view_, begin, end, to);
    }
  }

  template <typename From>
  void Convert(int64_t begin, int64_t end) {
    if constexpr (!kIsComplex<From> && !kIsComplex<T> && !std::is_integral_v<T>) {
      From elements[kBlockElements];
      Copy(begin, end, elements);
      for (int64_t i = 0; i < end - begin; ++i) {
        if constexpr (std::is_same_v<T, long double>) {
          block_[i] = static_cast<long double>(elements[i]);
        } else {
          block_[i] = FromDouble<T>(static_cast<double>(elements[i]));
        }
      }
    }
  }

  const TensorView& view_;
  const ScatteredElements* const scattered_;
  const bool as_they_are_;
  const bool direct_;
  alignas(64) T block_[kBlockElements];
};

template <typename T>
PartFigures CompareChunk(const Tensor& reference, const Tensor& current, int64_t chunk_begin,
                         int64_t chunk_end, const TensorCompareOptions& options) {
  const auto reference_blocks = std::make_unique<Blocks<T>>(reference);
  const auto current_blocks = std::make_unique<Blocks<T>>(current);
  Comparer<T> comparer(options);
  for (int64_t begin = chunk_begin; begin < chunk_end; begin += kBlockElements) {
    const int64_t end = std::min(begin + kBlockElements, chunk_end);
    comparer.AddBlock(reference_blocks->Get(begin, end), current_blocks->Get(begin, end), begin, end - begin);
  }
  // A fault maps pages around it, too: also those of a neighbouring chunk that another thread has dropped.
  const int64_t drop_begin = std::max<int64_t>(chunk_begin - kFaultElements, 0);
  const int64_t drop_end = std::min(chunk_end + kFaultElements, reference.view.num_elements());
  DropPages(reference, drop_begin, drop_end);
  DropPages(current, drop_begin, drop_end);
  return comparer;
}

// The element type is that of compare_chunk, a CompareChunk().
void CompareElements(const Tensor& reference, const Tensor& current, const TensorCompareOptions& options,
                     decltype(CompareChunk<float>)* compare_chunk, TensorComparison& result) {
  const int64_t num_chunks = (result.num_elements + kChunkElements - 1) / kChunkElements;
  std::vector<std::optional<PartFigures>> chunks(num_chunks);
  ParallelFor(num_chunks, NumThreads(options.num_threads), [&](int64_t i) {
    chunks[i].emplace(compare_chunk(reference, current, i * kChunkElements,
                                    std::min((i + 1) * kChunkElements, result.num_elements), options));
  });
  // An empty chunk says what figures there are.
  PartFigures all = compare_chunk(reference, current, 0, 0, options);
  for (std::optional<PartFigures>& chunk : chunks) all.Merge(*std::move(chunk));
  std::move(all).Finish(result);
}

// The elements [begin, begin + count) of a contiguous tensor in device memory.
template <typename T>
absl::Status CopyElementsToHost(const TensorView& tensor, int64_t begin, std::vector<T>& elements) {
  return CopyToHost(static_cast<const T*>(tensor.data()) + begin,
                    static_cast<int64_t>(elements.size() * sizeof(T)), tensor.device(), elements.data());
}

// Elements come to the host where the device says so.
template <typename T>
absl::Status CompareElementsByBlocks(const TensorView& reference, const TensorView& current,
                                     const std::vector<internal::DeviceBlock>& blocks,
                                     const TensorCompareOptions& options, TensorComparison& result) {
  Comparer<T> comparer(options);
  std::vector<T> reference_elements, current_elements;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * internal::kDeviceBlockElements;
    const int64_t count = std::min(internal::kDeviceBlockElements, result.num_elements - begin);
    if (blocks[i].needs_elements == 0) {
      comparer.AddEqual(blocks[i].norm, begin, count);
      continue;
    }
    reference_elements.resize(count);
    current_elements.resize(count);
    absl::Status status = CopyElementsToHost(reference, begin, reference_elements);
    status.Update(CopyElementsToHost(current, begin, current_elements));
    if (!status.ok()) return status;
    comparer.AddBlock(reference_elements.data(), current_elements.data(), begin, count);
  }
  std::move(comparer).Finish(result);
  return absl::OkStatus();
}

// False: their elements are to be compared on the host, as they are elsewhere, or as many differ.
absl::StatusOr<bool> CompareWhereTheyAre(const TensorView& reference, const TensorView& current,
                                         const TensorCompareOptions& options, TensorComparison& result) {
  if (reference.dtype() != current.dtype() || !internal::CanCompareOnDevice(reference, current)) return false;
  const absl::StatusOr<std::vector<internal::DeviceBlock>> blocks =
      internal::CompareOnDevice(reference, current);
  if (!blocks.ok()) return blocks.status();
  const auto num_needed =
      std::count_if(blocks->begin(), blocks->end(),
                    [](const internal::DeviceBlock& block) { return block.needs_elements != 0; });
  if (2 * static_cast<size_t>(num_needed) > blocks->size()) return false;
  absl::Status status;
  VisitDType(current.dtype(), [&](auto element) {
    using T = decltype(element);
    using Compared = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    status = CompareElementsByBlocks<Compared>(reference, current, *blocks, options, result);
  });
  if (!status.ok()) return status;
  return true;
}

// Returns true if rounding numbers of a dtype to another is how they are stored in less.
bool RoundsTo(DType wide, DType narrow) {
  return IsFloatingPoint(wide) && IsFloatingPoint(narrow) &&
         InfoOf(wide).mantissa_bits > InfoOf(narrow).mantissa_bits &&
         InfoOf(wide).exponent_bits >= InfoOf(narrow).exponent_bits;
}

// Both as numbers of the narrower dtype.
void CompareRounded(const Tensor& reference, const Tensor& current, const TensorCompareOptions& options,
                    TensorComparison& result) {
  const bool reference_is_wide = RoundsTo(reference.view.dtype(), current.view.dtype());
  const DType narrow = (reference_is_wide ? current : reference).view.dtype();
  VisitDType(narrow, [&](auto element) {
    using T = decltype(element);
    if constexpr (!kIsComplex<T> && !std::is_integral_v<T>) {
      CompareElements(reference, current, options, CompareChunk<T>, result);
    }
  });
  result.rounded = true;
  result.detail = absl::StrCat(
      "the ", reference_is_wide ? "reference" : "current", " rounded to ", std::string(Name(narrow)),
      result.num_mismatched == 0 ? " is the " : " is not the ", reference_is_wide ? "current" : "reference");
  result.status = result.num_mismatched == 0 ? CompareStatus::kWithinTolerance : CompareStatus::kMismatch;
}

CompareStatus StatusOf(const TensorComparison& result, bool same_dtype) {
  if (result.num_mismatched > 0) return CompareStatus::kMismatch;
  if (same_dtype && result.num_bits_differ == 0) return CompareStatus::kBitwiseEqual;
  const bool any_error = result.max_abs_error.has_value() && result.max_abs_error->error > 0;
  return any_error ? CompareStatus::kWithinTolerance : CompareStatus::kEqual;
}

}  // namespace

std::string_view Name(CompareStatus status) {
  constexpr std::array<std::string_view, 13> kNames = {
      "bitwise equal", "equal",        "within tolerance",  "mismatch",      "dtype differs",
      "shape differs", "kind differs", "length differs",    "order differs", "missing",
      "extra",         "empty",        "could not compare",
  };
  return kNames[static_cast<size_t>(status)];
}

bool IsTolerance(double number) { return number >= 0 && std::isfinite(number); }

bool Passes(CompareStatus status) { return status <= CompareStatus::kWithinTolerance; }

TensorComparison CompareTensors(const TensorView& reference, const TensorView& current,
                                const TensorCompareOptions& options) {
  return CompareTensors(Tensor{reference, nullptr}, Tensor{current, nullptr}, options);
}

TensorComparison CompareTensors(const Tensor& reference_tensor, const Tensor& current_tensor,
                                const TensorCompareOptions& options) {
  const TensorView& reference = reference_tensor.view;
  const TensorView& current = current_tensor.view;
  TensorComparison result;
  result.tolerance = options.tolerance;
  result.dtype = current.dtype();
  result.shape = current.shape();
  result.num_elements = current.num_elements();
  if (!reference.status().ok() || !current.status().ok()) {
    result.status = CompareStatus::kCouldNotCompare;
    result.detail = "a TensorView that was refused when it was made, as stderr says";
    return result;
  }
  if (reference.shape() != current.shape()) {
    result.status = CompareStatus::kShapeDiffers;
    result.detail = absl::StrCat("reference ", ShapeToString(reference.shape()), ", current ",
                                 ShapeToString(current.shape()));
    return result;
  }
  if (!IsTolerance(options.tolerance.atol) || !IsTolerance(options.tolerance.rtol)) {
    result.status = CompareStatus::kCouldNotCompare;
    result.detail = absl::StrCat("the tolerance atol ", options.tolerance.atol, ", rtol ",
                                 options.tolerance.rtol, " is no tolerance");
    return result;
  }
  const bool same_dtype = reference.dtype() == current.dtype();
  const bool numbers = !IsComplex(reference.dtype()) && !IsComplex(current.dtype());
  if (!same_dtype && options.accept_rounded &&
      (RoundsTo(reference.dtype(), current.dtype()) || RoundsTo(current.dtype(), reference.dtype()))) {
    CompareRounded(reference_tensor, current_tensor, options, result);
    return result;
  }
  if (!same_dtype && (options.compare_dtype || !numbers)) {
    result.status = CompareStatus::kDTypeDiffers;
    result.detail = absl::StrCat("reference ", std::string(Name(reference.dtype())), ", current ",
                                 std::string(Name(current.dtype())));
    return result;
  }
  const absl::StatusOr<bool> compared = CompareWhereTheyAre(reference, current, options, result);
  if (!compared.ok() || *compared) {
    if (!compared.ok()) result.detail = std::string(compared.status().message());
    result.status = compared.ok() ? StatusOf(result, same_dtype) : CompareStatus::kCouldNotCompare;
    return result;
  }
  const absl::StatusOr<Tensor> reference_host = ToHost(reference_tensor);
  const absl::StatusOr<Tensor> current_host = ToHost(current_tensor);
  if (!reference_host.ok() || !current_host.ok()) {
    result.status = CompareStatus::kCouldNotCompare;
    result.detail = std::string((reference_host.ok() ? current_host : reference_host).status().message());
    return result;
  }
  if (same_dtype) {
    VisitDType(current.dtype(), [&](auto element) {
      using T = decltype(element);
      // A byte that is neither 0 nor 1 is no C++ bool.
      using Compared = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
      CompareElements(*reference_host, *current_host, options, CompareChunk<Compared>, result);
    });
  } else {
    // Holds every integer and every double exactly.
    CompareElements(*reference_host, *current_host, options, CompareChunk<long double>, result);
  }
  result.status = StatusOf(result, same_dtype);
  return result;
}

}  // namespace ott
