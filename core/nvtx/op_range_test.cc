#include "ott/core/nvtx/op_range.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/events/recorded_window.h"
#include "ott/core/events/trace_event.h"
#include "ott/core/nvtx/nvtx_injection_for_test.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Op = OpRange::Op;

class OpRangeTest : public ::testing::Test {
 protected:
  void SetUp() override { Take(); }

  void Enable(const OpRanges::Options& options) { ASSERT_EQ(ranges_.Enable(options), absl::OkStatus()); }

  void EnableLabels() {
    OpRanges::Options options;
    options.record_json = false;
    Enable(options);
  }

  Op In(const Op& op) { return op.In(ranges_); }

  OpRanges ranges_;
  float data_[4] = {};
  const TensorView input_{data_, {2, 1}};
  const TensorView weight_{data_, {3, 1}};
};

TEST_F(OpRangeTest, SendsNothingUntilEnabledAndNodesOfThatTimeHaveNoNumber) {
  OpStash stash;
  {
    OpRange op(In("linear"), {input_, weight_});
    const LayerRange layer(ranges_, "encoder");
    stash = op.Stash();
  }
  EXPECT_LT(stash.seq, 0);
  EXPECT_THAT(Received(), IsEmpty());
  EnableLabels();
  { OpRange op(In(OpRange::Backward("LinearBackward0", stash))); }
  EXPECT_THAT(Received(), ElementsAre("push LinearBackward0", "pop"));
}

TEST_F(OpRangeTest, RangesMayBeSwitchedOffAndOnAgain) {
  ranges_.Disable();
  EnableLabels();
  { const OpRange seen(In("seen")); }
  ranges_.Disable();
  EXPECT_FALSE(ranges_.enabled());
  { const OpRange unseen(In("unseen")); }
  EXPECT_THAT(Received(), ElementsAre("push seen, seq = 0", "pop"));
  OpRanges::Options options;
  options.record_source = false;
  Enable(options);
  {
    const LayerRange layer(ranges_, "encoder");
    const LayerRange inner(ranges_, "0");
    EXPECT_EQ(ranges_.module_path(), "encoder.0");
    const OpRange op(In("linear"), {input_});
  }
  EXPECT_EQ(ranges_.module_path(), "");
  EXPECT_THAT(Received(), Contains(HasSubstr(R"({"op":"linear","module":"encoder.0")")));
}

TEST_F(OpRangeTest, ALabelAndJsonSurroundTheOperation) {
  Enable({});
  {
    const LayerRange encoder(ranges_, "encoder");
    const LayerRange first(ranges_, "0");
    OpRange op(In("linear"), {{"input", input_}, weight_, nullptr}, {{"groups", 1}}, {"train.cc", 42});
  }
  EXPECT_THAT(
      Received(),
      ElementsAre("push layer:encoder", "push layer:0", "push linear, seq = 0, sizes = [[2, 1], [3, 1], []]",
                  R"(push {"op":"linear","module":"encoder.0","args":[)"
                  R"({"name":"input","dtype":"float32","shape":[2,1],"strides":[1,1],"device":"cpu"},)"
                  R"({"dtype":"float32","shape":[3,1],"strides":[1,1],"device":"cpu"},{"value":null}],)"
                  R"("attributes":{"groups":1},"direction":"forward","seq":0,"source":"train.cc:42"})",
                  "pop", "pop", "pop", "pop"));
}

TEST_F(OpRangeTest, TheSourceIsTheLineOfTheRange) {
  OpRanges::Options options;
  Enable(options);
  const int line = __LINE__ + 1;
  { OpRange op(In("relu"), {input_}); }
  { OTT_OP_RANGE(op, In("relu"), {input_}); }
  const std::vector<std::string> received = Received();
  ASSERT_EQ(received.size(), 8);
  EXPECT_THAT(received[1], HasSubstr("op_range_test.cc:" + std::to_string(line) + "\"}"));
  EXPECT_THAT(received[5], HasSubstr("op_range_test.cc:" + std::to_string(line + 1) + "\"}"));
}

