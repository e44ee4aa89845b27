// Identifies the type of an object, in programs with and without RTTI.

#ifndef OTT_CORE_TENSOR_TYPE_ID_H_
#define OTT_CORE_TENSOR_TYPE_ID_H_

#include <cstddef>
#include <functional>
#include <string_view>

namespace ott {

// Equal for one type in all copies of this library in a process, as those of a plug-in and of an executable.
// Copies built by different compilers agree on types whose names both write alike.
class TypeId {
 public:
  template <typename T>
  static TypeId Of() {
    return TypeId(&kName<T>);
  }

  // Returns the name as the compiler writes it.
  std::string_view name() const { return *name_; }

  friend bool operator==(const TypeId& a, const TypeId& b) {
    if (a.name_ == b.name_) return true;
    // Types of unnamed namespaces differ in spite of one name.
    return a.name() == b.name() && a.name().find("anonymous") == std::string_view::npos;
  }

  struct Hash {
    size_t operator()(const TypeId& id) const { return std::hash<std::string_view>()(id.name()); }
  };

 private:
  template <typename T>
  static constexpr const char* Signature() {
    return __PRETTY_FUNCTION__;
  }
  // "... [with T = NAME]" of GCC and "... [T = NAME]" of clang.
  static constexpr std::string_view NameIn(std::string_view signature) {
    signature.remove_prefix(signature.find("T = ") + 4);
    signature.remove_suffix(1);
    return signature;
  }

  template <typename T>
  static constexpr std::string_view kName = NameIn(Signature<T>());

  explicit TypeId(const std::string_view* name) : name_(name) {}

  // One for each type in each copy of the library.
  const std::string_view* name_;
};

}  // namespace ott

#endif  // OTT_CORE_TENSOR_TYPE_ID_H_
