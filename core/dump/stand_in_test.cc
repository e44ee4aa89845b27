#include "ott/core/dump/stand_in.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dump/dump_files.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

using Content = NamedTensor::Content;

std::vector<std::pair<std::string, Content>> Listed(const Value& tree) {
  std::vector<std::pair<std::string, Content>> listed;
  for (const NamedTensor& tensor : ListComparable(tree)) listed.emplace_back(tensor.path, tensor.content);
  return listed;
}

TEST(ListComparable, AllThatMayBeComparedIsListedInTheTreesOrder) {
  const float data[2] = {1, 2};
  const Value tree = ValueMap{
      {"t", "text"}, {"a", Value::List{TensorView(data, {2}), Value()}}, {"n", 3}, {"empty", ValueMap()}};
  EXPECT_THAT(Listed(tree), ElementsAre(Pair("t", Content::kText), Pair("a.0", Content::kElements),
                                        Pair("n", Content::kElements)));
}

TEST(ListComparable, OfAStandInWithoutDTypeShapeOrDigestTheNumbersAreListed) {
  const std::string statistics(kStatisticsName);
  using Entries = std::map<std::string, std::string>;
  const auto list = [&](const Entries& entries) {
    ValueMap figures = {{"mean", 1.5}, {"norm", 2.0}};
    for (const auto& [name, text] : entries) figures.Insert(name, text);
    return Listed(ValueMap{{"a", ValueMap{{statistics, figures}}}});
  };
  const Entries all = {{"digest", "12"}, {"dtype", "float32"}, {"shape", "[2, 3]"}};
  EXPECT_THAT(list(all), ElementsAre(Pair("a", Content::kDigest)));
  std::vector<Entries> others;
  for (const auto& [name, text] : all) others.emplace_back(all).erase(name);
  others.emplace_back(all)["dtype"] = "float";
  for (const char* const shape : {"", "2, 3]", "[2, 3", "[2, -3]", "[2, x]", "[9223372036854775807, 9]"})
    others.emplace_back(all)["shape"] = shape;
  for (const Entries& entries : others) {
    EXPECT_THAT(list(entries), ElementsAre(Pair("a." + statistics + ".mean", Content::kStandIn),
                                           Pair("a." + statistics + ".norm", Content::kStandIn)))
        << testing::PrintToString(entries);
  }
  for (const auto& [name, text] : all) {
    ValueMap figures = {{name, 3}};
    for (const auto& [other, of_other] : all) {
      if (other != name) figures.Insert(other, of_other);
    }
    EXPECT_THAT(Listed(ValueMap{{statistics, figures}}),
                ElementsAre(Pair(statistics + "." + name, Content::kStandIn)));
  }
  const uint8_t pixels[4] = {};
  const std::string image(kImageName);
  EXPECT_THAT(Listed(ValueMap{{image, ValueMap{{"pixels", TensorView(pixels, {2, 2})},
                                               {"original_range", 3},
                                               {"image_format", "Intensity"}}}}),
              ElementsAre(Pair(image + ".pixels", Content::kStandIn),
                          Pair(image + ".original_range", Content::kStandIn)));
  // A map that holds more than the figures is one of the program's own.
  EXPECT_EQ(StatisticsOf(ValueMap{{statistics, ValueMap()}, {"x", 1}}), nullptr);
  EXPECT_EQ(StatisticsOf(ValueMap{{statistics, 1}}), nullptr);
}

}  // namespace
}  // namespace ott
