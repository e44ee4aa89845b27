// Makes trees of values out of objects of any C++ type.

#ifndef OTT_CORE_DUMPER_CONVERTERS_H_
#define OTT_CORE_DUMPER_CONVERTERS_H_

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/status/statusor.h"
#include "ott/core/tensor/type_id.h"
#include "ott/core/tensor/value.h"

namespace ott {

// One converter for each type. What it returns may hold objects again.
//
//   converters.Register<Box>([](const Box& box) { return ValueMap{{"min", box.min}, {"max", box.max}}; });
//   converters.Apply("boxes", Value::List{Value::Object(a), Value::Object(b)});
class Converters {
 public:
  // Replaces an earlier one of the type. convert: returns what a Value is made from, or a StatusOr of it.
  template <typename T, typename F>
  void Register(F convert) {
    converters_.insert_or_assign(TypeId::Of<T>(),
                                 [convert = std::move(convert)](const void* object) -> absl::StatusOr<Value> {
                                   return convert(*static_cast<const T*>(object));
                                 });
  }

  // Returns the tree with the objects converted, again and again until none is left. UNIMPLEMENTED, with the
  // path and the type, for one without a converter; INVALID_ARGUMENT if it does not end; else the converter's
  // error.
  absl::StatusOr<Value> Apply(std::string_view path, const Value& value) const;

 private:
  std::unordered_map<TypeId, std::function<absl::StatusOr<Value>(const void*)>, TypeId::Hash> converters_;
};

}  // namespace ott

#endif  // OTT_CORE_DUMPER_CONVERTERS_H_
