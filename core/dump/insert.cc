#include "ott/core/dump/insert.h"

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

std::string Quoted(std::string_view path) {
  return absl::StrCat("'", absl::CHexEscape(std::string(path)), "'");
}

std::string Describe(const Value& value) {
  if (!value.is_tensor()) return absl::StrCat("a value of kind ", std::string(Name(value.kind())));
  const TensorView& view = value.tensor().view;
  return absl::StrCat("a ", std::string(Name(view.dtype())), " tensor of shape ",
                      ShapeToString(view.shape()));
}

bool IsEmptyContainer(const Value& value) {
  return (value.is_list() && value.list().empty()) || (value.is_map() && value.map().empty());
}

absl::Status Occupied(std::string_view path, const Value& value, const Value& occupant) {
  return absl::AlreadyExistsError(absl::StrCat("cannot insert ", Describe(value), " at ", Quoted(path),
                                               ": there is ", Describe(occupant), " already"));
}

absl::Status Put(std::string_view path, Value value, Value& place) {
  if (value.is_map() && place.is_map()) {
    for (const auto& [name, child] : value.map()) {
      if (const Value* occupant = place.map().Find(name))
        return Occupied(JoinPath(path, name), child, *occupant);
    }
    for (const auto& [name, child] : value.map()) place.map().Insert(name, child);
    return absl::OkStatus();
  }
  if (!IsEmptyContainer(place)) return Occupied(path, value, place);
  place = std::move(value);
  return absl::OkStatus();
}

// The child that a part of a path names; null if a map lacks it.
absl::StatusOr<Value*> Child(std::string_view path, std::string_view parent_path, const std::string& part,
                             Value& parent) {
  if (parent.is_map()) return parent.map().Find(part);
  if (parent.is_list()) {
    size_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    // One way to write each, so that a path has one name.
    const bool is_index =
        error == std::errc() && end == part.data() + part.size() && (part[0] != '0' || part.size() == 1);
    if (is_index && index < parent.list().size()) return &parent.list()[index];
  }
  return absl::InvalidArgumentError(absl::StrCat("cannot insert at ", Quoted(path), ": '",
                                                 absl::CHexEscape(part), "' names nothing in ",
                                                 Quoted(parent_path), ", which is ", Describe(parent)));
}

}  // namespace

absl::Status InsertAt(std::string_view path, Value value, Value& root) {
  if (path.empty()) {
    if (value.is_map()) return Put(path, std::move(value), root);
    return absl::InvalidArgumentError(absl::StrCat("cannot insert ", Describe(value), " without a path"));
  }
  const std::vector<std::string> parts = absl::StrSplit(absl::string_view(path.data(), path.size()), '.');
  for (const std::string& part : parts) {
    if (part.empty())
      return absl::InvalidArgumentError(absl::StrCat("the path ", Quoted(path), " has an empty part"));
  }

  // Down to what is there already.
  Value* place = &root;
  std::string place_path;
  size_t depth = 0;
  while (depth < parts.size()) {
    OTT_ASSIGN_OR_RETURN(Value * child, Child(path, place_path, parts[depth], *place));
    if (child == nullptr) break;
    place_path = JoinPath(place_path, parts[depth++]);
    place = child;
  }
  if (depth == parts.size()) return Put(path, std::move(value), *place);

  // The rest is made from the end, and hung up where the map lacks it.
  for (size_t i = parts.size() - 1; i > depth; --i) value = ValueMap{{parts[i], std::move(value)}};
  place->map().Insert(parts[depth], std::move(value));
  return absl::OkStatus();
}

}  // namespace ott
