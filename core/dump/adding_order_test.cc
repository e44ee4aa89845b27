#include "ott/core/dump/adding_order.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kLeaves = {"a.0", "a.1.x", "a.1.y.0", "a.1.y.1", "a.2", "b.c", "d"};

Value Tree() {
  const ValueMap inner = {{"x", 1}, {"y", Value::List{2, 3}}};
  return ValueMap{{"a", Value::List{0, inner, 4}}, {"b", ValueMap{{"c", 5}}}, {"d", "text"}};
}

TEST(AddingOrder, AnyOrderOfLeavesIsKeptAndTheTreesOwnIsNone) {
  EXPECT_THAT(OrderUnlikeTrees(Tree(), kLeaves), IsEmpty());
  std::mt19937 random(1);
  for (int i = 0; i < 50; ++i) {
    std::vector<std::string> added = kLeaves;
    std::shuffle(added.begin(), added.end(), random);
    EXPECT_EQ(OrderUnlikeTrees(Tree(), added), added);
  }
}

TEST(AddingOrder, WhatWasAddedWholeIsInTheTreesOrderAndWhatWasNotComesLast) {
  EXPECT_THAT(OrderUnlikeTrees(Tree(), {"d", "a.1", "b"}),
              ElementsAre("d", "a.1.x", "a.1.y.0", "a.1.y.1", "b.c", "a.0", "a.2"));
}

}  // namespace
}  // namespace ott
