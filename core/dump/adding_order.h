// The order in which a program added what is in a tree, which groups it by its names.
//
//   data.0, loss.0, data.1     in the order of adding
//   data.0, data.1, loss.0     in the tree

#ifndef OTT_CORE_DUMP_ADDING_ORDER_H_
#define OTT_CORE_DUMP_ADDING_ORDER_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Thread-safe.
class AddingOrder {
 public:
  // Orders by the paths of leaves; none: in the tree's own order. A path that is there twice counts first.
  explicit AddingOrder(const std::vector<std::string>& paths);

  // Returns the place of the path, or of the longest path above it; behind all others if there is none.
  size_t PlaceOf(std::string_view path) const;

  // Sorts what has a `path`, and keeps the order of what has one place.
  template <typename T>
  void Sort(std::vector<T>& all) const {
    if (places_.empty()) return;
    std::vector<std::pair<size_t, T>> placed;
    placed.reserve(all.size());
    for (T& one : all) {
      const size_t place = PlaceOf(one.path);
      placed.emplace_back(place, std::move(one));
    }
    std::stable_sort(placed.begin(), placed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < all.size(); ++i) all[i] = std::move(placed[i].second);
  }

 private:
  absl::flat_hash_map<std::string, size_t> places_;
};

// Inserts `tree` at `path` of `root`, and appends the paths of all in it, except lists and maps, to `order`.
// An error is that of InsertAt(), and leaves both as they were.
absl::Status InsertInOrder(const std::string& path, Value tree, Value& root, std::vector<std::string>& order);

// Returns the paths of the tree's leaves in this order of adding; empty if that is the tree's own.
std::vector<std::string> OrderUnlikeTrees(const Value& tree, const std::vector<std::string>& added);

}  // namespace ott

#endif  // OTT_CORE_DUMP_ADDING_ORDER_H_
