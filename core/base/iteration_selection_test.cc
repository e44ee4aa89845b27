#include "ott/core/base/iteration_selection.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"

namespace ott {
namespace {

using testing::ElementsAre;

std::vector<int64_t> SelectedBelow(int64_t end, const IterationOptions& options) {
  const auto selector = IterationSelector::Create(options).value();
  std::vector<int64_t> selected;
  for (int64_t iteration = 0; iteration < end; ++iteration) {
    if (selector.Contains(iteration)) selected.push_back(iteration);
  }
  return selected;
}

void ExpectRefused(const IterationOptions& options, const std::string& reason) {
  const absl::Status status = IterationSelector::Create(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(reason));
}

TEST(IterationSelector, SelectsAllUnlessToldWhich) {
  EXPECT_THAT(SelectedBelow(3, {}), ElementsAre(0, 1, 2));
  EXPECT_TRUE(IterationSelector().Contains(7));
  EXPECT_TRUE(IterationSelector::Create(IterationSelection())->Contains(7));
}

TEST(IterationSelector, AddsUpFirstEveryListAndRangesWithoutTheirEnds) {
  IterationOptions options;
  options.first = true;
  EXPECT_THAT(SelectedBelow(10, options), ElementsAre(0));
  options.list = {7, 2, 7};
  EXPECT_THAT(SelectedBelow(10, options), ElementsAre(0, 2, 7));
  options.every = 5;
  EXPECT_THAT(SelectedBelow(12, options), ElementsAre(0, 2, 5, 7, 10));
  EXPECT_FALSE(IterationSelector::Create(options)->Contains(-5));
  options = {};
  options.ranges = {{3, 5}, {0, 1}};
  EXPECT_THAT(SelectedBelow(10, options), ElementsAre(0, 3, 4));
}

TEST(IterationSelector, TakesWhatTheConfigurationSays) {
  IterationSelection selection;
  selection.set_first(true);
  selection.set_every(6);
  selection.add_list(4);
  selection.add_ranges()->set_begin(8);
  selection.mutable_ranges(0)->set_end(10);
  const auto selector = IterationSelector::Create(selection).value();
  for (const int iteration : {0, 4, 6, 8, 9}) EXPECT_TRUE(selector.Contains(iteration)) << iteration;
  for (const int iteration : {1, 5, 7, 10}) EXPECT_FALSE(selector.Contains(iteration)) << iteration;
}

TEST(IterationSelector, RefusesNegativeNumbersAndEmptyRanges) {
  IterationOptions options;
  options.every = -1;
  ExpectRefused(options, "every: -1");
  options.every = 0;
  options.list = {3, -4};
  ExpectRefused(options, "list: -4");
  options.list = {};
  options.ranges = {{3, 3}};
  ExpectRefused(options, "from 3 to 3");
  options.ranges = {{-1, 3}};
  ExpectRefused(options, "from -1 to 3");
}

}  // namespace
}  // namespace ott
