// Puts a value into a tree by path.

#ifndef OTT_CORE_DUMP_INSERT_H_
#define OTT_CORE_DUMP_INSERT_H_

#include <string_view>

#include "absl/status/status.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Inserts at "a.b.c": maps are made on the way as needed, and a part of the path that is under a list is an
// index of it. A map is merged into a map that is there, name by name. An empty path is the root, a map.
//
// ALREADY_EXISTS, naming both, where something that is not an empty list or map is there already;
// INVALID_ARGUMENT for a path with an empty part, for what is no map without a path, and where a part of the
// path is neither a map nor a list with that index. The tree is then as it was.
absl::Status InsertAt(std::string_view path, Value value, Value& root);

}  // namespace ott

#endif  // OTT_CORE_DUMP_INSERT_H_