TEST_F(OpRangeTest, LayersEndWithTheirBlock) {
  OpRanges::Options options;
  options.record_source = false;
  Enable(options);
  {
    const LayerRange encoder(ranges_, "encoder");
    { const LayerRange attention(ranges_, "attention"); }
    OpRange op(In("relu"));
  }
  OpRange op(In("relu"));
  EXPECT_THAT(Received(),
              ElementsAre("push layer:encoder", "push layer:attention", "pop", "push relu, seq = 0",
                          R"(push {"op":"relu","module":"encoder","args":[],"direction":"forward","seq":0})",
                          "pop", "pop", "pop", "push relu, seq = 0",
                          R"(push {"op":"relu","args":[],"direction":"forward","seq":0})"));
}

// y = (x * w) * w by hand, as an autograd engine would run it.
class Graph {
 public:
  struct Node {
    const char* name;
    OpStash stash;
  };

  explicit Graph(OpRanges& ranges) : ranges_(ranges) {}

  Node Mul(const TensorView& a, const TensorView& b) {
    OpRange op(Op("mul").In(ranges_), {a, b});
    return {"MulBackward0", op.Stash()};
  }

  // The gradient of a product, one multiplication; its node where a graph of the backward pass is wanted.
  std::vector<Node> Run(const Node& node, const TensorView& grad, bool create_graph) {
    OpRange op(OpRange::Backward(node.name, node.stash, create_graph).In(ranges_), {grad});
    if (create_graph) return {Mul(grad, grad)};
    OpRange mul(Op("mul").In(ranges_), {grad, grad});
    return {};
  }

 private:
  OpRanges& ranges_;
};

TEST_F(OpRangeTest, ABackwardPassThatCreatesAGraphHasNumbersOfItsOwn) {
  EnableLabels();
  Graph graph(ranges_);
  const Graph::Node first = graph.Mul(input_, weight_);
  const Graph::Node second = graph.Mul(input_, weight_);
  const std::vector<Graph::Node> of_second = graph.Run(second, input_, true);
  const std::vector<Graph::Node> of_first = graph.Run(first, input_, true);
  graph.Run(of_first[0], weight_, false);
  graph.Run(of_second[0], weight_, false);
  EXPECT_THAT(Received(), ElementsAre("push mul, seq = 0, sizes = [[2, 1], [3, 1]]", "pop",         //
                                      "push mul, seq = 1, sizes = [[2, 1], [3, 1]]", "pop",         //
                                      "push MulBackward0, seq = 1, sizes = [[2, 1]]",               //
                                      "push mul, seq = 2, sizes = [[2, 1], [2, 1]]", "pop", "pop",  //
                                      "push MulBackward0, seq = 0, sizes = [[2, 1]]",               //
                                      "push mul, seq = 3, sizes = [[2, 1], [2, 1]]", "pop", "pop",  //
                                      "push MulBackward0, seq = 3, sizes = [[3, 1]]",               //
                                      "push mul, seq = 0, sizes = [[3, 1], [3, 1]]", "pop", "pop",  //
                                      "push MulBackward0, seq = 2, sizes = [[3, 1]]",               //
                                      "push mul, seq = 0, sizes = [[3, 1], [3, 1]]", "pop", "pop"));
  EXPECT_EQ(ranges_.num_misuses(), 0);
}

TEST_F(OpRangeTest, JsonTellsTheDirectionAndWhoCountedAndNothingThatIsNotAskedFor) {
  OpRanges::Options options;
  options.record_shapes = options.record_dtypes = options.record_layouts = false;
  options.record_module = options.record_source = false;
  Enable(options);
  OpStash stash;
  std::thread([&] {
    OpRange op(In("mul"));
    stash = op.Stash();
  }).join();
  Received();
  {
    const LayerRange layer(ranges_, "a\nb");
    OpRange op(In(OpRange::Backward("MulBackward0", stash)), {input_});
    OpRange inner(In("mul"));
  }
  EXPECT_THAT(
      Received(),
      ElementsAre(
          "push layer:a\\nb", "push MulBackward0, seq = 0",
          R"(push {"op":"MulBackward0","args":[{}],"direction":"backward","seq":0,"forward_thread":)" +
              std::to_string(stash.thread) + "}",
          "push mul, seq = 0", R"(push {"op":"mul","args":[],"direction":"backward"})", "pop", "pop", "pop",
          "pop", "pop"));
}

