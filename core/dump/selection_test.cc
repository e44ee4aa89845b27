#include "ott/core/dump/selection.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

std::vector<int64_t> Wanted(const SelectionOptions& options) {
  const Selection selection = Selection::Create(options).value();
  std::vector<int64_t> wanted;
  for (int64_t i = 0; i < 12; ++i) {
    if (selection.WantsIteration(i)) wanted.push_back(i);
  }
  return wanted;
}

TEST(Selection, NothingSaidIsAll) {
  EXPECT_EQ(Wanted({}).size(), 12u);
  EXPECT_TRUE(Selection().WantsRank(7));
  EXPECT_TRUE(Selection().WantsPath("weights.w1"));
}

TEST(Selection, IterationsAddUp) {
  SelectionOptions options;
  options.first = true;
  EXPECT_EQ(Wanted(options), std::vector<int64_t>({0}));
  options.iterations = {7, 3};
  EXPECT_EQ(Wanted(options), std::vector<int64_t>({0, 3, 7}));
  options.begin = 9;
  options.end = 11;
  EXPECT_EQ(Wanted(options), std::vector<int64_t>({0, 3, 7, 9, 10}));
  options.every = 5;
  EXPECT_EQ(Wanted(options), std::vector<int64_t>({0, 3, 5, 7, 9, 10}));
}

TEST(Selection, RanksAreListed) {
  SelectionOptions options;
  options.ranks = {0, 3};
  const Selection selection = Selection::Create(options).value();
  EXPECT_TRUE(selection.WantsRank(3));
  EXPECT_FALSE(selection.WantsRank(1));
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

TEST(Selection, Globs) {
  EXPECT_TRUE(MatchesGlob("", ""));
  EXPECT_TRUE(MatchesGlob("", "*"));
  EXPECT_TRUE(MatchesGlob("a.b.c", "a*c"));
  EXPECT_TRUE(MatchesGlob("aXbXc", "*X?"));
  EXPECT_TRUE(MatchesGlob("abcabc", "*abc"));
  EXPECT_FALSE(MatchesGlob("abcab", "*abc"));
  EXPECT_FALSE(MatchesGlob("ab", "a"));
  EXPECT_FALSE(MatchesGlob("a", "a?"));
  EXPECT_FALSE(MatchesGlob("", "?"));
}

TEST(Selection, WhatMakesNoSenseIsAnError) {
  SelectionOptions options;
  options.include_regexes = {"("};
  EXPECT_EQ(Selection::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
  options = {};
  options.every = -1;
  EXPECT_EQ(Selection::Create(options).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ott
