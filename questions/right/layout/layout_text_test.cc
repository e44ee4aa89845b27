#include "ott/questions/right/layout/layout_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

}  // namespace
}  // namespace ott::crosscheck
