#include "ott/core/compare/tensor_comparison.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/compare/comparison_kernel.h"
#include "ott/core/compare/device_comparison.h"
#include "ott/core/tensor/device_copy.h"
#include "ott/core/tensor/element.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/core/tensor/strided_copy.h"
#include "ott/core/tensor/tensor.h"

namespace ott {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Elements are compared in blocks that stay in the first-level cache. Threads take chunks of them; the
// figures of chunks are merged in the order of the chunks, so that they do not depend on the threads.
constexpr int64_t kBlockElements = 2048;
constexpr int64_t kChunkElements = 512 * kBlockElements;

// The type in which two real elements of T are subtracted.
template <typename T>
using Real = std::conditional_t<std::is_same_v<T, long double>, long double, double>;

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<std::complex<T>> : std::true_type {};

// An unsigned integer as large as T.
template <typename T>
using BitsOf = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// Numbers of different dtypes, as long double, have no common bits: the same number with the same sign.
template <typename T>
bool SameBits(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, long double>) {
    return (a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b));
  } else {
    return std::memcmp(&a, &b, sizeof(T)) == 0;
  }
}

template <typename T>
double ToDouble(T value) {
  return static_cast<double>(value);
}

template <typename T>
bool IsNaN(T value) {
  if constexpr (IsComplex<T>::value) {
    return std::isnan(value.real()) || std::isnan(value.imag());
  } else if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<Real<T>>(value));
  }
}

template <typename T>
bool IsInf(T value) {
  if constexpr (IsComplex<T>::value) {
    return !IsNaN(value) && (std::isinf(value.real()) || std::isinf(value.imag()));
  } else if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isinf(static_cast<Real<T>>(value));
  }
}

// |a - b| of finite elements; 0 only where they are equal.
template <typename T>
double AbsDifference(T a, T b) {
  if constexpr (IsComplex<T>::value) {
    return std::abs(std::complex<double>(a) - std::complex<double>(b));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<double>(a > b ? uint64_t(a) - uint64_t(b) : uint64_t(b) - uint64_t(a));
  } else {
    return static_cast<double>(std::fabs(static_cast<Real<T>>(a) - static_cast<Real<T>>(b)));
  }
}

template <typename T>
double Magnitude(T value) {
  if constexpr (IsComplex<T>::value) {
    return std::abs(std::complex<double>(value));
  } else {
    return std::fabs(ToDouble(value));
  }
}

template <typename T>
bool EqualValues(T a, T b) {
  if constexpr (IsComplex<T>::value || std::is_integral_v<T>) {
    return a == b;
  } else {
    return static_cast<Real<T>>(a) == static_cast<Real<T>>(b);
  }
}

// Neighbouring floating-point numbers are one apart, -0.0 and 0.0 nothing.
template <typename T>
int64_t OrderedBits(T value) {
  using Bits = BitsOf<T>;
  Bits bits;
  std::memcpy(&bits, &value, sizeof(T));
  constexpr Bits kSign = Bits(Bits(1) << (sizeof(T) * 8 - 1));
  const int64_t magnitude = static_cast<int64_t>(static_cast<Bits>(bits & ~kSign));
  return bits & kSign ? -magnitude : magnitude;
}

template <typename T>
constexpr bool kHasUlps = !IsComplex<T>::value && !std::is_integral_v<T> && !std::is_same_v<T, long double>;

template <typename T>
uint64_t UlpDistance(T a, T b) {
  const int64_t x = OrderedBits(a);
  const int64_t y = OrderedBits(b);
  return x > y ? uint64_t(x) - uint64_t(y) : uint64_t(y) - uint64_t(x);
}

