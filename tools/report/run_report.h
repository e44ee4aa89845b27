// Reports on what a run left on disk: who is slow, and what first diverged.

#ifndef OTT_TOOLS_REPORT_RUN_REPORT_H_
#define OTT_TOOLS_REPORT_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/dist/directory/run_info.pb.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/hang/hang.pb.h"
#include "ott/questions/origin/origin.pb.h"
#include "ott/questions/right/crosscheck/check_history.h"
#include "ott/questions/saved/what_if.pb.h"

namespace ott::report {

struct RunReport {
  std::string run_dir;
  // Absent, as is stats, where the run did not leave it; problems says why where that is a loss.
  std::optional<RunInfo> info;
  std::optional<ClusterStats> stats;
  // The numbers of run_dir/attempt_N, which are runs of their own.
  std::vector<int> attempts;
  // NOT_FOUND where no iterations were kept.
  absl::StatusOr<WhatIfAnswer> what_if = absl::NotFoundError("no iterations were kept");
  // Absent where no rank kept a flight recorder.
  std::optional<HangVerdict> hang;
  // The verdict that a rank found while the run stood; absent where it never did.
  std::optional<HangVerdict> earlier_hang;
  crosscheck::CheckHistories checks;
  // Absent where nobody asked.
  std::optional<absl::StatusOr<OriginVerdict>> origin;
  // With runs of before, where some were given.
  std::optional<ab::Comparison> comparison;
  // Says what is missing or cannot be read: the report is INCOMPLETE where there is any.
  std::vector<std::string> problems;

  // Seconds since rank 0 last gathered the statistics of all; absent where it did not.
  std::optional<double> gather_age;

  // The iteration with which the process's count begins.
  int64_t start_iteration() const;
};

// NOT_FOUND if run_dir is no run directory, or neither statistics nor verdicts are there.
absl::StatusOr<RunReport> ReadRunReport(const std::string& run_dir);

// Which operation first computed something else than in the run `reference`. perturbed: empty for none; see
// questions/origin/origin.h.
void AddOrigin(const std::string& reference, const std::string& perturbed, RunReport* report);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_RUN_REPORT_H_
