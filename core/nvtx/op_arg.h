// An argument of an operation, as an op range takes it.

#ifndef OTT_CORE_NVTX_OP_ARG_H_
#define OTT_CORE_NVTX_OP_ARG_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include "absl/types/span.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// A tensor, a number, a bool, a string, a list of integers or nothing, with a name or without. Refers to what
// it is made from, which must outlive it. Made in the call of an op range, it costs nothing while op ranges
// are off.
//
//   {input, {"weight", weight}, {"bias", nullptr}, {"eps", 1e-5}, {"stride", {1, 1}}}
class OpArg {
 public:
  enum class Kind : uint8_t { kNone, kBool, kInt, kDouble, kString, kInts, kTensor };

  OpArg(std::nullptr_t) : kind_(Kind::kNone), int_(0) {}
  OpArg(const TensorView& tensor) : kind_(Kind::kTensor), tensor_(&tensor) {}
  // Null: none.
  OpArg(const TensorView* tensor) : kind_(tensor == nullptr ? Kind::kNone : Kind::kTensor), tensor_(tensor) {}
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  OpArg(T value)
      : kind_(std::is_same_v<T, bool>       ? Kind::kBool
              : std::is_floating_point_v<T> ? Kind::kDouble
                                            : Kind::kInt) {
    static_assert(std::is_floating_point_v<T> || std::is_signed_v<T> || sizeof(T) < 8,
                  "a uint64_t does not fit: cast it");
    if constexpr (std::is_floating_point_v<T>) {
      double_ = value;
    } else {
      int_ = static_cast<int64_t>(value);
    }
  }
  template <typename T,
            std::enable_if_t<std::is_convertible_v<const T&, std::string_view> && !std::is_null_pointer_v<T>,
                             int> = 0>
  OpArg(const T& text) : OpArg(Kind::kString, std::string_view(text).data(), std::string_view(text).size()) {}
  // Also from std::vector and std::array of int64_t, and from Dims.
  template <typename T, std::enable_if_t<std::is_convertible_v<const T&, absl::Span<const int64_t>>, int> = 0>
  OpArg(const T& list)
      : OpArg(Kind::kInts, absl::Span<const int64_t>(list).data(), absl::Span<const int64_t>(list).size()) {}
  OpArg(std::initializer_list<int64_t> list) : OpArg(Kind::kInts, list.begin(), list.size()) {}

  OpArg(const char* name, const OpArg& value) : OpArg(value) { name_ = name; }
  OpArg(const char* name, std::initializer_list<int64_t> list) : OpArg(list) { name_ = name; }

  // Empty: none.
  std::string_view name() const { return name_; }
  Kind kind() const { return kind_; }

  // REQUIRES: the argument is of that kind.
  bool bool_value() const { return int_ != 0; }
  int64_t int_value() const { return int_; }
  double double_value() const { return double_; }
  std::string_view string_value() const { return {static_cast<const char*>(data_), size_}; }
  absl::Span<const int64_t> ints() const { return {static_cast<const int64_t*>(data_), size_}; }
  const TensorView& tensor() const { return *tensor_; }

 private:
  OpArg(Kind kind, const void* data, size_t size) : kind_(kind), data_(data), size_(size) {}

  std::string_view name_;
  Kind kind_;
  union {
    int64_t int_;
    double double_;
    const TensorView* tensor_;
    const void* data_;
  };
  // The size of a string or a list.
  size_t size_ = 0;
};

}  // namespace ott

#endif  // OTT_CORE_NVTX_OP_ARG_H_
