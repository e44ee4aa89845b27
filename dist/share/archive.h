// Summaries as bytes, for processes of one program.

#ifndef OTT_DIST_SHARE_ARCHIVE_H_
#define OTT_DIST_SHARE_ARCHIVE_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "google/protobuf/message_lite.h"
#include "google/protobuf/repeated_field.h"

namespace ott {

// A struct has one function for both directions, in its namespace:
//
//   template <typename Archive>
//   void Fields(Archive& archive, Step& step) {
//     archive(step.number, step.name, step.seconds);
//   }
//   const std::string bytes = ToBytes(step);
//   if (!FromBytes(bytes, &step)) ...
//
// Integers are short if they are small; floating-point numbers keep all their bits.
class Writer {
 public:
  static constexpr bool kReads = false;

  template <typename... T>
  void operator()(T&... values) {
    (Put(values), ...);
  }
  std::string& bytes() { return bytes_; }

 private:
  void PutNumber(uint64_t number) {
    for (; number >= 0x80; number >>= 7) bytes_.push_back(static_cast<char>(number | 0x80));
    bytes_.push_back(static_cast<char>(number));
  }
  template <typename T>
  void Put(T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      // Negative numbers that are small are short, too.
      const auto number = static_cast<int64_t>(value);
      PutNumber((static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63));
    } else if constexpr (std::is_base_of_v<google::protobuf::MessageLite, T>) {
      std::string text = value.SerializeAsString();
      Put(text);
    } else {
      Fields(*this, value);
    }
  }
  void Put(std::string& text) {
    PutNumber(text.size());
    bytes_ += text;
  }
  template <typename T>
  void Put(std::optional<T>& value) {
    PutNumber(value.has_value() ? 1 : 0);
    if (value.has_value()) Put(*value);
  }
  template <typename K, typename V>
  void Put(std::map<K, V>& values) {
    PutNumber(values.size());
    for (auto& [key, value] : values) {
      K copy = key;
      Put(copy);
      Put(value);
    }
  }
  template <typename A, typename B>
  void Put(std::pair<A, B>& pair) {
    Put(pair.first);
    Put(pair.second);
  }
  template <typename T>
  void Put(google::protobuf::RepeatedPtrField<T>& list) {
    PutNumber(list.size());
    for (T& value : list) Put(value);
  }
  // Vectors and what is like them.
  template <template <typename...> typename List, typename T, typename... Rest>
  auto Put(List<T, Rest...>& list) -> decltype(list.resize(0)) {
    PutNumber(list.size());
    for (T& value : list) Put(value);
  }
  template <template <typename, size_t, typename> typename List, typename T, size_t kSize, typename Rest>
  void Put(List<T, kSize, Rest>& list) {
    PutNumber(list.size());
    for (T& value : list) Put(value);
  }

  std::string bytes_;
};

// After damage, ok() is false and values are empty.
class Reader {
 public:
  static constexpr bool kReads = true;

  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename... T>
  void operator()(T&... values) {
    (Get(values), ...);
  }
  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view Take(uint64_t size) {
    ok_ = ok_ && size <= bytes_.size();
    if (!ok_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  uint64_t GetNumber() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = Take(1);
      if (byte.empty()) return 0;
      number |= static_cast<uint64_t>(byte[0] & 0x7f) << shift;
      if ((byte[0] & 0x80) == 0) return number;
    }
    ok_ = false;
    return 0;
  }
  // Each value takes a byte at least.
  uint64_t GetSize() {
    const uint64_t size = GetNumber();
    ok_ = ok_ && size <= bytes_.size();
    return ok_ ? size : 0;
  }
  template <typename T>
  void Get(T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      if (const std::string_view taken = Take(sizeof(T)); !taken.empty())
        std::memcpy(&value, taken.data(), sizeof(T));
    } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
      const uint64_t number = GetNumber();
      value = static_cast<T>(static_cast<int64_t>((number >> 1) ^ (~(number & 1) + 1)));
    } else if constexpr (std::is_base_of_v<google::protobuf::MessageLite, T>) {
      std::string text;
      Get(text);
      ok_ = ok_ && value.ParseFromString(text);
    } else {
      Fields(*this, value);
    }
  }
  void Get(std::string& text) { text = std::string(Take(GetNumber())); }
  template <typename T>
  void Get(std::optional<T>& value) {
    value.reset();
    if (GetNumber() != 0) Get(value.emplace());
  }
  template <typename K, typename V>
  void Get(std::map<K, V>& values) {
    values.clear();
    for (uint64_t left = GetSize(); left > 0 && ok_; --left) {
      K key{};
      Get(key);
      Get(values[key]);
    }
  }
  template <typename A, typename B>
  void Get(std::pair<A, B>& pair) {
    Get(pair.first);
    Get(pair.second);
  }
  template <typename T>
  void Get(google::protobuf::RepeatedPtrField<T>& list) {
    list.Clear();
    for (uint64_t left = GetSize(); left > 0 && ok_; --left) Get(*list.Add());
  }
  template <template <typename...> typename List, typename T, typename... Rest>
  auto Get(List<T, Rest...>& list) -> decltype(list.resize(0)) {
    list.clear();
    list.resize(GetSize());
    for (T& value : list) Get(value);
  }
  template <template <typename, size_t, typename> typename List, typename T, size_t kSize, typename Rest>
  void Get(List<T, kSize, Rest>& list) {
    list.clear();
    list.resize(GetSize());
    for (T& value : list) Get(value);
  }

  std::string_view bytes_;
  bool ok_ = true;
};

template <typename T>
std::string ToBytes(const T& value) {
  Writer writer;
  // Fields() of a writer changes nothing.
  writer(const_cast<T&>(value));
  return std::move(writer.bytes());
}

// False, and *value is not to be used, for bytes that are none of a T.
template <typename T>
bool FromBytes(std::string_view bytes, T* value) {
  Reader reader(bytes);
  reader(*value);
  return reader.at_end();
}

}  // namespace ott

#endif  // OTT_DIST_SHARE_ARCHIVE_H_
