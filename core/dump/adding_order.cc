#include "ott/core/dump/adding_order.h"

namespace ott {
namespace {

struct Leaf {
  std::string path;
};

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
