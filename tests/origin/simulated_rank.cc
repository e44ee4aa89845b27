#include "ott/tests/origin/simulated_rank.h"

#include <algorithm>
#include <cstdint>
#include <deque>

#include "ott/core/tensor/element.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott::origin {
namespace {

// A view of a matrix with its elements in its dtype.
class View {
 public:
  explicit View(const Matrix& matrix) {
    const int64_t shape[] = {matrix.rows, matrix.columns};
    const void* data = matrix.data.data();
    if (matrix.dtype == DType::kBFloat16) {
      for (const float value : matrix.data) halves_.push_back(FromDouble<BFloat16>(value).bits);
      data = halves_.data();
    } else if (matrix.dtype == DType::kFloat8E4M3) {
      for (const float value : matrix.data) bytes_.push_back(FromDouble<Float8E4M3>(value).bits);
      data = bytes_.data();
    }
    view_ = std::make_unique<TensorView>(data, matrix.dtype, shape);
  }
  const TensorView& view() const { return *view_; }

 private:
  std::vector<uint16_t> halves_;
  std::vector<uint8_t> bytes_;
  std::unique_ptr<TensorView> view_;
};

// Refer to `views`.
std::vector<OpArg> Args(const std::vector<Named>& matrices, std::deque<View>& views) {
  std::vector<OpArg> args;
  for (const Named& named : matrices) {
    args.emplace_back(named.name, OpArg(views.emplace_back(*named.matrix).view()));
  }
  return args;
}

}  // namespace

void Rank::Run(const Operation& operation, const std::vector<Named>& inputs,
               const std::function<std::vector<Named>()>& compute) {
  if (std::find(not_logged_.begin(), not_logged_.end(), operation.name) != not_logged_.end()) {
    compute();
    return;
  }
  ObservedOp observed;
  observed.name = operation.name;
  observed.module = operation.module;
  observed.phase = operation.phase;
  observed.role = operation.role;
  observed.is_backward = operation.phase == "backward";
  observed.source = {"network.cc", 100 + static_cast<int>(operation.name.size())};
  std::deque<View> views;
  const std::vector<OpArg> args = Args(inputs, views);
  observed.args = args;
  void* const op = log_->Begin(observed);
  std::deque<View> output_views;
  log_->AddOutputs(op, Args(compute(), output_views));
  log_->End(op);
}

}  // namespace ott::origin
