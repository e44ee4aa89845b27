#include "ott/dist/element_difference.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/tensor/element.h"

namespace ott {
namespace {

template <typename T>
T Load(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

template <typename T>
std::string Shortest(T value) {
  char text[64];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

template <size_t num_bytes>
using Unsigned = std::conditional_t<
    num_bytes == 1, uint8_t,
    std::conditional_t<num_bytes == 2, uint16_t, std::conditional_t<num_bytes == 4, uint32_t, uint64_t>>>;

// Sign and magnitude to a number that grows with the value; both zeros are the same.
template <typename Bits>
uint64_t Position(Bits bits) {
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  constexpr uint64_t kZero = uint64_t{1} << 63;
  const uint64_t magnitude = static_cast<Bits>(bits & ~kSign);
  return (bits & kSign) != 0 ? kZero - magnitude : kZero + magnitude;
}

// Bits of the mantissa that are stored.
int NumMantissaBits(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 52;
    case DType::kFloat32:
      return 23;
    case DType::kFloat16:
      return 10;
    case DType::kBFloat16:
      return 7;
    case DType::kFloat8E4M3:
      return 3;
    case DType::kFloat8E5M2:
      return 2;
    default:
      return 0;
  }
}

}  // namespace

std::optional<int64_t> FirstDifferentElement(std::string_view a, std::string_view b, int64_t element_size) {
  OTT_CHECK(a.size() == b.size()) << a.size() << " and " << b.size() << " bytes";
  for (size_t offset = 0; offset < a.size(); offset += static_cast<size_t>(element_size)) {
    if (a.substr(offset, element_size) != b.substr(offset, element_size)) {
      return static_cast<int64_t>(offset) / element_size;
    }
  }
  return std::nullopt;
}

Dims MultiIndex(int64_t element, absl::Span<const int64_t> shape) {
  Dims index(shape.size());
  for (size_t dimension = shape.size(); dimension-- > 0;) {
    index[dimension] = element % shape[dimension];
    element /= shape[dimension];
  }
  return index;
}

std::string FormatElement(DType dtype, const void* element) {
  return VisitDType(dtype, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, bool>) {
      return absl::StrCat(static_cast<int>(Load<uint8_t>(element)));
    } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      const T value = Load<T>(element);
      return absl::StrCat("(", Shortest(value.real()), ", ", Shortest(value.imag()), ")");
    } else if constexpr (std::is_integral_v<T> || std::is_floating_point_v<T>) {
      return Shortest(Load<T>(element));
    } else {
      return Shortest(static_cast<float>(Load<T>(element)));
    }
  });
}

std::optional<uint64_t> UlpDistance(DType dtype, const void* a, const void* b) {
  return VisitDType(dtype, [&](auto type) -> std::optional<uint64_t> {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      return std::nullopt;
    } else if constexpr (std::is_integral_v<T>) {
      using Bits = Unsigned<sizeof(T)>;
      const Bits first = Load<Bits>(a);
      const Bits second = Load<Bits>(b);
      bool ascending = first < second;
      if constexpr (std::is_signed_v<T>) ascending = Load<T>(a) < Load<T>(b);
      return static_cast<Bits>(ascending ? second - first : first - second);
    } else {
      using Bits = Unsigned<sizeof(T)>;
      if (std::isnan(static_cast<double>(Load<T>(a))) || std::isnan(static_cast<double>(Load<T>(b)))) {
        return std::nullopt;
      }
      const uint64_t first = Position(Load<Bits>(a));
      const uint64_t second = Position(Load<Bits>(b));
      return first < second ? second - first : first - second;
    }
  });
}

std::vector<int> FlippedBits(DType dtype, const void* a, const void* b) {
  std::vector<int> bits;
  // Little-endian, as all machines with the devices this is for.
  for (int bit = 0; bit < SizeOf(dtype) * 8; ++bit) {
    const int flipped = static_cast<const uint8_t*>(a)[bit / 8] ^ static_cast<const uint8_t*>(b)[bit / 8];
    if ((flipped >> (bit % 8) & 1) != 0) bits.push_back(bit);
  }
  return bits;
}

std::string_view BitName(DType dtype, int bit) {
  if (!IsFloatingPoint(dtype)) return "";
  if (bit == SizeOf(dtype) * 8 - 1) return "sign";
  return bit < NumMantissaBits(dtype) ? "mantissa" : "exponent";
}

}  // namespace ott
