#include "ott/core/dump/selection.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(Selection, IterationsAndRanksAreAllUnlessSomeAreSaid) {
  SelectionOptions options;
  options.iterations.every = 5;
  options.ranks = {0, 3};
  const Selection all, some = Selection::Create(options).value();
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(all.WantsIteration(i) && all.WantsRank(i)) << i;
    EXPECT_EQ(some.WantsIteration(i), i % 5 == 0) << i;
    EXPECT_EQ(some.WantsRank(i), i == 0 || i == 3) << i;
  }
  EXPECT_TRUE(all.WantsPath("weights.w1"));
}

TEST(Selection, PathsMatchGlobsAndRegularExpressions) {
  SelectionOptions options;
  options.include_globs = {"weights.*"};
  options.include_regexes = {"grad[0-9]+"};
  options.exclude_globs = {"*.bias"};
  options.exclude_regexes = {".*w9.*"};
  const Selection selection = Selection::Create(options).value();
  EXPECT_TRUE(selection.WantsPath("weights.w1"));
  EXPECT_TRUE(selection.WantsPath("grad12"));
  EXPECT_FALSE(selection.WantsPath("grad"));
  EXPECT_FALSE(selection.WantsPath("loss"));
  EXPECT_FALSE(selection.WantsPath("weights.w1.bias"));
  EXPECT_FALSE(selection.WantsPath("weights.w9"));
}

TEST(Selection, NestedRepetitionsAndLongNamesTakeLinearTime) {
  SelectionOptions options;
  options.include_regexes = {"((a|b)+)+c"};
  const Selection selection = Selection::Create(options).value();
  EXPECT_FALSE(selection.WantsPath(std::string(100, 'a')));
  EXPECT_FALSE(selection.WantsPath(std::string(100'000, 'a')));
  EXPECT_TRUE(selection.WantsPath(std::string(100'000, 'a') + "c"));
}

TEST(Selection, WhatMakesNoSenseIsAnError) {
  SelectionOptions options;
  // The last two need more than a finite automaton, or a huge one.
  for (const char* const expression : {"(", "(a)\\1", "((a{100}){100}){100}"}) {
    options.include_regexes = {"w", expression};
    const absl::Status status = Selection::Create(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(expression));
  }
  options = {};
  options.iterations.every = -1;
  EXPECT_EQ(Selection::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ott
