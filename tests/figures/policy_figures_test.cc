// The figures of docs/dist.md are those by which verdicts about time are made.

#include <cctype>
#include <string>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/statistics/policy.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

// With one space wherever words are apart, as lines of the page may break anywhere.
std::string OneSpaced(const std::string& text) {
  std::string spaced;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      spaced.push_back(c);
    } else if (!spaced.empty() && spaced.back() != ' ') {
      spaced.push_back(' ');
    }
  }
  return spaced;
}

TEST(PolicyFigures, ThePageHasTheErrorsAndSizesOfThePolicy) {
  const auto page = ReadFile("docs/dist.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string text = OneSpaced(*page);
  EXPECT_THAT(text,
              HasSubstr(absl::StrFormat(
                  "%g %% of the gathers of ranks that are alike name one for its work, %g %% one that all "
                  "wait for, and %g %% one for any measurement",
                  100 * kWorkError, 100 * kHoldUpError, 100 * kMeasurementError)));
  ASSERT_EQ(kWindowErrorShare, 1.0 / 20);
  EXPECT_THAT(text, HasSubstr("have a twentieth of that"));
  EXPECT_THAT(
      text,
      HasSubstr(absl::StrFormat(
          "Named is what is at least %g %% of the others' median, and %g %% of an iteration for "
          "the work, %g %% for a measurement, %g %% for waiting",
          100 * kMinExcess, 100 * kMinWorkShare, 100 * kMinMeasurementShare, 100 * kHoldUpIterationShare)));
}

}  // namespace
}  // namespace ott
