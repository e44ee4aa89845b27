#include "ott/core/kernel_profile/op_label.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

// Returns "KIND MODULE|OP", and what else there is of a label, or the text of what is no op.
std::string Describe(const std::string& text) {
  const LabelParts parts = SplitLabel(text);
  const OpLabel label = ParseLabel(parts);
  const bool is_op = label.kind == OpLabel::Kind::kOp, is_marker = label.kind == OpLabel::Kind::kMarker;
  if (!is_op && !is_marker)
    return absl::StrCat(label.kind == OpLabel::Kind::kLayer ? "layer " : "other ", label.text);
  return absl::StrCat(
      is_op ? "op " : "marker ", label.description.module, "|", label.description.op,
      label.direction == OpDirection::kBackward ? " backward" : "", label.is_backward_node ? " node" : "",
      parts.sequence_number == kNoSequenceNumber ? "" : absl::StrCat(" ", parts.sequence_number));
}

TEST(OpLabel, TellsOpsFromNodesOfTheBackwardPassAndFromRangesOfTheProgram) {
  const std::string evaluate = "autograd::engine::evaluate_function: ";
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"MulBackward0, seq = 7", "op |MulBackward0 backward node 7"},
           {"MulBackward0, op_id = 7", "op |MulBackward0 backward node"},
           {"SplitWithSizesBackward27, seq = 0", "op |SplitWithSizesBackward27 backward node 0"},
           {"MyFunctionBackward, seq=7", "op |MyFunctionBackward backward node 7"},
           {"AddmmBackward, stashed seq = 7", "op |AddmmBackward backward node 7"},
           {"AddmmBackward, stashed seq=7", "op |AddmmBackward backward node 7"},
           {"torch::autograd::CopyBackwards, seq = 7", "op torch::autograd|CopyBackwards backward node 7"},
           {"torch::autograd::AccumulateGrad, seq = 7", "op torch::autograd|AccumulateGrad backward node 7"},
           {evaluate + "MulBackward0", "op |MulBackward0 backward node"},
           {evaluate + "MulBackward0, seq = 7", "op |MulBackward0 backward node 7"},
           {evaluate + "torch::autograd::AccumulateGrad, op_id = 7",
            "op torch::autograd|AccumulateGrad backward node"},
           {R"({"op":"LinearBackward0","module":"encoder","direction":"backward"})",
            "marker encoder|LinearBackward0 backward node"},
           // A node calls these, as ops of other libraries are called.
           {"aten::convolution_backward, op_id = 7, sizes = [[2]]", "op aten|convolution_backward backward"},
           {R"({"op":"aten::convolution_backward","args":[]})", "marker aten|convolution_backward backward"},
           {"aten::_softmax_backward_data, seq = 7", "op aten|_softmax_backward_data backward 7"},
           {"flash_attn::_flash_attn_backward, sizes = [[2]]", "op flash_attn|_flash_attn_backward backward"},
           {"aten::backwardish, seq = 7", "op aten|backwardish 7"},
           {"hackward, seq = 7", "op |hackward 7"},
           {"MyFunction, seq = 3, op_id = 7", "op |MyFunction 3"},
           {"my_op, op_id = 7, sizes = [[2]]", "op |my_op"},
           {"torch_ext::op, op_id = 7", "op torch_ext|op"},
           {R"({"op":"block:3"})", "marker |block:3"},
           {R"({"op":"a::"})", "marker |a::"},
           {R"({"op":"a:: "})", "marker |a:: "},
           {"ncclAllReduce", "op nccl|ncclAllReduce"},
           {"nccl:all_reduce", "op nccl|all_reduce"},
           {"nccl:send 0->1, op_id = 7", "op nccl|send 0->1"},
           {"layer:encoder.0", "layer encoder.0"}}) {
    EXPECT_EQ(Describe(text), says) << text;
  }
  const std::string deep(100000, '[');
  for (const std::string& text :
       std::vector<std::string>{"",
                                "forward",
                                "iteration 17",
                                "Optimizer.step#SGD.step",
                                "nccl",
                                "nccl_ring",
                                "::a",
                                "MulBackward",
                                "{'mod': ",
                                "{}",
                                "{\"op\":7}",
                                "a, seq = x",
                                "a, seq = 1 and more",
                                "a, sizes = [[1]",
                                "[[[[",
                                ", seq = ",
                                "a, seq = 12345678901234567890",
                                "a, op_id = 12345678901234567890",
                                "{\"op\":" + deep,
                                "a, sizes = " + deep + "1" + std::string(100000, ']')}) {
    EXPECT_EQ(Describe(text), "other " + text);
  }
  // PyTorch's observer writes ranges of record_function() with an operator id, but with neither tensors nor
  // autograd's number.
  for (const std::string name :
       {"FSDP::pre_forward (encoder.block.18.layer.0)", "ProfilerStep#5", "backward"}) {
    for (const char* rest : {", op_id = 7", ", op_id = 7, sizes = []", ", op_id = 7, sizes = [[]]"})
      EXPECT_EQ(Describe(name + rest), "other " + name) << rest;
  }
}

}  // namespace
}  // namespace ott::kernels
