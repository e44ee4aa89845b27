#include "ott/core/dump/adding_order.h"

#include <iterator>

#include "ott/core/base/status_macros.h"
#include "ott/core/dump/insert.h"

namespace ott {
namespace {

struct Leaf {
  std::string path;
};

// Appends the paths of all that is in `value`, which is at `path`, except lists and maps.
void AppendLeaves(const std::string& path, const Value& value, std::vector<std::string>& paths) {
  if (value.is_list()) {
    for (size_t i = 0; i < value.list().size(); ++i) {
      AppendLeaves(JoinPath(path, std::to_string(i)), value.list()[i], paths);
    }
  } else if (value.is_map()) {
    for (const auto& [name, child] : value.map()) AppendLeaves(JoinPath(path, name), child, paths);
  } else {
    paths.push_back(path);
  }
}

}  // namespace

AddingOrder::AddingOrder(const std::vector<std::string>& paths) {
  places_.reserve(paths.size());
  for (const std::string& path : paths) places_.emplace(path, places_.size());
}

size_t AddingOrder::PlaceOf(std::string_view path) const {
  while (true) {
    const auto found = places_.find(absl::string_view(path.data(), path.size()));
    if (found != places_.end()) return found->second;
    const size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return places_.size();
    path = path.substr(0, dot);
  }
}

absl::Status InsertInOrder(const std::string& path, Value tree, Value& root,
                           std::vector<std::string>& order) {
  std::vector<std::string> leaves;
  AppendLeaves(path, tree, leaves);
  OTT_RETURN_IF_ERROR(InsertAt(path, std::move(tree), root));
  order.insert(order.end(), std::make_move_iterator(leaves.begin()), std::make_move_iterator(leaves.end()));
  return absl::OkStatus();
}

std::vector<std::string> OrderUnlikeTrees(const Value& tree, const std::vector<std::string>& added) {
  std::vector<std::string> of_tree;
  AppendLeaves("", tree, of_tree);
  std::vector<Leaf> leaves(of_tree.size());
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i].path = of_tree[i];
  AddingOrder(added).Sort(leaves);
  std::vector<std::string> order;
  order.reserve(leaves.size());
  for (Leaf& leaf : leaves) order.push_back(std::move(leaf.path));
  if (order == of_tree) order.clear();
  return order;
}

}  // namespace ott