TEST_F(OpRangeTest, EveryThreadCountsForItself) {
  EnableLabels();
  Graph graph(ranges_);
  EXPECT_EQ(graph.Mul(input_, input_).stash.seq, 0);
  OpStash of_other[2];
  for (OpStash& stash : of_other) {
    std::thread([&] { stash = graph.Mul(input_, input_).stash; }).join();
  }
  EXPECT_EQ(of_other[0].seq, 0);
  EXPECT_EQ(of_other[1].seq, 0);
  const OpStash mine = graph.Mul(input_, input_).stash;
  EXPECT_EQ(mine.seq, 1);
  EXPECT_EQ(mine.thread, internal::ThisThreadId());
  EXPECT_NE(mine.thread, of_other[0].thread);
}

TEST_F(OpRangeTest, ANodeWithoutAPlaceInTheGraphIsReported) {
  EnableLabels();
  OpRange backward(In(OpRange::Backward("MulBackward0", {5, 1})));
  OpRange op(In("mul"));
  ::testing::internal::CaptureStderr();
  EXPECT_LT(op.Stash().seq, 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("Stash\\(\\) on thread [0-9]+ of \"mul\", begun at .*op_range_test.cc:[0-9]+, "
                            "which is part of a backward pass that creates no graph"));
  EXPECT_EQ(ranges_.num_misuses(), 1);
}

TEST_F(OpRangeTest, RangesThatEndInAnotherOrderAreNamedAndAllPoppedAndLeaveNoPathBehind) {
  OpRanges::Options options;
  options.record_source = false;
  Enable(options);
  auto outer = std::make_unique<OpRange>(In("outer"));
  auto layer = std::make_unique<LayerRange>(ranges_, "encoder");
  auto inner = std::make_unique<OpRange>(In("inner"));
  Received();
  ::testing::internal::CaptureStderr();
  outer.reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("\"outer\", begun at .*:[0-9]+, ends on thread [0-9]+ before what is inside of "
                            "it:\n  \"inner\", begun at .*:[0-9]+\n.*encoder"));
  layer.reset();
  inner.reset();
  EXPECT_EQ(ranges_.num_misuses(), 2);
  EXPECT_THAT(Received(), ElementsAre("pop", "pop", "pop", "pop", "pop"));
  { OpRange op(In("relu")); }
  EXPECT_THAT(Received(), Contains(R"(push {"op":"relu","args":[],"direction":"forward","seq":0})"));
}

TEST_F(OpRangeTest, ARangeThatEndsOnAnotherThreadIsReportedAndNotPoppedThere) {
  EnableLabels();
  auto op = std::make_unique<OpRange>(In("mine"));
  ::testing::internal::CaptureStderr();
  std::thread([&] { op.reset(); }).join();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("a range ends on thread [0-9]+, but began on another"));
  EXPECT_EQ(ranges_.num_misuses(), 1);
  EXPECT_THAT(Received(), ElementsAre("push mine, seq = 0"));
}

TEST_F(OpRangeTest, RangesLeftOpenAtThreadExitAreNamedAndTheNextThreadStartsAnew) {
  EnableLabels();
  ::testing::internal::CaptureStderr();
  std::unique_ptr<OpRange> left;
  std::thread([&] { left = std::make_unique<OpRange>(In("left")); }).join();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("thread [0-9]+ ends with open ranges, innermost first:\n"
                            "  \"left\", begun at .*:[0-9]+"));
  EXPECT_EQ(ranges_.num_misuses(), 1);
  ::testing::internal::CaptureStderr();
  std::thread([&] {
    OpRange op(In("next"));
    left.reset();
  }).join();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("but began on another"));
  EXPECT_THAT(Received(), ElementsAre("push left, seq = 0", "push next, seq = 0", "pop"));
}

// "NAME ARGS" of each range, after the arrow that begins or ends there.
std::vector<std::string> Recorded(const EventRecorder& recorder) {
  std::vector<std::string> result;
  RecordedWindow(recorder).Visit([&](const TraceEvent& event) {
    static constexpr const char* kArrows[] = {"", "from ", "to "};
    std::string range = kArrows[static_cast<int>(event.flow)];
    if (event.flow != TraceEvent::Flow::kNone) range += std::to_string(event.flow_id) + ": ";
    result.push_back(range.append(event.name).append(" ").append(event.args));
  });
  return result;
}

