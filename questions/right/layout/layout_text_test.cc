#include "ott/questions/right/layout/layout_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace ott::crosscheck {
namespace {

TEST(LayoutVerdictsToText, FiveIterationsAreToldAndEachTensorOnce) {
  std::vector<LayoutVerdict> verdicts;
  for (int i = 1; i <= 7; ++i) {
    LayoutVerdict& verdict = verdicts.emplace_back();
    verdict.set_iteration(i);
    verdict.set_outcome(DIFFERENT);
    verdict.set_num_tensors(9);
    verdict.set_num_different(5);
    for (const char* const tensor : {"w", "w", "v", "u", "t", "s"})
      verdict.add_differences()->set_tensor(tensor);
    const std::string text = LayoutVerdictsToText(verdicts);
    for (int told = 1; told <= 7; ++told) {
      const std::string line =
          absl::StrCat("iteration ", told, ": 5 of 9 tensors DIFFER: \"w\", \"v\", \"u\", \"t\", ...\n");
      EXPECT_EQ(text.find(line) != text.npos, told <= std::min(i, 5)) << text;
    }
    EXPECT_EQ(text.find(absl::StrCat("... and ", i - 5, " more iterations\n")) != text.npos, i > 5) << text;
  }
  // All are named.
  verdicts.resize(1);
  verdicts[0].set_num_different(4);
  verdicts[0].mutable_differences()->RemoveLast();
  EXPECT_EQ(LayoutVerdictsToText(verdicts).rfind(R"(iteration 1: 4 of 9 tensors DIFFER: "w", "v", "u", "t")"
                                                 "\n",
                                                 0),
            0);
}

TEST(LayoutVerdictsToText, TwentyReasonsAreToldAndTheOthersCounted) {
  LayoutVerdict verdict;
  verdict.set_iteration(3);
  const std::string begin = "iteration 3: NOT COMPARED: ";
  for (int count = 1; count <= 22; ++count) {
    verdict.add_not_compared(absl::StrCat("reason ", count));
    std::string expected;
    for (int i = 1; i <= std::min(count, 20); ++i) absl::StrAppend(&expected, begin, "reason ", i, "\n");
    if (count > 20) absl::StrAppend(&expected, begin, count - 20, " more of the kind\n");
    EXPECT_EQ(LayoutVerdictsToText({verdict}).rfind(expected + "1 iteration, ", 0), 0) << count;
  }
}

TEST(LayoutVerdictsToText, TheFirstDifferenceIsToldWithItsPlacesAndBits) {
  LayoutVerdict verdict;
  verdict.set_iteration(3);
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(tensor: "w\t" dtype: "float32" shape: [2, 3] run: "b" ranks: 1 num_ranks: 2 num_mismatched: 4
         num_compared: 6 max_abs_error: 0.5 index: [1, 2] ulp_distance: 7 flipped_bits: 20
         found { run: "b" ranks: 1 path: "p\t" index: [0, 1] value: "3" }
         expected { run: "a" ranks: [0, 1] path: "q" index: [1, 2] value: "2.5" })",
      verdict.add_differences()));
  EXPECT_THAT(
      LayoutVerdictsToText({verdict}),
      testing::EndsWith("first divergence: iteration 3: DIFFER in tensor \"w\\t\" (float32 [2, 3]), in b "
                        "on rank 1 alone: 4 of 6 elements, max abs error 0.5\n"
                        "    element [1, 2]: 3 in b, rank 1, \"p\\t\" [0, 1]; 2.5 in a, the sum of ranks "
                        "0, 1, \"q\" [1, 2]; 7 ULP; flipped bit 20\n"));
}

}  // namespace
}  // namespace ott::crosscheck