template <typename T>
std::string ElementText(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (IsComplex<T>::value) {
    const std::string imaginary = ElementText(value.imag());
    const bool sign = imaginary[0] == '-';
    return absl::StrCat(ElementText(value.real()), sign ? "" : "+", imaginary, "j");
  } else {
    // Small formats have no text of their own: as the float they stand for.
    using Printed = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
    char buffer[64];
    return std::string(buffer,
                       std::to_chars(buffer, buffer + sizeof(buffer), static_cast<Printed>(value)).ptr);
  }
}

template <typename T>
std::vector<int> FlippedBits(T a, T b) {
  unsigned char x[sizeof(T)];
  unsigned char y[sizeof(T)];
  std::memcpy(x, &a, sizeof(T));
  std::memcpy(y, &b, sizeof(T));
  std::vector<int> bits;
  for (size_t i = 0; i < sizeof(T) * 8; ++i) {
    if ((x[i / 8] ^ y[i / 8]) >> i % 8 & 1) bits.push_back(static_cast<int>(i));
  }
  return bits;
}

// The smallest atol with which an error passes, given rtol * |reference|.
double SmallestAtol(double error, double relative_part) {
  double atol = std::max(0.0, error - relative_part);
  while (!(error <= atol + relative_part)) atol = std::nextafter(atol, kInfinity);
  return atol;
}

double SmallestRtol(double error, double atol, double magnitude) {
  if (error <= atol) return 0;
  if (magnitude == 0) return kInfinity;
  double rtol = (error - atol) / magnitude;
  while (!(error <= atol + rtol * magnitude)) rtol = std::nextafter(rtol, kInfinity);
  return rtol;
}

template <typename T>
constexpr bool kHasKernels = !IsComplex<T>::value && !std::is_same_v<T, long double>;

// Collects the figures of one pass over a part of two tensors of element type T.
template <typename T>
class Comparer {
 public:
  explicit Comparer(const TensorCompareOptions& options) : options_(options) {
    if constexpr (kHasUlps<T>) result_.max_ulp_distance = 0;
  }

  void AddBlock(const T* reference, const T* current, int64_t first_position, int64_t count) {
    int64_t done = 0;
    if constexpr (kHasKernels<T>) {
      done = count - count % internal::kKernelLanes;
      if (!AddEqualBlock(reference, current, first_position, done) &&
          !AddFiniteBlock(reference, current, first_position, done)) {
        done = 0;
      }
    }
    for (int64_t i = done; i < count; ++i) AddElement(reference[i], current[i], first_position + i);
  }

  // Elements that are finite and the same on both sides. norm: the sum of their squares.
  void AddEqual(double norm, int64_t first_position, int64_t count) {
    if (count > 0) NoteError(0, 0, first_position);
    dot_ += norm;
    norm_reference_ += norm;
    norm_current_ += norm;
    num_finite_ += count;
  }

  // Adds what was collected of a part behind this one.
  void Merge(Comparer&& later) {
    if (later.max_abs_error_ > max_abs_error_) {
      max_abs_error_ = later.max_abs_error_;
      max_abs_position_ = later.max_abs_position_;
    }
    if (later.max_rel_error_ > max_rel_error_) {
      max_rel_error_ = later.max_rel_error_;
      max_rel_position_ = later.max_rel_position_;
    }
    num_finite_ += later.num_finite_;
    sum_abs_ += later.sum_abs_;
    sum_squares_ += later.sum_squares_;
    dot_ += later.dot_;
    norm_reference_ += later.norm_reference_;
    norm_current_ += later.norm_current_;
    result_.num_mismatched += later.result_.num_mismatched;
    result_.num_bits_differ += later.result_.num_bits_differ;
    result_.num_nan_reference += later.result_.num_nan_reference;
    result_.num_nan_current += later.result_.num_nan_current;
    result_.num_inf_reference += later.result_.num_inf_reference;
    result_.num_inf_current += later.result_.num_inf_current;
    result_.max_ulp_distance = std::max(result_.max_ulp_distance, later.result_.max_ulp_distance);
    result_.passing_atol = std::max(result_.passing_atol, later.result_.passing_atol);
    result_.passing_rtol = std::max(result_.passing_rtol, later.result_.passing_rtol);
    for (ElementDifference& worst : later.result_.worst) InsertWorst(std::move(worst));
    if (!result_.first_bit_difference.has_value()) {
      result_.first_bit_difference = std::move(later.result_.first_bit_difference);
    }
  }

