#include "ott/core/base/nearest_name.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(NearestName, IsTheOneWithTheFewestChanges) {
  const std::vector<std::string> names = {"forward", "allreduce", "all_reduce", "step"};
  EXPECT_EQ(NearestName("alreduce", names), "allreduce");
  EXPECT_EQ(NearestName("all_redcue", names), "all_reduce");
  EXPECT_EQ(NearestName("fwd", {"forwd", "bwd"}), "bwd");
}

TEST(NearestName, WhatIsNothingLikeItIsNotMeant) {
  EXPECT_EQ(NearestName("broadcast", {"step", "forward"}), "");
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace ott
