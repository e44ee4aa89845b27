#include "ott/core/dumper/converters.h"

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

// Limits objects within each other. More is taken for a cycle.
constexpr size_t kMaxConversions = 100;

absl::Status DoesNotEnd(const std::string& path, const std::vector<TypeId>& types) {
  // The last ones show the cycle.
  constexpr size_t kShown = 4;
  const std::vector<TypeId> last(types.end() - kShown, types.end());
  return absl::InvalidArgumentError(absl::StrCat(
      "'", path, "': ", types.size(), " conversions do not end in a tensor or another known type: ... to ",
      absl::StrJoin(last, " to ", [](std::string* out, const TypeId& type) { *out += type.name(); })));
}

}  // namespace

absl::StatusOr<Value> Converters::Apply(std::string_view path, const Value& value) const {
  // The types of the objects that are being converted, each within the one before.
  std::vector<TypeId> types;
  const std::function<absl::StatusOr<Value>(const std::string&, const Value&)> apply =
      [&](const std::string& at, const Value& tree) -> absl::StatusOr<Value> {
    if (tree.kind() != Value::Kind::kObject) return TransformChildren(at, tree, apply);
    const Value::ObjectPointer& object = tree.object();
    types.push_back(object.type);
    if (types.size() > kMaxConversions) return DoesNotEnd(at, types);
    const auto converter = converters_.find(object.type);
    if (converter == converters_.end()) {
      return absl::UnimplementedError(
          absl::StrCat("'", at, "': there is no converter for the type ", std::string(object.type.name())));
    }
    const absl::StatusOr<Value> converted = converter->second(object.data.get());
    if (!converted.ok()) return WithContext(absl::StrCat("'", at, "'"), converted.status());
    absl::StatusOr<Value> result = apply(at, *converted);
    types.pop_back();
    return result;
  };
  return apply(std::string(path), value);
}

}  // namespace ott
