// The figures of two runs of elements: what tensor_comparison.cc collects of each part of two tensors.
// Everything is in an unnamed namespace: there is one user, into which it is inlined.

#ifndef OTT_CORE_COMPARE_ELEMENT_COMPARER_H_
#define OTT_CORE_COMPARE_ELEMENT_COMPARER_H_

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/compare/comparison_kernel.h"
#include "ott/core/compare/tensor_comparison.h"
#include "ott/core/tensor/element.h"

namespace ott {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The type in which two real elements of T are subtracted.
template <typename T>
using Real = std::conditional_t<std::is_same_v<T, long double>, long double, double>;

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
  if constexpr (kIsComplex<T>) {
    return std::isnan(value.real()) || std::isnan(value.imag());
  } else if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<Real<T>>(value));
  }
}

template <typename T>
bool IsInf(T value) {
  if constexpr (kIsComplex<T>) {
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
  if constexpr (kIsComplex<T>) {
    return std::abs(std::complex<double>(a) - std::complex<double>(b));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<double>(a > b ? uint64_t(a) - uint64_t(b) : uint64_t(b) - uint64_t(a));
  } else {
    return static_cast<double>(std::fabs(static_cast<Real<T>>(a) - static_cast<Real<T>>(b)));
  }
}

template <typename T>
double Magnitude(T value) {
  if constexpr (kIsComplex<T>) {
    return std::abs(std::complex<double>(value));
  } else {
    return std::fabs(ToDouble(value));
  }
}

// The distance of two finite elements and the size of the reference, both divided by `unit`, which is 1
// unless one of them is no finite double.
struct Distance {
  double error = 0;
  double magnitude = 0;
  double unit = 1;
};

template <typename T>
Distance DistanceOf(T reference, T current) {
  Distance distance{AbsDifference(reference, current), Magnitude(reference)};
  if (std::isfinite(distance.error) && std::isfinite(distance.magnitude)) return distance;
  using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
  const double unit = 4;
  const Wide r = Wide(reference) / unit;
  const Wide c = Wide(current) / unit;
  return {AbsDifference(r, c), Magnitude(r), unit};
}

template <typename T>
bool EqualValues(T a, T b) {
  if constexpr (kIsComplex<T> || std::is_integral_v<T>) {
    return a == b;
  } else {
    return static_cast<Real<T>>(a) == static_cast<Real<T>>(b);
  }
}

// Neighbouring floating-point numbers are one apart, -0.0 and 0.0 nothing.
template <typename T>
int64_t OrderedBits(T value) {
  using Bits = internal::BitsOf<T>;
  Bits bits;
  std::memcpy(&bits, &value, sizeof(T));
  constexpr Bits kSign = Bits(Bits(1) << (sizeof(T) * 8 - 1));
  const int64_t magnitude = static_cast<int64_t>(static_cast<Bits>(bits & ~kSign));
  return bits & kSign ? -magnitude : magnitude;
}

template <typename T>
constexpr bool kHasUlps = !kIsComplex<T> && !std::is_integral_v<T> && !std::is_same_v<T, long double>;

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
  } else if constexpr (kIsComplex<T>) {
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

// Returns the smallest atol with which an error passes, given rtol * |reference|.
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

// The figures of one part of two tensors.
class PartFigures {
 public:
  PartFigures(const TensorCompareOptions& options, bool has_ulps) : options_(options) {
    if (has_ulps) result_.max_ulp_distance = 0;
  }

  // Elements that are finite and the same on both sides. norm: the sum of their squares.
  void AddEqual(double norm, int64_t first_position, int64_t count) {
    if (count > 0) NoteError(Distance(), first_position);
    dot_ += norm;
    norm_reference_ += norm;
    norm_current_ += norm;
    num_finite_ += count;
  }

  // Adds what was collected of a part behind this one.
  void Merge(PartFigures&& later) {
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

 protected:
  // Compares finite elements.
  bool Matches(const Distance& distance, bool same_bits) const {
    const Tolerance& tolerance = options_.tolerance;
    if (tolerance.bitwise) return same_bits;
    return distance.error <= tolerance.atol / distance.unit + tolerance.rtol * distance.magnitude;
  }

  void NotePassing(const Distance& distance) {
    const auto& [error, magnitude, unit] = distance;
    const double atol = options_.tolerance.atol / unit;
    const double relative_part = options_.tolerance.rtol * magnitude;
    if (error > result_.passing_atol / unit + relative_part) {
      result_.passing_atol = std::max(result_.passing_atol, unit * SmallestAtol(error, relative_part));
    }
    if (error > atol + result_.passing_rtol * magnitude) {
      result_.passing_rtol = std::max(result_.passing_rtol, SmallestRtol(error, atol, magnitude));
    }
  }

  void NoteError(const Distance& distance, int64_t position) {
    const double error = distance.unit * distance.error;
    if (error > max_abs_error_) {
      max_abs_error_ = error;
      max_abs_position_ = position;
    }
    const double relative = error == 0 ? 0 : distance.error / distance.magnitude;
    if (relative > max_rel_error_) {
      max_rel_error_ = relative;
      max_rel_position_ = position;
    }
  }

  bool IsAmongWorst(double error) const {
    const size_t limit = static_cast<size_t>(std::max(options_.num_worst, 0));
    return result_.worst.size() < limit || (limit > 0 && error > result_.worst.back().abs_error);
  }

  // Inserts it behind those with the same error, which come first.
  void InsertWorst(ElementDifference difference) {
    if (!IsAmongWorst(difference.abs_error)) return;
    std::vector<ElementDifference>& worst = result_.worst;
    const auto place = std::upper_bound(worst.begin(), worst.end(), difference.abs_error,
                                        [](double e, const ElementDifference& d) { return e > d.abs_error; });
    worst.insert(place, std::move(difference));
    if (worst.size() > static_cast<size_t>(options_.num_worst)) worst.pop_back();
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

 private:
  ErrorAt At(double error, int64_t position) const {
    return {error, position, IndexAt(result_.shape, position)};
  }
};

template <typename T>
constexpr bool kHasKernels = !kIsComplex<T> && !std::is_same_v<T, long double>;

// Collects them in one pass over elements of type T.
template <typename T>
class Comparer : public PartFigures {
 public:
  explicit Comparer(const TensorCompareOptions& options) : PartFigures(options, kHasUlps<T>) {}

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

 private:
  // Returns false, and does nothing, if bits differ or an element is not finite.
  bool AddEqualBlock(const T* reference, const T* current, int64_t first_position, int64_t count) {
    const internal::EqualBlockFigures figures = internal::CompareEqualBlock(reference, current, count);
    if (!figures.equal || !std::isfinite(figures.norm)) return false;
    AddEqual(figures.norm, first_position, count);
    return true;
  }

  // Returns false, and does nothing, if an element is not finite.
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

    // Differences whose places are asked for are rare, so this goes element by element.
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
      const Distance distance = DistanceOf(reference[i], current[i]);
      NoteError(distance, position);
      NotePassing(distance);
      if (!Matches(distance, same_bits)) NoteWorst(reference[i], current[i], distance.error, position);
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
      const bool nan_match = nan_reference && nan_current && options_.tolerance.nan_equal;
      const bool match =
          nan_match || (options_.tolerance.bitwise ? same_bits : EqualValues(reference, current));
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
    const Distance distance = DistanceOf(reference, current);
    const double error = distance.unit * distance.error;
    NoteError(distance, position);
    ++num_finite_;
    sum_abs_ += error;
    sum_squares_ += error * error;
    if constexpr (kIsComplex<T>) {
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
    NotePassing(distance);
    if (!Matches(distance, same_bits)) {
      ++result_.num_mismatched;
      NoteWorst(reference, current, error, position);
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

  void NoteWorst(T reference, T current, double error, int64_t position) {
    if (IsAmongWorst(error)) InsertWorst(Describe(reference, current, error, position));
  }

  static ElementDifference Describe(T reference, T current, double error, int64_t position) {
    ElementDifference difference;
    difference.position = position;
    if constexpr (kIsComplex<T>) {
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
    } else if constexpr (std::is_same_v<T, long double>) {
      difference.difference = static_cast<double>(current - reference);
    } else {
      difference.difference = difference.current - difference.reference;
    }
    difference.reference_text = ElementText(reference);
    difference.current_text = ElementText(current);
    return difference;
  }
};

}  // namespace
}  // namespace ott

#endif  // OTT_CORE_COMPARE_ELEMENT_COMPARER_H_
