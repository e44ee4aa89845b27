#include "ott/questions/hang/termination.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ott/core/flight/flight_layout.h"

namespace ott {
namespace {

bool IsInterrupt(const RankState& rank) { return rank.terminated_by == kFlightInterrupt; }

// The clocks of the scheduler's host and of others may be this far apart.
constexpr absl::Duration kAroundTheEnd = absl::Seconds(10);

}  // namespace

std::string DescribeTermination(const JobState& job) {
  const RankState* first = nullptr;
  for (const RankState& rank : job.ranks) {
    if (rank.process == RankState::Process::kAlive || rank.process == RankState::Process::kStopped) return "";
    if (rank.known() && rank.terminated_ns > 0 &&
        (first == nullptr || rank.terminated_ns < first->terminated_ns)) {
      first = &rank;
    }
  }
  if (first == nullptr) return "";
  const absl::Time at = absl::FromUnixNanos(first->terminated_ns);
  const bool time_is_over = job.job_ends_s > 0 && at + kAroundTheEnd >= absl::FromUnixSeconds(job.job_ends_s);
  return absl::StrCat(first->terminated_by.empty() ? "somebody" : first->terminated_by, " ended the job",
                      IsInterrupt(*first) ? " at " : " by SIGTERM at ",
                      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", at, absl::UTCTimeZone()),
                      time_is_over      ? absl::StrCat(", when the time of ", job.job, " was over")
                      : job.job.empty() ? ""
                                        : absl::StrCat(" (", job.job, ")"));
}

std::string DescribeTerminationOfRank(const RankState& rank) {
  if (rank.terminated_ns == 0) return "";
  if (IsInterrupt(rank)) return absl::StrCat(", ended by ", rank.terminated_by);
  return absl::StrCat(", ended by SIGTERM",
                      rank.terminated_by.empty() ? "" : absl::StrCat(" from ", rank.terminated_by));
}

}  // namespace ott
