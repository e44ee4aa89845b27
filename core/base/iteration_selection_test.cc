#include "ott/core/base/iteration_selection.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

std::vector<int64_t> SelectedBelow(int64_t end, const IterationSelection& selection) {
  const auto selector = IterationSelector::Create(selection);
  EXPECT_TRUE(selector.ok()) << selector.status();
  std::vector<int64_t> selected;
  for (int64_t iteration = -3; iteration < end; ++iteration) {
    if (selector->Contains(iteration)) selected.push_back(iteration);
  }
  EXPECT_EQ(selector->empty(), selected.empty());
  return selected;
}

TEST(IterationSelector, SelectsNothingUnlessTold) {
  EXPECT_THAT(SelectedBelow(10, IterationSelection()), testing::IsEmpty());
  EXPECT_FALSE(IterationSelector().Contains(0));
  EXPECT_TRUE(IterationSelector().empty());
}

TEST(IterationSelector, AddsUpFirstEveryAndList) {
  IterationSelection selection;
  selection.set_first(true);
  EXPECT_THAT(SelectedBelow(10, selection), testing::ElementsAre(0));
  selection.add_list(7);
  selection.add_list(2);
  selection.add_list(7);
  EXPECT_THAT(SelectedBelow(10, selection), testing::ElementsAre(0, 2, 7));
  selection.set_every(5);
  EXPECT_THAT(SelectedBelow(12, selection), testing::ElementsAre(0, 2, 5, 7, 10));
}

TEST(IterationSelector, SelectsRangesWithoutTheirEnds) {
  IterationSelection selection;
  selection.add_ranges()->set_begin(3);
  selection.mutable_ranges(0)->set_end(5);
  selection.add_ranges()->set_end(1);
  EXPECT_THAT(SelectedBelow(10, selection), testing::ElementsAre(0, 3, 4));
  selection.mutable_ranges(0)->set_end(3);
  EXPECT_TRUE(absl::IsInvalidArgument(IterationSelector::Create(selection).status()));
  selection.mutable_ranges(0)->set_begin(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(IterationSelector::Create(selection).status()));
}

TEST(IterationSelector, RefusesNegativeNumbers) {
  IterationSelection selection;
  selection.set_every(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(IterationSelector::Create(selection).status()));
  selection.set_every(0);
  selection.add_list(3);
  selection.add_list(-4);
  const absl::Status status = IterationSelector::Create(selection).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("list: -4"));
}

}  // namespace
}  // namespace ott
