#include "tools/report/run_report.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/diagnosis.h"
#include "ott/questions/hang/found_hang.h"
#include "ott/questions/hang/run_state.h"
#include "ott/questions/origin/origin.h"
#include "ott/questions/saved/run_job.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/slow/read_cluster_stats.h"

namespace ott::report {
namespace {

constexpr size_t kMaxProblems = 10;

void ReadStats(RunReport& report) {
  const bool wants_stats = !report.info || report.info->config().has_stopwatch();
  std::vector<std::string> stats_problems;
  if (absl::StatusOr<ClusterStats> stats = stats::ReadClusterStats(report.run_dir, &stats_problems);
      stats.ok()) {
    report.stats = *std::move(stats);
    if (!report.stats->missing_ranks().empty()) {
      report.problems.push_back(absl::StrCat(
          "no statistics of ",
          FormatRanks({report.stats->missing_ranks().begin(), report.stats->missing_ranks().end()})));
    }
    if (report.stats->min_measured_iters() != report.stats->max_measured_iters()) {
      report.problems.push_back(absl::StrCat("the statistics of some ranks end after ",
                                             report.stats->min_measured_iters(), " of ",
                                             report.stats->max_measured_iters(), " iterations"));
    }
    // What a missing rank left has been said.
    if (report.stats->missing_ranks().empty() && report.info) {
      report.problems.insert(report.problems.end(), stats_problems.begin(), stats_problems.end());
    }
  } else if (wants_stats) {
    report.problems.push_back(std::string(stats.status().message()));
  }
}

// Whether the job stands still, and what was found when it did.
void ReadHang(const std::vector<int>& ranks, RunReport& report) {
  std::error_code error;
  const bool is_recorded = std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    return std::filesystem::exists(FlightPath(report.run_dir, rank), error);
  });
  HangOptions options;
  if (report.info && report.info->config().hang().after_seconds() > 0) {
    options.after_seconds = report.info->config().hang().after_seconds();
  }
  if (is_recorded) {
    const absl::StatusOr<JobState> job = ReadRunState(report.run_dir, RunStateEnvironment::Real());
    if (job.ok()) {
      report.hang = DiagnoseHang(*job, options);
    } else {
      report.problems.push_back(std::string(job.status().message()));
    }
  }
  absl::StatusOr<std::optional<HangVerdict>> found = hang::ReadFoundHang(report.run_dir);
  if (!found.ok()) {
    report.problems.push_back(std::string(found.status().message()));
  } else if (*found && (!report.hang || hang::StillHolds(**found, *report.hang))) {
    report.hang = *std::move(found);
  } else {
    report.earlier_hang = *std::move(found);
  }
}

void ReadWhatIf(RunReport& report) {
  const absl::StatusOr<whatif::Job> job = whatif::ReadRunJob(report.run_dir);
  if (job.ok()) {
    report.what_if = whatif::AnswerWhatIf(*job);
    if (job->incomplete) {
      report.problems.push_back(absl::StrCat("what would be saved: ", job->notes.front()));
    }
  } else {
    report.what_if = job.status();
    if (!absl::IsNotFound(job.status())) report.problems.push_back(std::string(job.status().message()));
  }
}

// By the time at which the file was written.
std::optional<double> AgeOf(const std::string& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (error) return std::nullopt;
  return std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written).count();
}

}  // namespace

int64_t RunReport::start_iteration() const {
  if (!info) return 0;
  return info->resumptions().empty() ? info->config().start_iteration()
                                     : info->resumptions().rbegin()->start_iteration();
}

absl::StatusOr<RunReport> ReadRunReport(const std::string& run_dir) {
  OTT_RETURN_IF_ERROR(CheckRunDirectory(run_dir));
  RunReport report;
  report.run_dir = run_dir;
  report.attempts = ListAttempts(run_dir);
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  if (absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir); info.ok()) {
    report.info = *std::move(info);
  } else {
    report.problems.push_back(std::string(info.status().message()));
  }

  ReadStats(report);
  report.gather_age = AgeOf(ClusterStatsPath(run_dir));
  ReadHang(ranks, report);
  ReadWhatIf(report);
  OTT_ASSIGN_OR_RETURN(report.checks, crosscheck::ReadCheckHistories(run_dir, ranks, report.info));
  report.problems.insert(report.problems.end(), report.checks.problems.begin(), report.checks.problems.end());
  if (const size_t num_problems = report.problems.size(); num_problems > kMaxProblems) {
    report.problems.resize(kMaxProblems);
    report.problems.push_back(absl::StrCat("and ", num_problems - kMaxProblems, " more"));
  }
  // A job that hung before it measured anything is told by its recorders.
  const bool stood =
      report.earlier_hang || (report.hang && report.hang->answer() != HangVerdict::NOT_HANGING);
  const bool has_verdicts = !report.checks.replicas.verdicts.empty() ||
                            !report.checks.reference.verdicts.empty() ||
                            !report.checks.distinct.verdicts.empty();
  if (!report.stats && !has_verdicts && !stood) {
    return absl::NotFoundError(absl::StrCat(run_dir, ": neither statistics nor verdicts of cross-checks",
                                            report.problems.empty() ? "" : ": ",
                                            report.problems.empty() ? "" : report.problems.front()));
  }
  return report;
}

void AddOrigin(const std::string& reference, const std::string& perturbed, RunReport* report) {
  report->origin = origin::FindOrigin(reference, report->run_dir, perturbed);
}

}  // namespace ott::report