  // Adds to a comparison that says what was compared.
  void Finish(TensorComparison& comparison) && {
    result_.tolerance = comparison.tolerance;
    result_.dtype = comparison.dtype;
    result_.shape = comparison.shape;
    result_.num_elements = comparison.num_elements;
    const double count = static_cast<double>(num_finite_);
    if (num_finite_ > 0) {
      result_.max_abs_error = At(max_abs_error_, max_abs_position_);
      result_.max_rel_error = At(max_rel_error_, max_rel_position_);
      result_.mean_abs_error = sum_abs_ / count;
      result_.root_mean_square_error = std::sqrt(sum_squares_ / count);
    }
    result_.cosine_similarity = dot_ / (std::sqrt(norm_reference_) * std::sqrt(norm_current_));
    for (ElementDifference& worst : result_.worst) worst.index = IndexAt(result_.shape, worst.position);
    if (result_.first_bit_difference.has_value()) {
      ElementDifference& first = result_.first_bit_difference->element;
      first.index = IndexAt(result_.shape, first.position);
    }
    comparison = std::move(result_);
  }

 private:
  ErrorAt At(double error, int64_t position) const {
    return {error, position, IndexAt(result_.shape, position)};
  }

  // False, and nothing done, where bits differ or an element is not finite.
  bool AddEqualBlock(const T* reference, const T* current, int64_t first_position, int64_t count) {
    const internal::EqualBlockFigures figures = internal::CompareEqualBlock(reference, current, count);
    if (!figures.equal || !std::isfinite(figures.norm)) return false;
    AddEqual(figures.norm, first_position, count);
    return true;
  }

  // False, and nothing done, where an element is not finite.
  bool AddFiniteBlock(const T* reference, const T* current, int64_t first_position, int64_t count) {
    const Tolerance& tolerance = options_.tolerance;
    const internal::BlockFigures figures =
        internal::CompareBlock(reference, current, count,
                               {tolerance.atol, tolerance.rtol, result_.passing_atol, result_.passing_rtol});
    if (!figures.all_finite) return false;
    num_finite_ += count;
    sum_abs_ += figures.sum_abs_errors;
    sum_squares_ += figures.sum_squared_errors;
    dot_ += figures.dot;
    norm_reference_ += figures.reference_norm;
    norm_current_ += figures.current_norm;
    if constexpr (kHasUlps<T>) {
      result_.max_ulp_distance = std::max(*result_.max_ulp_distance, figures.max_ulp_distance);
    }
    const int64_t num_mismatched = tolerance.bitwise ? figures.num_bits_differ : figures.num_out_of_tolerance;
    result_.num_mismatched += num_mismatched;
    result_.num_bits_differ += figures.num_bits_differ;

    // What needs places is rare, and found element by element.
    const bool first_bits = figures.num_bits_differ > 0 && !result_.first_bit_difference.has_value();
    const bool worse = num_mismatched > 0 && IsAmongWorst(figures.max_abs_error);
    const bool larger = figures.max_abs_error > max_abs_error_ || figures.max_rel_error > max_rel_error_;
    if (!first_bits && !worse && !larger && !figures.exceeds_passing) return true;
    for (int64_t i = 0; i < count; ++i) {
      const bool same_bits = SameBits(reference[i], current[i]);
      const int64_t position = first_position + i;
      if (!same_bits && !result_.first_bit_difference.has_value()) {
        NoteFirstBits(reference[i], current[i], position);
      }
      const double error = AbsDifference(reference[i], current[i]);
      const double magnitude = Magnitude(reference[i]);
      NoteError(error, magnitude, position);
      NotePassing(error, magnitude);
      if (!Matches(error, magnitude, same_bits)) NoteWorst(reference[i], current[i], error, position);
    }
    return true;
  }

