#include "ott/core/kineto/op_arguments.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::kineto {
namespace {

using ::testing::ElementsAre;

TEST(OpArguments, ElementTypesHaveTheNamesOfTheirKernels) {
  const std::vector<std::pair<DType, std::vector<std::string>>> names = {
      {DType::kFloat64, {"double", "Double"}},
      {DType::kFloat32, {"float", "Float"}},
      {DType::kFloat16, {"c10::Half", "Half"}},
      {DType::kBFloat16, {"c10::BFloat16", "bfloat16"}},
      {DType::kFloat8E4M3, {"c10::Float8_e4m3fn", "Float8_e4m3fnuz"}},
      {DType::kFloat8E5M2, {"c10::Float8_e5m2", "Float8_e5m2fnuz"}},
      {DType::kInt64, {"long int", "Long", "long"}},
      {DType::kInt32, {"int", "Int"}},
      {DType::kInt16, {"short int", "Short"}},
      {DType::kInt8, {"signed char", "Char"}},
      {DType::kUInt8, {"unsigned char", "Byte"}},
      {DType::kUInt16, {"unsigned short", "short unsigned int", "UInt16"}},
      {DType::kUInt32, {"unsigned int", "UInt32"}},
      {DType::kUInt64, {"unsigned long", "long unsigned int", "UInt64"}},
      {DType::kBool, {"bool", "Bool"}},
      {DType::kComplex64, {"c10::complex<float>", "ComplexFloat"}},
      {DType::kComplex128, {"c10::complex<double>", "ComplexDouble"}}};
  for (const auto& [dtype, of_dtype] : names) {
    for (const std::string& name : of_dtype) EXPECT_EQ(ToDType(name), dtype) << name;
  }
  for (const char* const none : {"", "Scalar", "c10::", "c10::c10::Half", "floats"}) {
    EXPECT_EQ(ToDType(none), std::nullopt) << none;
  }
}

// One argument: "0 float32 [2, 3]", "1 1, 2" or "1 'tanh'".
std::string ToText(const OpArgument& argument) {
  std::string text = std::to_string(argument.position) + argument.name;
  if (argument.is_tensor) {
    text += " " + (argument.dtype ? std::string(Name(*argument.dtype)) : "?") + " [";
    for (const int64_t size : argument.shape) text += std::to_string(size) + ",";
    return text + "]";
  }
  for (const double number : argument.numbers) text += " " + std::to_string(static_cast<int64_t>(number));
  return argument.text.empty() ? text : text + " '" + argument.text + "'";
}

std::vector<std::string> Parse(const char* shapes, const char* types, const char* inputs) {
  std::vector<std::string> texts;
  for (const OpArgument& argument : ParseArguments(shapes, types, inputs)) texts.push_back(ToText(argument));
  return texts;
}

TEST(OpArguments, AreTensorsListsOfThemAndValues) {
  EXPECT_THAT(
      Parse(
          "[[2, 3], [], [], [[4], [5, 6]], [7]]", R"(["float", "Int", "long int", "TensorList", ""])",
          R"(["", "1", "", "", "", "[16, 32]", "True", "tanh", "None", "[1, [2]]", "[]", "{'a': 1}", "1"])"),
      ElementsAre("0 float32 [2,3,]", "1 1", "2 int64 []", "3 ? [4,]", "3 ? [5,6,]", "4 ? [7,]", "5 16 32",
                  "6 1", "7 'tanh'", "10 '[]'", "11 '{'a': 1}'", "12 1"));
  EXPECT_THAT(Parse("[[2], 3, {}, [[]], [[4], 5]]", "[]", ""), ElementsAre("0 ? [2,]", "3 ? []", "4 ? [4,]"));
  EXPECT_THAT(Parse("", "", R"-(["5", "(2,2)"])-"), ElementsAre("0 5", "1 2 2"));
  EXPECT_THAT(Parse("[[-2]]", R"(["float"])", "none"), ElementsAre());
}

TEST(OpArguments, NumbersAreAddedByTheirName) {
  std::vector<OpArgument> arguments;
  AddNumber("flop", "12", &arguments);
  AddNumber("none", "", &arguments);
  AddNumber("text", "x", &arguments);
  AddNumber("list", "[1]", &arguments);
  ASSERT_EQ(arguments.size(), 1U);
  EXPECT_EQ(arguments[0].name, "flop");
  EXPECT_THAT(arguments[0].numbers, ElementsAre(12));
}

TEST(OpArguments, SizesOfAGridAreTheFirstThreeNumbers) {
  for (const char* const list : {"[1,22,333]", "1 22 333", "[1, 22, 333, 4]", "x1y22z333"}) {
    int64_t sizes[3] = {};
    EXPECT_TRUE(ParseSizes(list, sizes)) << list;
    EXPECT_THAT(sizes, ElementsAre(1, 22, 333)) << list;
  }
  int64_t sizes[3] = {};
  for (const char* const list : {"", "[]", "[1,2]"}) EXPECT_FALSE(ParseSizes(list, sizes)) << list;
}

TEST(OpArguments, TheSecondInputOfACollectiveIsItsSequenceNumber) {
  EXPECT_EQ(SequenceNumberIn(R"(["", "1234", "7"])"), 1234);
  EXPECT_EQ(SequenceNumberIn(R"(["a",  "0"])"), 0);
  for (const char* const none : {"", R"(["1"])", R"(["a", "x"])", R"(["a", "-5"])", R"(["a", "1)", "a, b"}) {
    EXPECT_EQ(SequenceNumberIn(none), -1) << none;
  }
}

TEST(OpArguments, SpaceIsLeftOutButInTexts) {
  EXPECT_EQ(Compact("[[2, 3],\n\t[]]"), "[[2,3],[]]");
  EXPECT_EQ(Compact(R"(["a b" , "c \" d", "e\\" , 1 ])"), R"(["a b","c \" d","e\\",1])");
  EXPECT_EQ(Compact("\\"), "\\");
}

}  // namespace
}  // namespace ott::kineto