TEST_F(OpRangeTest, AProfilersWindowGetsRangesWithTheirArrowsAlsoWhileOff) {
  EventRecorder recorder(Clock::Steady());
  recorder.Open();
  { OpRange op(In("before")); }
  ranges_.RecordInto(&recorder);
  EXPECT_FALSE(ranges_.enabled());
  EXPECT_EQ(ranges_.Enable({}).code(), absl::StatusCode::kFailedPrecondition);
  OpStash stash;
  {
    const LayerRange layer(ranges_, "encoder");
    OpRange op(In("mul"), {1}, {{"groups", 1}}, {"train.cc", 42});
    stash = op.Stash();
  }
  { OpRange backward(In(OpRange::Backward("MulBackward0", stash)), {"train.cc", 43}); }
  ranges_.RecordInto(nullptr);
  { OpRange op(In("after")); }
  recorder.Close();
  const std::string flow = std::to_string(FlowId(stash.thread, 0));
  EXPECT_THAT(
      Recorded(recorder),
      ElementsAre("layer:encoder ",
                  "from " + flow +
                      R"(: mul, seq = 0, sizes = [[]] {"op":"mul","module":"encoder","args":[{"value":1}],)"
                      R"("attributes":{"groups":1},"direction":"forward","seq":0,"source":"train.cc:42"})",
                  "to " + flow + R"(: MulBackward0, seq = 0 {"op":"MulBackward0","args":[],)" +
                      R"("direction":"backward","seq":0,"forward_thread":)" + std::to_string(stash.thread) +
                      R"(,"source":"train.cc:43"})"));
  EXPECT_THAT(Received(), IsEmpty());
  Enable({});
}

TEST_F(OpRangeTest, WindowsOpenAndCloseWhileThreadsAreInsideOfRanges) {
  EventRecorder recorder(Clock::Steady());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const LayerRange layer(ranges_, "encoder");
        OpRange op(In("mul"), {input_});
        op.Stash();
      }
    });
  }
  for (int window = 0; window < 100; ++window) {
    recorder.Open();
    ranges_.RecordInto(&recorder);
    { OpRange op(In("mine")); }
    ranges_.RecordInto(nullptr);
    recorder.Close();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ranges_.num_misuses(), 0);
  EXPECT_THAT(Received(), IsEmpty());
}

// Notes what it is told.
class NotingObserver : public OpObserver {
 public:
  NotingObserver(std::string name, std::vector<std::string>& notes) : name_(std::move(name)), notes_(notes) {}

  void* Begin(const ObservedOp& op) override {
    EXPECT_EQ(op.thread, internal::ThisThreadId());
    notes_.push_back(absl::StrCat(name_, " begin ", std::string(op.name), ", role ",
                                  static_cast<int>(op.role), ", in ", std::string(op.module), " of ",
                                  std::string(op.phase), op.is_backward ? " backward" : "", ", seq ", op.seq,
                                  ", ", op.args.size(), " inputs, ", op.attributes.size(), " attributes, ",
                                  op.source.file, ":", op.source.line));
    return this;
  }
  void AddOutputs(void* op, absl::Span<const OpArg> outputs) override {
    EXPECT_EQ(op, this);
    notes_.push_back(name_ + " outputs " + std::to_string(outputs.size()));
  }
  void End(void* op) override {
    EXPECT_EQ(op, this);
    notes_.push_back(name_ + " end");
  }

 private:
  const std::string name_;
  std::vector<std::string>& notes_;
};