  void AddElement(T reference, T current, int64_t position) {
    const bool same_bits = SameBits(reference, current);
    if (!same_bits && !std::is_same_v<T, long double>) {
      ++result_.num_bits_differ;
      if (!result_.first_bit_difference.has_value()) NoteFirstBits(reference, current, position);
    }
    const bool nan_reference = IsNaN(reference);
    const bool nan_current = IsNaN(current);
    const bool inf_reference = IsInf(reference);
    const bool inf_current = IsInf(current);
    result_.num_nan_reference += nan_reference;
    result_.num_nan_current += nan_current;
    result_.num_inf_reference += inf_reference;
    result_.num_inf_current += inf_current;

    if (nan_reference || nan_current || inf_reference || inf_current) {
      const bool match = options_.tolerance.bitwise ? same_bits
                         : nan_reference || nan_current
                             ? nan_reference && nan_current && options_.tolerance.nan_equal
                             : EqualValues(reference, current);
      if (!match) {
        result_.passing_atol = result_.passing_rtol = kInfinity;
        ++result_.num_mismatched;
        NoteWorst(reference, current, kInfinity, position);
      }
      return;
    }
    AddFinite(reference, current, same_bits, position);
  }

  void AddFinite(T reference, T current, bool same_bits, int64_t position) {
    const double error = AbsDifference(reference, current);
    const double magnitude = Magnitude(reference);
    NoteError(error, magnitude, position);
    ++num_finite_;
    sum_abs_ += error;
    sum_squares_ += error * error;
    if constexpr (IsComplex<T>::value) {
      const std::complex<double> r(reference);
      const std::complex<double> c(current);
      dot_ += r.real() * c.real() + r.imag() * c.imag();
      norm_reference_ += std::norm(r);
      norm_current_ += std::norm(c);
    } else {
      const double r = ToDouble(reference);
      const double c = ToDouble(current);
      dot_ += r * c;
      norm_reference_ += r * r;
      norm_current_ += c * c;
    }
    if constexpr (kHasUlps<T>) {
      result_.max_ulp_distance = std::max(*result_.max_ulp_distance, UlpDistance(reference, current));
    }
    NotePassing(error, magnitude);
    if (!Matches(error, magnitude, same_bits)) {
      ++result_.num_mismatched;
      NoteWorst(reference, current, error, position);
    }
  }

  // Finite elements.
  bool Matches(double error, double magnitude, bool same_bits) const {
    const Tolerance& tolerance = options_.tolerance;
    return tolerance.bitwise ? same_bits : error <= tolerance.atol + tolerance.rtol * magnitude;
  }

  void NotePassing(double error, double magnitude) {
    const Tolerance& tolerance = options_.tolerance;
    const double relative_part = tolerance.rtol * magnitude;
    if (error > result_.passing_atol + relative_part) {
      result_.passing_atol = std::max(result_.passing_atol, SmallestAtol(error, relative_part));
    }
    if (error > tolerance.atol + result_.passing_rtol * magnitude) {
      result_.passing_rtol = std::max(result_.passing_rtol, SmallestRtol(error, tolerance.atol, magnitude));
    }
  }

  void NoteError(double error, double magnitude, int64_t position) {
    if (error > max_abs_error_) {
      max_abs_error_ = error;
      max_abs_position_ = position;
    }
    const double relative = error == 0 ? 0 : error / magnitude;
    if (relative > max_rel_error_) {
      max_rel_error_ = relative;
      max_rel_position_ = position;
    }
  }

