// The tests of checkpoints read files and compare trees of tensors with these functions.

#ifndef OTT_CORE_CHECKPOINT_CHECKPOINT_FOR_TEST_H_
#define OTT_CORE_CHECKPOINT_CHECKPOINT_FOR_TEST_H_

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott {

inline std::string Data(const std::string& name) { return "core/checkpoint/testdata/" + name; }

inline Value Read(const std::string& path) { return ReadCheckpoint(path).value().state; }

inline const Value& At(const Value& tree, const std::string& name) {
  static const Value& none = *new Value();
  const Value* const found = tree.is_map() ? tree.map().Find(name) : nullptr;
  EXPECT_NE(found, nullptr) << name;
  return found == nullptr ? none : *found;
}

// Each element as a text, in row-major order.
inline std::string Elements(const Value& value) {
  const Tensor tensor = *CloneToHost(Gathered(value.tensor())->view);
  std::string text(Name(tensor.view.dtype()));
  absl::StrAppend(&text, ShapeToString(tensor.view.shape()), ":");
  VisitDType(tensor.view.dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (!kIsComplex<T>) {
      for (int64_t i = 0; i < tensor.view.num_elements(); ++i) {
        absl::StrAppend(&text, " ", static_cast<double>(static_cast<const T*>(tensor.view.data())[i]));
      }
    }
  });
  return text;
}

// All tensors of a tree, by path.
inline std::map<std::string, std::string> AllElements(const Value& tree) {
  std::map<std::string, std::string> all;
  for (const NamedTensor& named : ListTensors(tree)) all[named.path] = Elements(Value(named.tensor));
  return all;
}

}  // namespace ott

#endif  // OTT_CORE_CHECKPOINT_CHECKPOINT_FOR_TEST_H_
