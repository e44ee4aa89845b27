#include "ott/core/kernel_profile/op_label.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/tensor/dtype.h"

namespace ott::kernels {
namespace {

using ::testing::ElementsAre;

OpLabel Parse(const std::string& text) { return ParseLabel(SplitLabel(text)); }

// Returns "KIND MODULE|OP", or the text of what is no op, and what else there is of a label.
std::string Describe(const std::string& text) {
  const LabelParts parts = SplitLabel(text);
  const OpLabel label = ParseLabel(parts);
  const bool is_op = label.kind == OpLabel::Kind::kOp || label.kind == OpLabel::Kind::kMarker;
  const char* const kinds[] = {"other ", "marker ", "op ", "layer ", "trace ", "module "};
  return absl::StrCat(
      kinds[static_cast<int>(label.kind)],
      is_op ? absl::StrCat(label.description.module, "|", label.description.op) : label.text,
      label.direction == OpDirection::kBackward ? " backward" : "", label.is_backward_node ? " node" : "",
      label.source.empty() ? "" : " at ", label.source,
      parts.sequence_number == kNoSequenceNumber ? "" : absl::StrCat(" ", parts.sequence_number));
}

// Returns "NAME@POSITION TYPE[SHAPE]" of tensors, and the numbers and the text of other arguments.
std::vector<std::string> Arguments(const std::string& text) {
  std::vector<std::string> all;
  for (const OpArgument& argument : Parse(text).description.arguments) {
    const std::string of_tensor = absl::StrCat(argument.dtype ? std::string(ott::Name(*argument.dtype)) : "",
                                               "[", absl::StrJoin(argument.shape, ","), "]");
    all.push_back(absl::StrCat(argument.name, "@", argument.position, " ",
                               argument.is_tensor ? of_tensor : "", absl::StrJoin(argument.numbers, ","),
                               argument.text));
  }
  return all;
}

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
      EXPECT_EQ(Describe(text), absl::StrCat("op aten|addmm", (present & 1) != 0 ? " 45328" : ""));
      const std::vector<std::string> tensors = {"@0 [2,3]", "@1 [0,4]"};
      EXPECT_EQ(Arguments(text), (present & 4) != 0 ? tensors : std::vector<std::string>()) << text;
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

TEST(OpLabel, TellsAllArguments) {
  // Lists of tensors share a position.
  EXPECT_THAT(Arguments("aten::cat, sizes = [[[2, 3], [4, 3]], [], [5]]"),
              ElementsAre("@0 [2,3]", "@0 [4,3]", "@2 [5]"));
  // Neither below 0, nor beyond any memory, nor a list, nor a text is a size.
  EXPECT_THAT(Arguments("aten::cat, sizes = [[-1], [1e16], [2, [3]], ['4'], [1e15]]"),
              ElementsAre("@4 [1000000000000000]"));
  const std::string ours =
      R"({"op":"linear","module":"encoder.0","args":[{"name":"input","dtype":"float32","shape":[32,128],)"
      R"("strides":[128,1],"device":"cuda:0"},{"name":"eps","value":1e-5},{"name":"neither"},{"name":"x","shape":7},)"
      R"({"name":"list","value":[{"name":"of","dtype":"int8","shape":[2]},{"shape":[3]},4]},)"
      R"({"name":"pairs","value":[1,[2]]},{"name":"map","value":{"a":1}},{"name":"how","value":"sum"}],)"
      R"("attributes":{"stride":[1,2],"groups":1},"direction":"backward","seq":12,"source":"train.cc:42"})";
  EXPECT_EQ(Describe(ours), "marker encoder.0|linear backward at train.cc:42 12");
  EXPECT_THAT(Arguments(ours),
              ElementsAre("input@0 float32[32,128]", "eps@1 1e-05", "of@4 int8[2]", "@4 [3]", "list@4 ",
                          "pairs@5 ", "map@6 ", "how@7 sum", "stride@-1 1,2", "groups@-1 1"));
  const std::string of_pyprof =
      "{'mod': 'torch.nn.functional', 'op': 'linear', 'args': [{'name': '', 'type': 'tensor', 'shape': (32, "
      "128), 'dtype': 'float16'}, {'name': 'p', 'type': 'float', 'value': inf}, {'name': 'training', 'type': "
      "'bool', 'value': True}], 'direction': 'bprop'}";
  EXPECT_EQ(Describe(of_pyprof), "marker torch.nn.functional|linear backward");
  EXPECT_THAT(Arguments(of_pyprof), ElementsAre("@0 float16[32,128]", "p@1 inf", "training@2 1"));
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
           {"aten::bincount, seq = 7", "op aten|bincount 7"},
           {"17, seq = 3", "op |17 3"},
           {"MyFunction, seq = 3, op_id = 7", "op |MyFunction 3"},
           {"my_op, op_id = 7, sizes = [[2]]", "op |my_op"},
           {"torch_ext::op, op_id = 7", "op torch_ext|op"},
           {R"({"op":"block:3"})", "marker |block:3"},
           {R"({"op":"a::"})", "marker |a::"},
           {R"({"op":"a:: "})", "marker |a:: "},
           {"ncclAllReduce", "op nccl|ncclAllReduce"},
           {"nccl:all_reduce", "op nccl|all_reduce"},
           {"nccl:send 0->1, op_id = 7", "op nccl|send 0->1"},
           {"layer:encoder.0", "layer encoder.0"},
           {"layer:", "layer "},
           {"{'traceMarker': ['train.py:12', 'model.py:7']}", "trace  at train.py:12,model.py:7"},
           {"{'mod': 'Linear', 'strRepr': \"Linear(in='a')\"}", "module Linear"}}) {
    EXPECT_EQ(Describe(text), says) << text;
  }
  const std::string deep(100000, '[');
  std::vector<std::string> others = absl::StrSplit(
      R"(|forward|iteration 17|Optimizer.step#SGD.step|nccl|nccl_ring|::a|MulBackward|{'mod': |{}|{"op":7}|)"
      R"({"op":"a"} x| {"op":"a"}|{"op":"a","seq":1x}|[[[[|a, seq = x|a, seq = 1 and more|a, sizes = [[1]|)"
      R"(a, sizes = [[1e999]]|a, sizes = , seq = 3|, seq = |a, seq = 12345678901234567890|)"
      "a, op_id = 12345678901234567890",
      '|');
  others.push_back("{\"op\":" + deep);
  others.push_back("a, sizes = " + deep + "1" + std::string(100000, ']'));
  for (const std::string& text : others) EXPECT_EQ(Describe(text), "other " + text);
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
