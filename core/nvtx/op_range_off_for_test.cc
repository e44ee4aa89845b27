// Op ranges that are off, for callgrind to count; see off_instructions_test.sh.

#include "ott/core/base/off_for_test.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/tensor/tensor_view.h"

namespace {

// A program's own kind of tensor, instead of views; views are made only for arguments.
struct Buffer {
  float data[2][3];
  ott::TensorView view() const { return ott::TensorView(&data[0][0], {2, 3}); }
};

Buffer buffer;
const ott::TensorView input(&buffer.data[0][0], {2, 3});
const ott::TensorView weight(&buffer.data[0][0], {3, 2});
const ott::TensorView bias(&buffer.data[0][0], {2});
ott::OpStash stash;

[[gnu::always_inline]] inline void WithArgs() {
  ott::OpRange op("linear", {input, weight, bias});
  asm volatile("");
}

[[gnu::always_inline]] inline void WithAttributes() {
  ott::OpRange op("conv2d", {{"input", input}, {"weight", weight}, {"bias", nullptr}},
                  {{"groups", 1}, {"eps", 1e-5}, {"padding", "same"}});
  asm volatile("");
}

[[gnu::always_inline]] inline void ByMacro() {
  OTT_OP_RANGE(op, "linear", {buffer.view(), {"weight", buffer.view()}}, {{"stride", {1, 1}}});
  asm volatile("");
}

[[gnu::always_inline]] inline void WithInputs() {
  ott::OpRange op("attention", ott::Inputs(input, weight, ott::OpArg("bias", bias)));
  asm volatile("");
}

[[gnu::always_inline]] inline void Phase() {
  OTT_PHASE("forward");
  asm volatile("");
}

[[gnu::always_inline]] inline void OfBackward() {
  ott::OpRange op(ott::OpRange::Backward("LinearBackward0", stash), {input});
  asm volatile("");
}

[[gnu::always_inline]] inline void Layer() {
  OTT_LAYER("encoder");
  asm volatile("");
}

}  // namespace

#define KINDS(USE) \
  USE(WithArgs) USE(WithAttributes) USE(ByMacro) USE(WithInputs) USE(Phase) USE(OfBackward) USE(Layer)
OTT_OFF_PROGRAM(KINDS)