  void NoteFirstBits(T reference, T current, int64_t position) {
    const bool finite = !IsNaN(reference) && !IsNaN(current) && !IsInf(reference) && !IsInf(current);
    BitDifference difference;
    difference.element =
        Describe(reference, current, finite ? AbsDifference(reference, current) : kInfinity, position);
    difference.flipped_bits = FlippedBits(reference, current);
    if constexpr (kHasUlps<T>) {
      if (!IsNaN(reference) && !IsNaN(current)) difference.ulp_distance = UlpDistance(reference, current);
    }
    result_.first_bit_difference = std::move(difference);
  }

  bool IsAmongWorst(double error) const {
    const size_t limit = static_cast<size_t>(std::max(options_.num_worst, 0));
    return result_.worst.size() < limit || (limit > 0 && error > result_.worst.back().abs_error);
  }

  void NoteWorst(T reference, T current, double error, int64_t position) {
    if (IsAmongWorst(error)) InsertWorst(Describe(reference, current, error, position));
  }

  // Behind those with the same error, which come first.
  void InsertWorst(ElementDifference difference) {
    if (!IsAmongWorst(difference.abs_error)) return;
    std::vector<ElementDifference>& worst = result_.worst;
    const auto place = std::upper_bound(worst.begin(), worst.end(), difference.abs_error,
                                        [](double e, const ElementDifference& d) { return e > d.abs_error; });
    worst.insert(place, std::move(difference));
    if (worst.size() > static_cast<size_t>(options_.num_worst)) worst.pop_back();
  }

  static ElementDifference Describe(T reference, T current, double error, int64_t position) {
    ElementDifference difference;
    difference.position = position;
    if constexpr (IsComplex<T>::value) {
      const bool real = !SameBits(reference.real(), current.real());
      difference.reference = real ? reference.real() : reference.imag();
      difference.current = real ? current.real() : current.imag();
    } else {
      difference.reference = ToDouble(reference);
      difference.current = ToDouble(current);
    }
    difference.abs_error = error;
    if constexpr (std::is_integral_v<T>) {
      difference.difference = current < reference ? -error : error;
    } else {
      difference.difference = difference.current - difference.reference;
    }
    difference.reference_text = ElementText(reference);
    difference.current_text = ElementText(current);
    return difference;
  }

  const TensorCompareOptions& options_;
  TensorComparison result_;
  int64_t num_finite_ = 0;
  // Less than any error, so that the first one has a place.
  double max_abs_error_ = -1;
  double max_rel_error_ = -1;
  int64_t max_abs_position_ = 0;
  int64_t max_rel_position_ = 0;
  double sum_abs_ = 0;
  double sum_squares_ = 0;
  double dot_ = 0;
  double norm_reference_ = 0;
  double norm_current_ = 0;
};

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
    if constexpr (!IsComplex<From>::value) {
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
Comparer<T> CompareChunk(const Tensor& reference, const Tensor& current, int64_t chunk_begin,
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

template <typename T>
void CompareElements(const Tensor& reference, const Tensor& current, const TensorCompareOptions& options,
                     TensorComparison& result) {
  const int64_t num_chunks = (result.num_elements + kChunkElements - 1) / kChunkElements;
  std::vector<std::optional<Comparer<T>>> chunks(num_chunks);
  ParallelFor(num_chunks, NumThreads(options.num_threads), [&](int64_t i) {
    chunks[i].emplace(CompareChunk<T>(reference, current, i * kChunkElements,
                                      std::min((i + 1) * kChunkElements, result.num_elements), options));
  });
  Comparer<T> all(options);
  for (std::optional<Comparer<T>>& chunk : chunks) all.Merge(*std::move(chunk));
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

bool IsComplexDType(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

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
  const bool numbers = !IsComplexDType(reference.dtype()) && !IsComplexDType(current.dtype());
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
      CompareElements<Compared>(*reference_host, *current_host, options, result);
    });
  } else {
    // Holds every integer and every double exactly.
    CompareElements<long double>(*reference_host, *current_host, options, result);
  }
  result.status = StatusOf(result, same_dtype);
  return result;
}

}  // namespace ott
