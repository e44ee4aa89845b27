#include "ott/core/base/iteration_selection.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"

namespace ott {
namespace {

absl::StatusOr<IterationSelector> SelectorOf(const std::string& text) {
  IterationSelection selection;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &selection)) << text;
  return IterationSelector::Create(selection);
}

TEST(IterationSelector, AddsUpFirstEveryListAndRangesWithoutTheirEndsAndSelectsAllUnlessToldWhich) {
  for (const auto& [text, selected] : std::vector<std::pair<std::string, std::vector<int64_t>>>{
           {"", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
           {"first: true", {0}},
           {"every: 4", {0, 4, 8}},
           {"first: true list: [7, 2, 7]", {0, 2, 7}},
           {"first: true list: [8, 2] every: 5", {0, 2, 5, 8}},
           {"ranges { begin: 3 end: 5 } ranges { begin: 0 end: 1 }", {0, 3, 4}},
           {"first: true every: 6 list: 4 ranges { begin: 8 end: 10 }", {0, 4, 6, 8, 9}}}) {
    const IterationSelector selector = SelectorOf(text).value();
    for (int64_t i = 0; i < 10; ++i)
      EXPECT_EQ(selector.Contains(i), std::count(selected.begin(), selected.end(), i) > 0) << text << i;
    EXPECT_EQ(selector.Contains(-5), text.empty()) << text;
  }
  EXPECT_TRUE(IterationSelector().Contains(7));
}

TEST(IterationSelector, RefusesNegativeNumbersAndEmptyRanges) {
  for (const auto& [text, reason] : {std::pair("every: -1", "every: -1"),
                                     {"list: [3, -4]", "list: -4"},
                                     {"ranges { begin: 3 end: 3 }", "from 3 to 3"},
                                     {"ranges { begin: -1 end: 3 }", "from -1 to 3"}}) {
    const absl::Status status = SelectorOf(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(reason));
  }
}

}  // namespace
}  // namespace ott