TEST_F(OpRangeTest, TheObserverOfTheOptionsIsToldLastOfABeginAndFirstOfAnEnd) {
  std::vector<std::string> notes;
  NotingObserver outer("outer", notes);
  NotingObserver inner("inner", notes);
  OpRanges::Options options;
  options.observer = &inner;
  Enable(options);
  ranges_.TellObserver(&outer);
  OpStash stash;
  {
    const PhaseRange step(ranges_, "step"), forward(ranges_, "forward");
    const LayerRange layer(ranges_, "encoder");
    OpRange op(In(OpRange::Update("linear")), {input_}, {{"groups", 1}, {"axis", 2}}, {"train.cc", 42});
    op.Outputs(weight_);
    stash = op.Stash();
  }
  const std::string linear =
      " begin linear, role 1, in encoder of forward, seq 0, 1 inputs, 2 attributes, train.cc:42";
  EXPECT_THAT(notes, ElementsAre("outer" + linear, "inner" + linear, "outer outputs 1", "inner outputs 1",
                                 "inner end", "outer end"));
  EXPECT_EQ(ranges_.num_misuses(), 0);
  { OpRange backward(In(OpRange::Backward("LinearBackward0", stash)), {"train.cc", 43}); }
  EXPECT_EQ(
      notes[6],
      "outer begin LinearBackward0, role 0, in  of  backward, seq 0, 0 inputs, 0 attributes, train.cc:43");
  // Ranges that are off have no options.
  notes.clear();
  ranges_.Disable();
  { const OpRange op(In("relu")); }
  EXPECT_THAT(notes, ElementsAre(HasSubstr("outer begin relu"), "outer end"));
  ranges_.TellObserver(nullptr);
}

TEST_F(OpRangeTest, MisuseAbortsWhereAskedTo) {
  OpRanges::Options options;
  options.on_misuse = OnMisuse::kAbort;
  Enable(options);
  EXPECT_DEATH(
      {
        auto outer = std::make_unique<OpRange>(In("outer"));
        OpRange inner(In("inner"));
        outer.reset();
      },
      "op ranges: \"outer\"");
}

TEST_F(OpRangeTest, EnablingTwiceIsRefusedNamingBothPlaces) {
  Enable({});
  const absl::Status status = ranges_.Enable({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ContainsRegex("op_range_test.cc:[0-9]+.*op_range_test.cc:[0-9]+"));
}

TEST_F(OpRangeTest, OptionsComeFromTheConfiguration) {
  using Config = OpRangeConfig;
  using Options = OpRanges::Options;
  const std::pair<void (Config::*)(bool), bool Options::*> fields[] = {
      {&Config::set_record_shapes, &Options::record_shapes},
      {&Config::set_record_dtypes, &Options::record_dtypes},
      {&Config::set_record_layouts, &Options::record_layouts},
      {&Config::set_record_module, &Options::record_module},
      {&Config::set_record_source, &Options::record_source},
      {&Config::set_record_json, &Options::record_json}};
  for (const auto& [set, field] : fields) {
    Config config;
    (config.*set)(false);
    const Options options = OpRanges::FromConfig(config);
    for (const auto& [other_set, other] : fields) EXPECT_EQ(options.*other, other != field);
    EXPECT_EQ(options.on_misuse, OnMisuse::kLogAndCount);
    config.set_on_misuse(MISUSE_POLICY_ABORT);
    EXPECT_EQ(OpRanges::FromConfig(config).on_misuse, OnMisuse::kAbort);
  }
}

TEST_F(OpRangeTest, ArgumentsOfTheMacroAreEvaluatedOnlyWhileOn) {
  int evaluated = 0;
  const auto view = [&] {
    ++evaluated;
    return TensorView(data_, {4});
  };
  { OTT_OP_RANGE(op, In("relu"), {view()}); }
  EXPECT_EQ(evaluated, 0);
  EnableLabels();
  {
    OTT_OP_RANGE(op, In("relu"), {{"input", view()}}, {{"inplace", true}});
    EXPECT_EQ(op.Stash().seq, 0);
  }
  EXPECT_EQ(evaluated, 1);
  { OTT_OP_RANGE(op, In("randn")); }
  EXPECT_THAT(Received(),
              ElementsAre("push relu, seq = 0, sizes = [[4]]", "pop", "push randn, seq = 1", "pop"));
}

TEST_F(OpRangeTest, OfThisProcessAreReachedThroughTheMacros) {
  OpRanges::Options options;
  options.record_json = false;
  ASSERT_TRUE(OpRanges::Get().Enable(options).ok());
  {
    OTT_LAYER("decoder");
    OTT_LAYER("mlp");
    OTT_OP_RANGE(op, "relu", {input_});
  }
  EXPECT_THAT(Received(), ElementsAre("push layer:decoder", "push layer:mlp",
                                      "push relu, seq = 0, sizes = [[2, 1]]", "pop", "pop", "pop"));
}

}  // namespace
}  // namespace ott
