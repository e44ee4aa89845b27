#include "ott/core/op_cost/tensor_lists.h"

#include <cstddef>

namespace ott {
namespace {

bool AreOfOneList(const OpArgument& a, const OpArgument& b) {
  return a.position == b.position || (!a.name.empty() && a.name == b.name);
}

}  // namespace

std::vector<TensorList> ListsOf(const OpCall& call, std::initializer_list<size_t> counts) {
  TensorList tensors;
  bool told = !call.tensors_only();
  for (const OpArgument* tensor : call.tensors()) {
    if (tensor->shape.empty()) continue;
    told = told || (!tensors.empty() && AreOfOneList(*tensors.back(), *tensor));
    tensors.push_back(tensor);
  }
  std::vector<TensorList> lists;
  if (told) {
    for (const OpArgument* tensor : tensors) {
      if (lists.empty() || !AreOfOneList(*lists.back().back(), *tensor)) lists.emplace_back();
      lists.back().push_back(tensor);
    }
    return lists;
  }
  for (const size_t count : counts) {
    const size_t length = tensors.size() / count;
    bool repeats = length * count == tensors.size();
    for (size_t i = length; repeats && i < tensors.size(); ++i)
      repeats = tensors[i]->shape == tensors[i - length]->shape;
    if (!repeats) continue;
    if (!lists.empty()) return {};
    for (size_t i = 0; i < tensors.size(); i += length)
      lists.emplace_back(tensors.begin() + static_cast<std::ptrdiff_t>(i),
                         tensors.begin() + static_cast<std::ptrdiff_t>(i + length));
  }
  return lists;
}

double ElementsOf(const TensorList& list) {
  double sum = 0;
  for (const OpArgument* tensor : list) sum += Elements(tensor->shape);
  return sum;
}

double BytesOf(const OpCall& call, const TensorList& list) {
  double sum = 0;
  for (const OpArgument* tensor : list) sum += call.Bytes(*tensor);
  return sum;
}

}  // namespace ott
