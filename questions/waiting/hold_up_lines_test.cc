// Tests what is said of who waits for whom in traces.

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/waiting/traced_job.h"

namespace ott::waiting {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns a job of two ranks with twelve steps, of which nobody is slow.
TracedJob Job() {
  TracedJob job;
  job.ranks.resize(2);
  job.ranks[1].rank = 1;
  job.clocks.resize(2);
  for (ClockOffset& clock : job.clocks) clock.is_known = true;
  job.clocks[0].error_bound = 12'000;
  job.clocks[1].error_bound = 3'000;
  job.tells_groups = true;
  job.has_steps = true;
  job.num_matched = 60;
  job.hold_ups.most_steps = 12;
  job.hold_ups.most_intervals = 24;
  job.hold_ups.detectable_share = 0.031;
  return job;
}

TEST(HoldUpLines, SayWhoOrThatNobodyIsOrWhyItCannotBeTold) {
  TracedJob alone = Job(), unmatched = Job(), ungrouped = Job(), found = Job(), short_trace = Job(),
            no_steps = Job(), varying = Job(), varying_without_steps = Job(), apart = Job(), partly = Job();
  for (TracedJob* job : {&alone, &unmatched, &ungrouped, &short_trace, &no_steps})
    job->hold_ups.detectable_share = std::numeric_limits<double>::infinity();
  alone.ranks.resize(1);
  unmatched.num_matched = 0;
  ungrouped.tells_groups = false;
  found.hold_ups.found = {{1, "allreduce\n", "dp", 0.004, 0.25}, {0, "gather", "", 0.002, 0.125}};
  found.clocks[0].is_known = false;
  short_trace.hold_ups.most_steps = 9;
  no_steps.has_steps = false;
  no_steps.hold_ups.most_steps = 0;
  apart.clocks[1].is_known = false;
  partly.num_partly_traced = 1;
  varying.hold_ups.detectable_share = 0.6;
  varying_without_steps.hold_ups.detectable_share = 0.6;
  varying_without_steps.has_steps = false;
  const std::string unknown = "cannot tell who waits for whom";
  struct Case {
    TracedJob job;
    std::string line;
    Answer::Finding finding;
  };
  for (const auto& [job, line, finding] : std::vector<Case>{
           {alone, unknown + " from the trace of one rank", Answer::NOT_ASKED},
           {unmatched, unknown + ": no collective of one rank was found on another", Answer::CANNOT_TELL},
           {ungrouped, unknown + ": the traces do not tell which ranks a collective is of",
            Answer::CANNOT_TELL},
           {found, "all wait for rank 1 at \"allreduce\\n of group dp\": 4 ms a step, 25.0% of it",
            Answer::BAD},
           {short_trace, unknown + ": all ranks have collectives in 9 steps, and 10 are needed",
            Answer::CANNOT_TELL},
           {no_steps, unknown + ": no collective came more than 24 times, and 32 are needed",
            Answer::CANNOT_TELL},
           {varying, unknown + ": only a rank that costs 60% of a step would have been found",
            Answer::CANNOT_TELL},
           {varying_without_steps, unknown + ": only a rank that costs 60% of the trace would",
            Answer::CANNOT_TELL},
           {apart, unknown + ": not all traced ranks have collectives in common", Answer::CANNOT_TELL},
           {partly, unknown + ": ranks that come to the same collectives are not traced",
            Answer::CANNOT_TELL},
           {Job(), "no rank holds the others up; one that costs 3.1% of a step would have been found",
            Answer::GOOD}}) {
    EXPECT_THAT(HoldUpLines(job)[0], ::testing::StartsWith(line));
    EXPECT_EQ(AnswerHoldUps(job).finding(), finding) << line;
  }
  EXPECT_THAT(HoldUpLines(found),
              ElementsAre(HasSubstr("rank 1"), "all wait for rank 0 at \"gather\": 2 ms a step, 12.5% of it",
                          "by 60 collectives; clocks are at most 12 us off in nine of ten",
                          "1 ranks share no collective with the others and are left out"));
  EXPECT_EQ(FormatHoldUps(found), absl::StrJoin(HoldUpLines(found), "\n") + "\n");
}

}  // namespace
}  // namespace ott::waiting
