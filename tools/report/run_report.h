// What a run left on disk in one report: who is slow, and what first diverged.

#ifndef OTT_TOOLS_REPORT_RUN_REPORT_H_
#define OTT_TOOLS_REPORT_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/verdict_log.h"
#include "ott/dist/directory/run_info.pb.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/hang/hang.pb.h"
#include "ott/questions/origin/origin.pb.h"
#include "ott/questions/right/crosscheck/error_trend.h"
#include "ott/questions/saved/what_if.pb.h"

namespace ott::report {

// The cross-checks of one mode.
struct CheckHistory {
  // The worst verdict of each iteration over the ranks, of several the one that names the tensor that comes
  // first in order of insertion, and then the lowest rank's; ascending.
  std::vector<CrossCheckVerdict> verdicts;
  VerdictSummary summary;

  // Null if none is DIFFERENT.
  const CrossCheckVerdict* first_divergence() const;
};

struct RunReport {
  std::string run_dir;
  // Absent, as is stats, where the run did not leave it; problems says why where that is a loss.
  std::optional<RunInfo> info;
  std::optional<ClusterStats> stats;
  // The numbers of run_dir/attempt_N, which are runs of their own.
  std::vector<int> attempts;
  // Absent where no iterations were kept; what_if_problem says why.
  std::optional<WhatIfAnswer> what_if;
  std::string what_if_problem;
  // Absent where no rank kept a flight recorder.
  std::optional<HangVerdict> hang;
  // What a rank found while the run stood; absent where it never did.
  std::optional<HangVerdict> earlier_hang;
  CheckHistory replicas;
  CheckHistory reference;
  // Of what each rank is to have of its own.
  CheckHistory distinct;
  // Of the checks against the reference.
  crosscheck::ErrorTrend error_trend;
  // Absent where nobody asked, or it could not be told; origin_problem says why.
  std::optional<OriginVerdict> origin;
  std::string origin_problem;
  // With runs of before, where some were given.
  std::optional<ab::Comparison> comparison;
  // What is missing or cannot be read: the report is INCOMPLETE where there is any.
  std::vector<std::string> problems;

  // Seconds since rank 0 last gathered the statistics of all; absent where it did not.
  std::optional<double> gather_age;

  // By what they are called: "replicas", "reference", "distinct".
  std::vector<std::pair<std::string, const CheckHistory*>> checks() const;
  bool diverged() const;
  bool hangs() const;
  // The iteration with which the process's count begins.
  int64_t start_iteration() const;
  // Whether everything that was to be measured and compared was.
  bool complete() const;
};

// NOT_FOUND if run_dir is no run directory, or neither statistics nor verdicts are there.
absl::StatusOr<RunReport> ReadRunReport(const std::string& run_dir);

// Which operation first computed something else than in the run `reference`. perturbed: empty for none; see
// questions/origin/origin.h.
void AddOrigin(const std::string& reference, const std::string& perturbed, RunReport* report);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_RUN_REPORT_H_
