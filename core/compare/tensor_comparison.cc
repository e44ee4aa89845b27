#include "ott/core/compare/tensor_comparison.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
#include "ott/core/tensor/strided_copy.h"
#include "ott/core/tensor/tensor.h"

namespace ott {
namespace {

// Elements are compared in blocks that stay in the first-level cache. Threads take chunks of them; the
// figures of chunks are merged in the order of the chunks, so that they do not depend on the threads.
constexpr int64_t kBlockElements = 2048;
constexpr int64_t kChunkElements = 512 * kBlockElements;

// Hands out a tensor's elements block by block, without gaps, as T.
template <typename T>
class Blocks {
 public:
  explicit Blocks(const TensorView& view)
      : view_(view), direct_(view.is_contiguous() && view.dtype() == DTypeFor()) {}

  const T* Get(int64_t begin, int64_t end) {
    if (direct_) return reinterpret_cast<const T*>(static_cast<const char*>(view_.data())) + begin;
    if constexpr (std::is_same_v<T, long double>) {
      VisitDType(view_.dtype(), [&](auto element) { Convert<decltype(element)>(begin, end); });
    } else {
      CopyElements(view_, begin, end, block_);
    }
    return block_;
  }

 private:
  static constexpr DType DTypeFor() {
    if constexpr (std::is_same_v<T, long double>) {
      return DType{0xff};
    } else {
      return DTypeOf<T>();
    }
  }

  template <typename From>
  void Convert(int64_t begin, int64_t end) {
    if constexpr (!kIsComplex<From>) {
      From elements[kBlockElements];
      CopyElements(view_, begin, end, elements);
      for (int64_t i = 0; i < end - begin; ++i) block_[i] = static_cast<long double>(elements[i]);
    }
  }

  const TensorView& view_;
  const bool direct_;
  alignas(64) T block_[kBlockElements];
};

// Drops the pages of a mapped file that hold the elements [begin, end), which are done with. The first page
// may hold other elements too: whoever still needs them reads it again.
void DropPages(const Tensor& tensor, int64_t begin, int64_t end) {
  if (!tensor.file_backed || !tensor.view.is_contiguous()) return;
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t data = reinterpret_cast<uintptr_t>(tensor.view.data());
  const int64_t element_bytes = SizeOf(tensor.view.dtype());
  const uintptr_t first = (data + begin * element_bytes) / page * page;
  const uintptr_t last = (data + end * element_bytes) / page * page;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

template <typename T>
PartFigures CompareChunk(const Tensor& reference, const Tensor& current, int64_t chunk_begin,
                         int64_t chunk_end, const TensorCompareOptions& options) {
  const auto reference_blocks = std::make_unique<Blocks<T>>(reference.view);
  const auto current_blocks = std::make_unique<Blocks<T>>(current.view);
  Comparer<T> comparer(options);
  for (int64_t begin = chunk_begin; begin < chunk_end; begin += kBlockElements) {
    const int64_t end = std::min(begin + kBlockElements, chunk_end);
    comparer.AddBlock(reference_blocks->Get(begin, end), current_blocks->Get(begin, end), begin, end - begin);
  }
  DropPages(reference, chunk_begin, chunk_end);
  DropPages(current, chunk_begin, chunk_end);
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
  if (reference.shape() != current.shape()) {
    result.status = CompareStatus::kShapeDiffers;
    result.detail = absl::StrCat("reference ", ShapeToString(reference.shape()), ", current ",
                                 ShapeToString(current.shape()));
    return result;
  }
  const bool same_dtype = reference.dtype() == current.dtype();
  const bool numbers = !IsComplex(reference.dtype()) && !IsComplex(current.dtype());
  if (!same_dtype && (options.compare_dtype || !numbers)) {
    result.status = CompareStatus::kDTypeDiffers;
    result.detail = absl::StrCat("reference ", std::string(Name(reference.dtype())), ", current ",
                                 std::string(Name(current.dtype())));
    return result;
  }
  // Written so that NaN is refused too.
  if (!(options.tolerance.atol >= 0 && options.tolerance.rtol >= 0)) {
    result.status = CompareStatus::kCouldNotCompare;
    result.detail = absl::StrCat("the tolerance atol ", options.tolerance.atol, ", rtol ",
                                 options.tolerance.rtol, " is no tolerance");
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
