// Tensors of floats for tests of layouts.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_TENSORS_FOR_TEST_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_TENSORS_FOR_TEST_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ott/core/tensor/value.h"

namespace ott::crosscheck {

// A float32 tensor that owns its elements: first, first + 1, ...
inline Value Count(const Dims& shape, float first = 0) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  auto owner = std::make_shared<std::vector<float>>();
  for (int64_t i = 0; i < count; ++i) owner->push_back(first + static_cast<float>(i));
  return Tensor{TensorView(owner->data(), shape), owner};
}

inline Value Floats(const Dims& shape, std::vector<float> elements) {
  auto owner = std::make_shared<std::vector<float>>(std::move(elements));
  return Tensor{TensorView(owner->data(), shape), owner};
}

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_TENSORS_FOR_TEST_H_
