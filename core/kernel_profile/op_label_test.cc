#include "ott/core/kernel_profile/op_label.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::kernels {
namespace {

using ::testing::ElementsAre;

OpLabel Parse(const std::string& text) { return ParseLabel(SplitLabel(text)); }

TEST(OpLabel, EveryCombinationOfPyTorchsPartsIsTakenApart) {
  // The parts in any order, each there or not.
  const std::vector<std::string> parts = {", seq = 45328", ", op_id = 990724",
                                          ", sizes = [[2, 3], [0, 4], []]",
                                          ", input_op_ids = [(1,0), (2,1)]"};
  std::vector<int> order = {0, 1, 2, 3};
  do {
    for (int present = 1; present < 16; ++present) {
      std::string text = "aten::addmm";
      for (const int part : order) {
        if ((present >> part & 1) != 0) text += parts[static_cast<size_t>(part)];
      }
      const LabelParts split = SplitLabel(text);
      EXPECT_EQ(split.sequence_number, (present & 1) != 0 ? 45328 : kNoSequenceNumber) << text;
      const OpLabel label = ParseLabel(split);
      EXPECT_EQ(label.kind, OpLabel::Kind::kOp) << text;
      EXPECT_EQ(label.description.module, "aten") << text;
      EXPECT_EQ(label.description.op, "addmm") << text;
      EXPECT_EQ(label.direction, OpDirection::kForward) << text;
      ASSERT_EQ(label.description.arguments.size(), (present & 4) != 0 ? 2 : 0) << text;
      if ((present & 4) == 0) continue;
      EXPECT_THAT(label.description.arguments[1].shape, ElementsAre(0, 4)) << text;
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(OpLabel, WhatVariesFromCallToCallIsNoPartOfWhatRecurs) {
  LabelParts parts = SplitLabel("aten::mm, seq = 1, op_id = 5, sizes = [[2, 3], [3, 4]]");
  EXPECT_EQ(parts.head, "aten::mm");
  EXPECT_EQ(parts.tail, ", sizes = [[2, 3], [3, 4]]");
  EXPECT_EQ(parts.sequence_number, 1);
  parts = SplitLabel(R"({"op":"mm","seq":2,"source":"a.cc:1"})");
  EXPECT_EQ(parts.head, R"({"op":"mm")");
  EXPECT_EQ(parts.tail, R"(,"source":"a.cc:1"})");
  EXPECT_EQ(parts.sequence_number, 2);
}

TEST(OpLabel, ListsOfTensorsShareAPosition) {
  const OpLabel label = Parse("aten::cat, sizes = [[[2, 3], [4, 3]], [], [5]]");
  const auto& arguments = label.description.arguments;
  ASSERT_EQ(arguments.size(), 3);
  EXPECT_THAT(arguments[1].shape, ElementsAre(4, 3));
  EXPECT_EQ(arguments[0].position, 0);
  EXPECT_EQ(arguments[1].position, 0);
  EXPECT_EQ(arguments[2].position, 2);
  // Neither below 0, nor beyond any memory, nor a list, nor a text is a size.
  EXPECT_THAT(Parse("aten::cat, sizes = [[-1], [1e16], [2, [3]], ['4'], [1e15]]").description.arguments,
              ElementsAre(testing::Field(&OpArgument::position, 4)));
}

TEST(OpLabel, BackwardNodesOfAnyNumberAreBackward) {
  for (const char* name :
       {"MulBackward0", "MulBackward1", "SplitWithSizesBackward27", "MyFunctionBackward",
        "torch::autograd::CopyBackwards", "autograd::engine::evaluate_function: MulBackward0",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "aten::convolution_backward",
        "aten::_softmax_backward_data", "torch::autograd::AccumulateGrad"}) {
    EXPECT_EQ(Parse(std::string(name) + ", seq = 7").direction, OpDirection::kBackward) << name;
  }
  EXPECT_EQ(Parse("aten::backwardish, seq = 7").direction, OpDirection::kForward);
  EXPECT_EQ(Parse("autograd::engine::evaluate_function: MulBackward0").description.op, "MulBackward0");
}

TEST(OpLabel, OursTellsDTypesAttributesAndTheLine) {
  const OpLabel label = Parse(
      R"({"op":"linear","module":"encoder.0","args":[{"name":"input","dtype":"float32","shape":[32,128],)"
      R"("strides":[128,1],"device":"cuda:0"},{"name":"eps","value":1e-5}],"attributes":{"stride":[1,2],"groups":1},)"
      R"("direction":"backward","seq":12,"source":"train.cc:42"})");
  EXPECT_EQ(label.kind, OpLabel::Kind::kMarker);
  EXPECT_EQ(label.description.op, "linear");
  EXPECT_EQ(label.description.module, "encoder.0");
  EXPECT_EQ(label.direction, OpDirection::kBackward);
  EXPECT_EQ(label.source, "train.cc:42");
  const auto& arguments = label.description.arguments;
  ASSERT_EQ(arguments.size(), 4);
  EXPECT_TRUE(arguments[0].is_tensor);
  EXPECT_EQ(arguments[0].dtype, DType::kFloat32);
  EXPECT_THAT(arguments[1].numbers, ElementsAre(1e-5));
  EXPECT_EQ(arguments[2].name, "stride");
  EXPECT_THAT(arguments[2].numbers, ElementsAre(1, 2));
}

TEST(OpLabel, NamespacesAreNoPartOfTheOp) {
  for (const char* text : {R"({"op":"aten::convolution_backward","args":[]})",
                           "aten::convolution_backward, op_id = 7, sizes = [[2]]"}) {
    const OpLabel label = Parse(text);
    EXPECT_EQ(label.description.op, "convolution_backward") << text;
    EXPECT_EQ(label.description.module, "aten") << text;
    EXPECT_EQ(label.direction, OpDirection::kBackward) << text;
    // Called by a node, as ops of other libraries are.
    EXPECT_FALSE(label.is_backward_node) << text;
  }
  EXPECT_FALSE(Parse("flash_attn::_flash_attn_backward, op_id = 7, sizes = [[2]]").is_backward_node);
  EXPECT_TRUE(Parse("torch::autograd::CopyBackwards, seq = 7").is_backward_node);
  // PyTorch before 1.5 writes these.
  for (const char* const stashed : {"AddmmBackward, stashed seq = 7", "AddmmBackward, stashed seq=7"}) {
    EXPECT_EQ(SplitLabel(stashed).head, "AddmmBackward") << stashed;
    EXPECT_EQ(SplitLabel(stashed).sequence_number, 7u) << stashed;
    EXPECT_TRUE(Parse(stashed).is_backward_node) << stashed;
  }
  EXPECT_TRUE(Parse("autograd::engine::evaluate_function: MulBackward0, seq = 7").is_backward_node);
  const OpLabel gradient =
      Parse("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 7");
  EXPECT_TRUE(gradient.is_backward_node);
  EXPECT_EQ(gradient.description.module, "torch::autograd");
  EXPECT_EQ(gradient.description.op, "AccumulateGrad");
  const OpLabel node = Parse(R"({"op":"LinearBackward0","module":"encoder","direction":"backward"})");
  EXPECT_TRUE(node.is_backward_node);
  EXPECT_EQ(node.description.module, "encoder");
  EXPECT_EQ(Parse(R"({"op":"block:3"})").description.op, "block:3");
  EXPECT_EQ(Parse(R"({"op":"a::"})").description.op, "a::");
  EXPECT_EQ(Parse(R"({"op":"a:: "})").description.op, "a:: ");
}

TEST(OpLabel, PyProfsMarkersAreRead) {
  const OpLabel op = Parse(
      "{'mod': 'torch.nn.functional', 'op': 'linear', 'args': [{'name': '', 'type': 'tensor', 'shape': (32, "
      "128), 'dtype': 'float16'}, {'name': 'p', 'type': 'float', 'value': inf}, {'name': 'training', 'type': "
      "'bool', 'value': True}], 'direction': 'bprop'}");
  EXPECT_EQ(op.direction, OpDirection::kBackward);
  EXPECT_EQ(op.kind, OpLabel::Kind::kMarker);
  EXPECT_EQ(op.description.module, "torch.nn.functional");
  ASSERT_EQ(op.description.arguments.size(), 3);
  EXPECT_THAT(op.description.arguments[0].shape, ElementsAre(32, 128));
  EXPECT_EQ(op.description.arguments[0].dtype, DType::kFloat16);
  EXPECT_THAT(op.description.arguments[2].numbers, ElementsAre(1));

  const OpLabel trace = Parse("{'traceMarker': ['train.py:12', 'model.py:7']}");
  EXPECT_EQ(trace.kind, OpLabel::Kind::kTrace);
  EXPECT_EQ(trace.source, "train.py:12,model.py:7");

  const OpLabel module = Parse("{'mod': 'Linear', 'strRepr': \"Linear(in='a')\"}");
  EXPECT_EQ(module.kind, OpLabel::Kind::kModule);
  EXPECT_EQ(module.text, "Linear");
}

TEST(OpLabel, LayersAndRangesOfTheProgramAreNoOps) {
  EXPECT_EQ(Parse("layer:encoder.0").kind, OpLabel::Kind::kLayer);
  EXPECT_EQ(Parse("layer:encoder.0").text, "encoder.0");
  for (const char* text : {"", "forward", "iteration 17", "Optimizer.step#SGD.step", "{'mod': ", "{}",
                           "{\"op\":7}", "a, seq = x", "a, seq = 1 and more", "a, sizes = [[1]", "[[[[",
                           ", seq = ", "a, seq = 12345678901234567890", "a, op_id = 12345678901234567890"}) {
    EXPECT_EQ(Parse(text).kind, OpLabel::Kind::kOther) << text;
    EXPECT_EQ(Parse(text).text, text);
  }
}

TEST(OpLabel, RangesOfRecordFunctionAreNoOps) {
  // PyTorch's observer writes them like this: with an operator id, but with neither tensors nor autograd's
  // number.
  for (const std::string name : {"FSDP::pre_forward (encoder.block.18.layer.0)", "forward",
                                 "Optimizer.step#AdamW.step", "ProfilerStep#5", "backward"}) {
    for (const char* rest : {", op_id = 7", ", op_id = 7, sizes = []", ", op_id = 7, sizes = [[]]"}) {
      EXPECT_EQ(Parse(name + rest).kind, OpLabel::Kind::kOther) << name << rest;
      EXPECT_EQ(Parse(name + rest).text, name);
    }
  }
  for (const char* op : {"MyFunction, seq = 3, op_id = 7", "my_op, op_id = 7, sizes = [[2]]",
                         "MulBackward0, op_id = 7", "torch_ext::op, op_id = 7"}) {
    EXPECT_EQ(Parse(op).kind, OpLabel::Kind::kOp) << op;
  }
}

TEST(OpLabel, CollectivesAreOpsOfNccl) {
  for (const char* text : {"ncclAllReduce", "nccl:all_reduce", "nccl:send 0->1, op_id = 7"}) {
    EXPECT_EQ(Parse(text).kind, OpLabel::Kind::kOp) << text;
    EXPECT_EQ(Parse(text).description.module, "nccl") << text;
  }
}

TEST(OpLabel, DeepNestingIsNoLabel) {
  EXPECT_EQ(Parse("{\"op\":" + std::string(100000, '[')).kind, OpLabel::Kind::kOther);
  EXPECT_EQ(Parse("a, sizes = " + std::string(100000, '[') + std::string(100000, ']')).kind,
            OpLabel::Kind::kOther);
}

}  // namespace
}  // namespace ott::kernels
