#include "ott/core/base/glob.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(MatchesGlob, AStarStandsForAnyCharactersAndAQuestionMarkForOne) {
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

TEST(MatchesGlob, EverythingElseStandsForItself) {
  EXPECT_TRUE(MatchesGlob("layers[0].w", "layers[0].w"));
  EXPECT_TRUE(MatchesGlob("layers[0].w", "layers[?].*"));
  EXPECT_FALSE(MatchesGlob("layers0.w", "layers[0].w"));
  EXPECT_TRUE(MatchesGlob("a\\b", "a\\b"));
  EXPECT_FALSE(MatchesGlob("*", "\\*"));
}

TEST(MatchesGlob, OneOfSeveralIsEnough) {
  EXPECT_TRUE(MatchesAnyGlob("weights.w1", std::vector<std::string>{"bias", "weights.*"}));
  EXPECT_FALSE(MatchesAnyGlob("weights.w1", std::vector<std::string>{"bias"}));
  EXPECT_FALSE(MatchesAnyGlob("weights.w1", std::vector<std::string>()));
}

TEST(MatchesTensorGlob, ATensorMatchesByEitherOfItsNames) {
  for (const char* const path : {"parameters.w", "tensors.parameters.w"}) {
    for (const char* const glob :
         {"parameters.*", "tensors.parameters.*", "*.parameters.w", "*parameters.w", "tens*.w", "*"}) {
      EXPECT_TRUE(MatchesTensorGlob(path, glob)) << path << " " << glob;
    }
    for (const char* const glob : {"grads.parameters.w", "w", "tensors.tensors.parameters.w", "tensor?"}) {
      EXPECT_FALSE(MatchesTensorGlob(path, glob)) << path << " " << glob;
    }
  }
  EXPECT_TRUE(MatchesTensorGlob("grads.w", "grads.*"));
  EXPECT_FALSE(MatchesTensorGlob("grads.w", "tensors.*"));
}

}  // namespace
}  // namespace ott
