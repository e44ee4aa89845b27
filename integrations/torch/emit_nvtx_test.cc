#include "ott/integrations/torch/emit_nvtx.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/profiler/util.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/events/recorded_window.h"
#include "ott/core/nvtx/nvtx_injection_for_test.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/op_log.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/core/trace/profiler.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> Labels(const std::vector<NvtxEvent>& events) {
  std::vector<std::string> labels;
  for (const NvtxEvent& event : events) {
    if (event.kind == NvtxEvent::Kind::kPush) labels.push_back(event.name);
  }
  return labels;
}

// On a thread of its own, whose sequence numbers begin at 0.
template <typename F>
void OnNewThread(const F& f) {
  std::thread(f).join();
}

class EmitNvtxTest : public testing::Test {
 protected:
  void SetUp() override {
    at::set_num_threads(1);
    Take();
  }

  static std::unique_ptr<EmitNvtx> Start(bool record_shapes, bool record_json) {
    EmitNvtx::Options options;
    options.record_shapes = record_shapes;
    options.record_json = record_json;
    return EmitNvtx::Start(options).value();
  }
};

TEST_F(EmitNvtxTest, ForwardBackwardAndDoubleBackwardAreThoseOfPyTorchsProfiler) {
  const std::string file = testing::TempDir() + "/emit_nvtx_labels";
  const std::string command = "python3 integrations/torch/emit_nvtx_for_test.py '" + file + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command << " (it needs python3-torch and python3-numpy)";

  at::manual_seed(1);
  const at::Tensor x = at::randn({2, 3, 8, 8});
  const at::Tensor kernel = at::randn({4, 3, 3, 3}).requires_grad_();
  const at::Tensor weight = at::randn({5, 4}).requires_grad_();
  const at::Tensor bias = at::zeros({5}).requires_grad_();
  const at::Tensor one = at::ones({});
  OnNewThread([&] {
    const auto emit_nvtx = Start(true, false);
    const at::Tensor features = at::relu(at::conv2d(x, kernel, {}, {2, 2}, {1, 1})).mean({2, 3});
    const at::Tensor normalized = at::layer_norm(features, {4});
    const at::Tensor hidden = at::linear(normalized, weight, bias);
    const at::Tensor loss = at::log_softmax(hidden, 1).pow(2).sum();
    const auto grads =
        torch::autograd::grad({loss}, {weight, bias}, {one}, /*retain_graph=*/{}, /*create_graph=*/true);
    const at::Tensor penalty = grads[0].pow(2).sum() + loss;
    penalty.backward(one);
  });
  EXPECT_EQ(absl::StrJoin(Labels(Take()), "\n") + "\n", ReadFile(file).value());
}

// PyTorch's own texts of sizes, for the arguments that its profiler leaves out.
std::vector<std::string>& pytorchs_labels() {
  static auto& labels = *new std::vector<std::string>;
  return labels;
}

TEST_F(EmitNvtxTest, SizesOfListsAndOfMissingTensorsAreThoseOfPyTorch) {
  const auto observe = [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
    const std::string sizes =
        torch::profiler::impl::shapesToStr(torch::profiler::impl::inputSizes(function, true));
    pytorchs_labels().push_back(absl::StrCat(function.name(), ", sizes = ", sizes));
    return nullptr;
  };
  const at::Tensor x = at::ones({2, 3});
  const at::Tensor rows = at::zeros({2}, at::kLong);
  const auto emit_nvtx = Start(true, false);
  const at::NoGradGuard no_sequence_numbers;
  const at::CallbackHandle observer =
      at::addGlobalCallback(at::RecordFunctionCallback(observe).needsInputs(true));
  at::cat({x, x, at::ones({1, 3})});
  at::stack({x});
  at::index(x, {c10::nullopt, rows});
  at::linear(x, at::ones({4, 3}));
  at::empty({0, 3}).sum();
  {
    RECORD_USER_SCOPE_WITH_INPUTS("undefined",
                                  (std::vector<c10::IValue>{std::vector<at::Tensor>{x, {}}, at::Tensor()}));
  }
  at::removeCallback(observer);
  const std::vector<std::string> labels = Labels(Take());
  EXPECT_EQ(labels, pytorchs_labels());
  EXPECT_THAT(labels, Contains("aten::cat, sizes = [[2, 3], [2, 3], [1, 3], []]"));
}

