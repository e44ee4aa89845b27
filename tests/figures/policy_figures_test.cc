// The figures of docs/slow.md and docs/how_sure.md are those by which verdicts about time are made.

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

// The page's words, one-spaced; empty if it cannot be read.
std::string Page(const std::string& path) {
  const auto page = ReadFile(path);
  EXPECT_TRUE(page.ok()) << page.status();
  return page.ok() ? OneSpaced(*page) : "";
}

// "2 %"
std::string Percent(double share) { return absl::StrFormat("%g %%", 100 * share); }

TEST(PolicyFigures, ThePageHasTheErrorsAndSizesOfThePolicy) {
  const std::string text = Page("docs/slow.md") + Page("docs/how_sure.md");
  EXPECT_THAT(text, HasSubstr(absl::StrFormat(
                        "%s of the gathers of ranks that are alike name one for its work, %s one that all "
                        "wait for, and %s one for any measurement",
                        Percent(kWorkError), Percent(kHoldUpError), Percent(kMeasurementError))));
  ASSERT_EQ(kWindowErrorShare, 1.0 / 20);
  EXPECT_THAT(text, HasSubstr("have a twentieth of that"));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat(
                        "Named is what is at least %s of the others' median, and %s of an iteration for "
                        "the work, %s for a measurement, %s for a sampled one, %s for waiting",
                        Percent(kMinExcess), Percent(kMinWorkShare), Percent(kMinMeasurementShare),
                        Percent(kMinSampledExcess), Percent(kHoldUpIterationShare))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("if its excess is below %s of that rank's",
                                              Percent(kMinShareOfStraggler))));
  ASSERT_EQ(kMinShareWithTaken, 1.0 / 3);
  EXPECT_THAT(text, HasSubstr("At least a third of that excess"));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("(at %s)", Percent(kPartError))));
}

TEST(PolicyFigures, ThePageHasWhatMachinesDoByThePolicy) {
  const std::string text = Page("docs/slow.md") + Page("docs/how_sure.md");
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("a standard deviation of %s of the time on a CPU",
                                              Percent(kExpectedSpread))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("as much as %g processes", kSpreadDegreesOfFreedom)));
  ASSERT_EQ(kDisturbanceOfTaken, 1.0 / 4);
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("%s for some %g s are expected, and a quarter of the share",
                                              Percent(kDisturbance), kDisturbanceSeconds)));
  ASSERT_EQ(kSlowdown, 1);
  EXPECT_THAT(text, HasSubstr("half its speed"));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("%g microseconds are for the order", 1e6 * kExpectedLateness)));
  ASSERT_EQ(kLatenessOfTaken, 1.0 / 4);
  EXPECT_THAT(text, HasSubstr("A quarter of the time that others had the ranks' CPU"));
}

TEST(PolicyFigures, ThePageHasTheSizesOfHiccupsAndPausesOfThePolicy) {
  const std::string text = Page("docs/slow.md") + Page("docs/how_sure.md");
  ASSERT_EQ(kHiccupIterationShare, 1.0 / 5);
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("a fifth of an iteration and %g ms", 1e3 * kHiccupSeconds)));
  ASSERT_EQ(kMinHiccups, 3);
  EXPECT_THAT(text, HasSubstr("three or more"));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("hardly ever (%s)", Percent(kHiccupError))));
  EXPECT_THAT(
      text, HasSubstr(absl::StrFormat("half of all waiting and %s of the time", Percent(kHiccupTimeShare))));
  ASSERT_EQ(kPauseIterations, 10);
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("%g s and ten iterations", kPauseSeconds)));
}

TEST(PolicyFigures, ThePageOfWhatIfHasItsErrorsAndSizesByThePolicy) {
  const std::string text = Page("docs/whatif.md");
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("Beyond %s the answer is", Percent(kMaxReplayError))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("over %g times the median", kHealthy)));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("at an error of %s", Percent(kBlameError))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("bring %s of what", Percent(kShareOfBest))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("%s of an iteration or more", Percent(kMinSaved))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("costs %s or more", Percent(kMinUneven))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("surely saves less than %s", Percent(kMaxNotExcluded))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("the worst %s of them", Percent(kWorstRanks))));
  ASSERT_EQ(kMinShareOfBlamed, 1.0 / 2);
  EXPECT_THAT(text, HasSubstr("at least half of what all repairs"));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("over batches of %d iterations", kIterationsPerBatch)));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("in no more than %s of the cases", Percent(kMaxLeftBefore))));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat("%g times as often", kMostOfVisits)));
}

TEST(PolicyFigures, ThePageOfTheReportHasItsOutliersByThePolicy) {
  EXPECT_THAT(Page("docs/report.md"),
              HasSubstr(absl::StrFormat(
                  "longer than %g medians, and longer than the median plus %g times the distance",
                  kOutlierMedians, kOutlierDistances)));
}

}  // namespace
}  // namespace ott
