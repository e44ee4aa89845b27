#include "ott/core/nvtx/op_text.h"

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott::internal {
namespace {

std::string Label(std::string_view name, int64_t seq, const std::vector<OpArg>& args,
                  const OpRecord& record = {}) {
  TextBuffer text;
  FormatOpLabel(name, seq, args, record, text);
  EXPECT_EQ(text.c_str(), std::string(text.view()));
  return text.c_str();
}

std::string Json(const LabelledOp& op, const OpRecord& record = {}) {
  TextBuffer text;
  FormatOpJson(op, record, text);
  return text.c_str();
}

std::string JsonOfArgs(const std::vector<OpArg>& args, const OpRecord& record = {}) {
  LabelledOp op;
  op.name = "op";
  op.args = args;
  std::string json = Json(op, record);
  const std::string prefix = R"({"op":"op","args":)";
  const std::string suffix = R"(,"direction":"forward"})";
  EXPECT_EQ(json.substr(0, prefix.size()), prefix);
  return json.substr(prefix.size(), json.size() - prefix.size() - suffix.size());
}

std::string JsonOfName(std::string_view name) {
  LabelledOp op;
  op.name = name;
  std::string json = Json(op);
  return json.substr(6, json.find(",\"args\":[],") - 6);
}

TensorView Tensor(const std::vector<int64_t>& shape, DType dtype = DType::kFloat32, Device device = {}) {
  static char data;
  return TensorView(&data, dtype, shape, device);
}

TEST(OpText, LabelsAreThoseOfPyTorchInOneLine) {
  const TensorView input = Tensor({32, 128}), weight = Tensor({64, 128}), none = Tensor({2, 0});
  EXPECT_EQ(Label("linear", 12, {input, weight, nullptr}),
            "linear, seq = 12, sizes = [[32, 128], [64, 128], []]");
  EXPECT_EQ(Label("relu", 0, {input}), "relu, seq = 0, sizes = [[32, 128]]");
  EXPECT_EQ(Label("aten::zeros", -1, {}), "aten::zeros");
  EXPECT_EQ(Label("MulBackward0", 3, {}), "MulBackward0, seq = 3");
  EXPECT_EQ(Label("relu", -1, {input}), "relu, sizes = [[32, 128]]");
  // An argument that is no tensor keeps its place.
  EXPECT_EQ(Label("op", 1, {1, {"named", none}, 0.5, "text", {1, 2}, true, Tensor({})}),
            "op, seq = 1, sizes = [[], [2, 0], [], [], [], [], []]");
  EXPECT_EQ(Label("relu", 7, {input}, {/*shapes=*/false, true, true}), "relu, seq = 7");
  EXPECT_EQ(Label("a\n\t\x01\x7f\"\\\xc3\xa9", 0, {}), "a\\n\\t\\x01\\x7f\"\\\xc3\xa9, seq = 0");
  EXPECT_EQ(Label(std::string("a\0b", 3), -1, {}), "a\\x00b");
}

TEST(OpText, LabelsTakeBareSizesToo) {
  const int64_t shape[] = {32, 128};
  const absl::Span<const int64_t> sizes[] = {shape, {}};
  TextBuffer text;
  FormatOpLabel("addmm", 12, sizes, text);
  EXPECT_EQ(text.view(), "addmm, seq = 12, sizes = [[32, 128], []]");
  FormatOpLabel("addmm", 12, {}, text);
  EXPECT_EQ(text.view(), "addmm, seq = 12");
}

TEST(OpText, LongNamesAreWhole) {
  const std::string name(10240, 'n');
  const std::string controls(10240, '\n');
  EXPECT_EQ(Label(name, 1, {}), name + ", seq = 1");
  EXPECT_EQ(Label(controls, -1, {}).size(), 2 * controls.size());
  EXPECT_EQ(JsonOfName(name), "\"" + name + "\"");
  EXPECT_EQ(JsonOfName(controls).size(), 2 * controls.size() + 2);
  EXPECT_EQ(JsonOfName(std::string(10240, '\x01')).size(), 6 * 10240 + 2);
  EXPECT_EQ(JsonOfName(std::string(10240, '\xff')).size(), 6 * 10240 + 2);
}

TEST(OpText, JsonHasEverythingInOneLine) {
  const TensorView input = Tensor({32, 128}, DType::kFloat32, {Device::Kind::kCuda, 1, nullptr});
  const OpArg args[] = {{"input", input}, {"eps", 1e-5}};
  const std::vector<int64_t> stride = {1, 1};
  const OpArg attributes[] = {{"stride", stride}, {"groups", 1}};
  LabelledOp op;
  op.name = "linear";
  op.args = args;
  op.attributes = attributes;
  op.module = "encoder.0";
  op.seq = 12;
  op.source = {"train.cc", 42};
  EXPECT_EQ(
      Json(op),
      R"({"op":"linear","module":"encoder.0","args":[{"name":"input","dtype":"float32","shape":[32,128],)"
      R"("strides":[128,1],"device":"cuda:1"},{"name":"eps","value":1e-05}],)"
      R"("attributes":{"stride":[1,1],"groups":1},"direction":"forward","seq":12,"source":"train.cc:42"})");
}

TEST(OpText, OfATensorAllIsWrittenThatIsRecorded) {
  const float data = 0;
  const TensorView transposed(&data, DType::kFloat32, {2, 3}, {1, -2});
  EXPECT_EQ(JsonOfArgs({transposed, {"x", transposed}}, {false, false, false}), R"([{},{"name":"x"}])");
  EXPECT_EQ(JsonOfArgs({transposed}, {true, false, false}), R"([{"shape":[2,3]}])");
  EXPECT_EQ(JsonOfArgs({transposed}, {false, false, true}), R"([{"strides":[1,-2],"device":"cpu"}])");
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(JsonOfArgs({Tensor({1}, dtype)}, {false, true, false}),
              "[{\"dtype\":\"" + std::string(Name(dtype)) + "\"}]");
  }
}

TEST(OpText, ValuesOfEveryKind) {
  const std::vector<int64_t> vector = {3, -4};
  const std::array<int64_t, 1> array = {5};
  const TensorView tensor = Tensor({7});
  const TensorView* const absent = nullptr;
  EXPECT_EQ(JsonOfArgs({true,
                        false,
                        1,
                        -2,
                        std::numeric_limits<int64_t>::min(),
                        0.1,
                        0.5f,
                        "a",
                        std::string("b"),
                        vector,
                        array,
                        tensor.shape(),
                        {0, 0},
                        nullptr,
                        absent}),
            R"([{"value":true},{"value":false},{"value":1},{"value":-2},{"value":-9223372036854775808},)"
            R"({"value":0.1},{"value":0.5},{"value":"a"},{"value":"b"},{"value":[3,-4]},{"value":[5]},)"
            R"({"value":[7]},{"value":[0,0]},{"value":null},{"value":null}])");
}

TEST(OpText, IntegersOfEveryLength) {
  for (int64_t power = 1; power <= 1000000; power *= 10) {
    for (const int64_t value : {power - 1, power, power + 1, 5 * power, -power}) {
      EXPECT_EQ(JsonOfArgs({value}), "[{\"value\":" + std::to_string(value) + "}]");
    }
  }
}

TEST(OpText, NumbersThatJsonLacksAreStrings) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      JsonOfArgs({infinity, -infinity, std::nan(""), -std::numeric_limits<double>::max()}),
      R"([{"value":"Infinity"},{"value":"-Infinity"},{"value":"NaN"},{"value":-1.7976931348623157e+308}])");
}

TEST(OpText, ManyArgumentsFit) {
  const std::vector<OpArg> args(1000, OpArg(nullptr));
  std::string expected = "[";
  for (size_t i = 0; i < args.size(); ++i) expected += i == 0 ? R"({"value":null})" : R"(,{"value":null})";
  EXPECT_EQ(JsonOfArgs(args), expected + "]");
  EXPECT_EQ(Label("op", -1, args).size(), std::string("op, sizes = []").size() + 4 * args.size() - 2);
}

}  // namespace
}  // namespace ott::internal