TEST_F(EmitNvtxTest, NodesOfTheBackwardPassShowTheNumberOfTheirOperation) {
  OnNewThread([] {
    const at::Tensor weight = at::ones({2, 3}).requires_grad_();
    const auto emit_nvtx = Start(false, false);
    at::mm(at::ones({4, 2}), weight).exp().sum().backward();
  });
  const std::vector<std::string> labels = Labels(Take());
  for (const char* const label : {"aten::mm, seq = 0", "aten::exp, seq = 1", "ExpBackward0, seq = 1",
                                  "MmBackward0, seq = 0", "aten::mul"})
    EXPECT_THAT(labels, Contains(label));
}

TEST_F(EmitNvtxTest, EveryThreadEmitsBalancedRangesOfItsOwn) {
  {
    const auto emit_nvtx = Start(true, true);
    std::vector<std::thread> threads;
    for (int i = 1; i <= 4; ++i) {
      threads.emplace_back([i] {
        const at::Tensor weight = at::ones({i, i}).requires_grad_();
        for (int step = 0; step < 20; ++step) at::mm(weight, weight).sum().backward();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::map<int, int> depths;
  std::map<int, std::vector<std::string>> products;
  for (const NvtxEvent& event : Take()) {
    depths[event.thread] += event.kind == NvtxEvent::Kind::kPush ? 1 : -1;
    EXPECT_GE(depths[event.thread], 0);
    if (absl::StartsWith(event.name, "aten::mm, seq")) products[event.thread].push_back(event.name);
  }
  EXPECT_EQ(depths.size(), 4u);
  for (const auto& [thread, depth] : depths) EXPECT_EQ(depth, 0);
  for (const auto& [thread, labels] : products) {
    EXPECT_EQ(labels.size(), 20u);
    EXPECT_THAT(labels[0], StartsWith("aten::mm, seq = 0, sizes = [["));
  }
}

TEST_F(EmitNvtxTest, OperationsThatRunAtStartOrEndStayBalanced) {
  auto before = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  if (before->isActive()) before->before("before");
  auto emit_nvtx = Start(true, true);
  before.reset();
  auto within = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  within->before("within");
  emit_nvtx.reset();
  at::ones({2});
  within.reset();
  EXPECT_THAT(Received(), ElementsAre("push within", "pop"));
}

TEST_F(EmitNvtxTest, AsynchronousOperationsAreRangesOfTheProcess) {
  const auto emit_nvtx = Start(true, true);
  auto collective = std::make_unique<at::RecordFunction>(at::RecordScope::USER_SCOPE);
  collective->_setAsync();
  const std::vector<c10::IValue> inputs = {at::Tensor()};
  collective->before("nccl:all_reduce", &inputs);
  OnNewThread([&] { collective.reset(); });
  EXPECT_THAT(Received(), ElementsAre("start nccl:all_reduce, sizes = [[]] 1", "end 1"));
}

TEST_F(EmitNvtxTest, JsonNamesTheArgumentsWithinTheLabel) {
  OnNewThread([] {
    const at::Tensor x = at::ones({1, 2, 4, 4}, at::kDouble);
    const at::Tensor kernel = at::ones({3, 2, 3, 3}, at::kDouble).requires_grad_();
    const auto emit_nvtx = Start(true, true);
    at::conv2d(x, kernel, {}, {1, 1}, {1, 2}, {1, 1});
  });
  const std::vector<NvtxEvent> events = Take();
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[0].name,
            "aten::conv2d, seq = 0, sizes = [[1, 2, 4, 4], [3, 2, 3, 3], [], [], [], [], []]");
  EXPECT_EQ(
      events[1].name,
      R"({"op":"aten::conv2d","args":[)"
      R"({"name":"input","dtype":"float64","shape":[1,2,4,4],"strides":[32,16,4,1],"device":"cpu"},)"
      R"({"name":"weight","dtype":"float64","shape":[3,2,3,3],"strides":[18,9,3,1],"device":"cpu"},)"
      R"({"name":"bias","value":null},{"name":"stride","value":[1,1]},{"name":"padding","value":[1,2]},)"
      R"({"name":"dilation","value":[1,1]},{"name":"groups","value":1}],"direction":"forward","seq":0})");
}

TEST_F(EmitNvtxTest, JsonKnowsWhatBelongsToTheBackwardPass) {
  OnNewThread([] {
    const at::Tensor weight = at::ones({2, 2}, at::kBFloat16).requires_grad_();
    const auto emit_nvtx = Start(false, true);
    const at::Tensor loss = at::mm(weight, weight).sum();
    OnNewThread([&] { loss.backward(); });
  });
  const std::vector<NvtxEvent> events = Take();
  int forward_thread = 0;
  for (const NvtxEvent& event : events) {
    if (event.name == "aten::sum, seq = 1") forward_thread = event.thread;
  }
  const std::vector<std::string> labels = Labels(events);
  EXPECT_THAT(labels,
              Contains(R"({"op":"MmBackward0","args":[{"dtype":"bfloat16","shape":[2,2],"strides":[0,0],)"
                       R"("device":"cpu"}],"direction":"backward","seq":0,"forward_thread":)" +
                       absl::StrCat(forward_thread, "}")));
  const auto node = std::find(labels.begin(), labels.end(), "MmBackward0, seq = 0");
  const auto product = std::find(node, labels.end(), "aten::mm");
  ASSERT_NE(product, labels.end());
  EXPECT_THAT(product[1], HasSubstr(R"("direction":"backward")"));
  EXPECT_THAT(*std::find(labels.begin(), node, "aten::mm, seq = 0") + labels[1], Not(HasSubstr("backward")));
}

TEST_F(EmitNvtxTest, JsonHasTheLineAndTheModulesOfTorchScript) {
  torch::jit::Module inner("Inner");
  inner.define("def forward(self, x):\n  return torch.relu(x)\n");
  torch::jit::Module net("Net");
  net.register_module("encoder", inner);
  net.define("def forward(self, x):\n  y = torch.neg(x)\n  return self.encoder.forward(y)\n");
  const auto emit_nvtx = Start(false, true);
  net.forward({at::ones({2})});
  const std::vector<std::string> labels = Labels(Take());
  EXPECT_THAT(labels, Contains(AllOf(HasSubstr(R"("op":"aten::relu","module":"encoder")"),
                                     ContainsRegex(R"("source":"[^"]+:2")"))));
  EXPECT_THAT(labels, Contains(AllOf(HasSubstr(R"("op":"aten::neg")"), Not(HasSubstr("module")))));
}

TEST_F(EmitNvtxTest, JsonHasTheOpenLayersInEagerMode) {
  ASSERT_TRUE(OpRanges::Get().Enable({}).ok());
  {
    const auto emit_nvtx = Start(false, true);
    const LayerRange layer("encoder");
    const LayerRange inner("0");
    at::relu(at::ones({2}));
  }
  OpRanges::Get().Disable();
  EXPECT_THAT(Labels(Take()), Contains(HasSubstr(R"({"op":"aten::relu","module":"encoder.0",)")));
}

TEST_F(EmitNvtxTest, ListsOfTensorsAreSeveralArgumentsInJson) {
  const at::Tensor x = at::ones({2});
  const auto emit_nvtx = Start(true, true);
  const at::NoGradGuard no_sequence_numbers;
  at::cat({x, x.to_sparse().to_dense()});
  EXPECT_THAT(Labels(Take()),
              Contains(R"({"op":"aten::cat","args":[)"
                       R"({"name":"tensors","dtype":"float32","shape":[2],"strides":[1],"device":"cpu"},)"
                       R"({"name":"tensors","dtype":"float32","shape":[2],"strides":[1],"device":"cpu"},)"
                       R"({"name":"dim","value":0}],"direction":"forward"})"));
}

TEST_F(EmitNvtxTest, ProfilersRecordOperationsWithArrowsFromForwardToBackward) {
  std::vector<std::string> mm, mm_backward;
  Profiler::Options options;
  options.schedule.active = 1;
  options.schedule.repeat = 1;
  options.on_window = [&](const Profiler::Window& window) {
    RecordedWindow(window.recorder).Visit([&](const TraceEvent& event) {
      const std::string arrow = absl::StrCat(static_cast<int>(event.flow), " ", event.flow_id);
      if (event.name == "aten::mm, seq = 0, sizes = [[2, 2], [2, 2]]") mm.push_back(arrow);
      if (event.name == "MmBackward0, seq = 0, sizes = [[2, 2]]") {
        mm_backward.push_back(arrow);
        EXPECT_THAT(std::string(event.args), HasSubstr(R"("op":"MmBackward0")"));
      }
    });
    return absl::OkStatus();
  };
  const auto emit_nvtx = Start(true, true);
  ASSERT_TRUE(Profiler::Get().Enable(options).ok());
  OnNewThread([&] {
    const at::Tensor weight = at::ones({2, 2}).requires_grad_();
    const at::Tensor loss = at::mm(weight, weight).sum();
    OnNewThread([&] { loss.backward(); });
  });
  ASSERT_TRUE(Profiler::Get().Step().ok());
  ASSERT_EQ(mm.size(), 1u);
  ASSERT_EQ(mm_backward.size(), 1u);
  EXPECT_EQ(mm[0].substr(0, 2), absl::StrCat(static_cast<int>(TraceEvent::Flow::kStart), " "));
  EXPECT_EQ(mm_backward[0].substr(0, 2), absl::StrCat(static_cast<int>(TraceEvent::Flow::kFinish), " "));
  EXPECT_EQ(mm[0].substr(2), mm_backward[0].substr(2));
}

TEST_F(EmitNvtxTest, OperationsAreLoggedWithWhatTheyReadAndWrote) {
  const std::string path = testing::TempDir() + "emit_nvtx_op_log.bin";
  std::remove(path.c_str());
  OpLog::Options log_options;
  log_options.path = path;
  const auto log = OpLog::Create(log_options).value();
  ASSERT_TRUE(log->BeginIteration(0).ok());
  const at::Tensor a = at::full({2, 3}, 2.0f);
  const at::Tensor b = at::full({3, 4}, 3.0f).requires_grad_();
  {
    OpRanges::Get().TellObserver(log.get());
    EmitNvtx::Options options;
    options.log_operations = true;
    const auto emit_nvtx = EmitNvtx::Start(options).value();
    at::mm(a, b).sum().backward();
    OpRanges::Get().TellObserver(nullptr);
  }
  ASSERT_TRUE(log->Finish().ok());
  const auto read = ReadOpLog(path).value();
  std::set<bool> directions;
  for (const LoggedOp& op : read.ops) {
    if (op.definition().name != "aten::mm") continue;
    ASSERT_EQ(op.num_tensors(), 3);
    EXPECT_EQ(op.definition().tensors[0].name, "self");
    EXPECT_TRUE(op.definition().tensors[2].is_output);
    EXPECT_TRUE(op.definition().is_backward || op.max_abs(2) == 18);
    directions.insert(op.definition().is_backward);
  }
  EXPECT_THAT(directions, ElementsAre(false, true));
}

TEST_F(EmitNvtxTest, OnlyOneLivesAtATime) {
  auto first = Start(true, false);
  const auto second = EmitNvtx::Start();
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  first.reset();
  Take();
  at::ones({2});
  EXPECT_THAT(Received(), IsEmpty());
  EXPECT_NE(Start(true, false), nullptr);
}

}  // namespace
}  // namespace ott
