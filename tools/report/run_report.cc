#include "tools/report/run_report.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/verdict.h"
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

// What is kept of the ranks' verdicts in one iteration.
struct RanksVerdicts {
  // Of those on a reference, the one that comes first.
  CrossCheckVerdict first;
  // The worst that a rank found or heard of.
  CrossCheckVerdict worst;
};
// Of one mode.
struct Verdicts {
  std::map<int64_t, RanksVerdicts> by_iteration;
  double max_abs_error = 0;  // on any rank
};
struct VerdictsByMode {
  Verdicts replicas;
  Verdicts reference;
  Verdicts distinct;
};

// Of all ranks first, as far as this rank heard of them, then of this rank.
std::pair<int, int> Severity(const CrossCheckVerdict& verdict) {
  return {SeverityOf(OutcomeOfAllRanks(verdict)), SeverityOf(verdict.outcome())};
}

void Keep(CrossCheckVerdict verdict, Verdicts& verdicts) {
  verdicts.max_abs_error = std::max(verdicts.max_abs_error, verdict.max_abs_error());
  verdict.clear_tensor_errors();
  const auto [position, is_new] = verdicts.by_iteration.try_emplace(verdict.iteration());
  RanksVerdicts& kept = position->second;
  if (verdict.mode() == REFERENCE) AddToFirst(verdict, kept.first);
  if (is_new || Severity(verdict) > Severity(kept.worst)) kept.worst = std::move(verdict);
}

// What a rank found says more than what another heard of it.
CrossCheckVerdict& Choose(RanksVerdicts& kept) {
  const bool found = SeverityOf(kept.first.outcome()) == SeverityOf(OutcomeOfAllRanks(kept.worst));
  return kept.first.num_ranks() > 0 && found ? kept.first : kept.worst;
}

// Of the verdicts for which there was no room; empty if there was for all.
std::string DescribeOmitted(const std::string& path) {
  if (!PathExists(path)) return "";
  const absl::StatusOr<std::string> json = ReadFile(path, 1 << 20);
  if (!json.ok()) return std::string(json.status().message());
  OmittedVerdicts omitted;
  if (const absl::Status status = JsonToProto(*json, &omitted); !status.ok()) {
    return absl::StrCat(path, ": ", std::string(status.message()));
  }
  return absl::StrCat("cross_check.jsonl was full; from iteration ", omitted.first_iteration(), " on ",
                      omitted.num_checks(), " checks are only counted, of which ", omitted.num_different(),
                      " DIFFER and ", omitted.num_not_compared(), " are NOT COMPARED");
}

// Lines of cross_check.jsonl. The last one of a killed rank may be cut. Returns the last iteration that was
// checked; -1: none.
int64_t ReadVerdicts(const std::string& path, std::string_view lines, VerdictsByMode& by_mode,
                     RunReport& report) {
  int64_t last_iteration = -1;
  int line_number = 0;
  while (!lines.empty()) {
    ++line_number;
    const size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    absl::StatusOr<CrossCheckVerdict> verdict = ParseVerdict(line);
    if (!verdict.ok()) {
      report.problems.push_back(absl::StrCat(path, ": line ", line_number, ": ", verdict.status().message()));
    } else {
      Verdicts& verdicts = verdict->mode() == REFERENCE  ? by_mode.reference
                           : verdict->mode() == DISTINCT ? by_mode.distinct
                                                         : by_mode.replicas;
      if (verdict->mode() == REFERENCE) report.error_trend.Add(*verdict);
      last_iteration = std::max(last_iteration, verdict->iteration());
      Keep(*std::move(verdict), verdicts);
    }
  }
  return last_iteration;
}

// Ranks whose verdicts end before those of others. In a run that goes on, some are a check behind.
void AddVerdictsThatEndEarly(const std::map<int64_t, std::vector<int>>& ranks_by_last_iteration,
                             const VerdictsByMode& by_mode, std::vector<std::string>& problems) {
  std::set<int64_t> iterations;
  for (const Verdicts* const verdicts : {&by_mode.replicas, &by_mode.reference, &by_mode.distinct}) {
    for (const auto& [iteration, unused] : verdicts->by_iteration) iterations.insert(iteration);
  }
  if (iterations.size() < 2) return;
  for (const auto& [iteration, ranks] : ranks_by_last_iteration) {
    if (iteration >= *std::next(iterations.rbegin())) break;
    problems.push_back(
        absl::StrCat("verdicts of ", FormatRanks(ranks), " end ",
                     iteration < 0 ? "before the first" : absl::StrCat("at iteration ", iteration),
                     ", those of others at ", *iterations.rbegin()));
  }
}

absl::StatusOr<CheckHistory> Summarize(Verdicts verdicts) {
  CheckHistory history;
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<VerdictLog> log, VerdictLog::Open(""));
  for (auto& [iteration, kept] : verdicts.by_iteration) {
    history.verdicts.push_back(std::move(Choose(kept)));
    OTT_RETURN_IF_ERROR(log->Add(history.verdicts.back()));
  }
  history.summary = log->replicas().num_checks > 0   ? log->replicas()
                    : log->distinct().num_checks > 0 ? log->distinct()
                                                     : log->reference();
  history.summary.max_abs_error = verdicts.max_abs_error;
  return history;
}

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
  if (const absl::StatusOr<whatif::Job> job = whatif::ReadRunJob(report.run_dir); job.ok()) {
    report.what_if = whatif::AnswerWhatIf(*job);
    if (job->incomplete) {
      report.problems.push_back(absl::StrCat("what would be saved: ", job->notes.front()));
    }
  } else {
    report.what_if_problem = std::string(job.status().message());
    if (!absl::IsNotFound(job.status())) report.problems.push_back(report.what_if_problem);
  }
}

absl::Status ReadChecks(const std::vector<int>& ranks, RunReport& report) {
  VerdictsByMode by_mode;
  std::vector<int> ranks_with_verdicts;
  std::map<int64_t, std::vector<int>> ranks_by_last_iteration;
  for (const int rank : ranks) {
    const std::string path = RankDirectory(report.run_dir, rank) + "/cross_check.jsonl";
    if (!PathExists(path)) continue;
    ranks_with_verdicts.push_back(rank);
    if (const std::string omitted = DescribeOmitted(OmittedVerdictsPath(path)); !omitted.empty()) {
      report.problems.push_back(absl::StrCat("rank ", rank, ": ", omitted));
    }
    if (const absl::StatusOr<std::string> lines = ReadFile(path); lines.ok()) {
      ranks_by_last_iteration[ReadVerdicts(path, *lines, by_mode, report)].push_back(rank);
    } else {
      report.problems.push_back(std::string(lines.status().message()));
    }
  }
  const int world_size = report.info ? report.info->world_size() : static_cast<int>(ranks.size());
  const bool wants_verdicts =
      report.info ? report.info->config().has_cross_check() : !by_mode.replicas.by_iteration.empty();
  if (wants_verdicts && static_cast<int>(ranks_with_verdicts.size()) < world_size) {
    report.problems.push_back(absl::StrCat("verdicts of ", ranks_with_verdicts.size(), " of ", world_size,
                                           " ranks, those of ", FormatRanks(ranks_with_verdicts)));
  }
  AddVerdictsThatEndEarly(ranks_by_last_iteration, by_mode, report.problems);
  OTT_ASSIGN_OR_RETURN(report.replicas, Summarize(std::move(by_mode.replicas)));
  OTT_ASSIGN_OR_RETURN(report.reference, Summarize(std::move(by_mode.reference)));
  OTT_ASSIGN_OR_RETURN(report.distinct, Summarize(std::move(by_mode.distinct)));
  return absl::OkStatus();
}

// By the time at which the file was written.
std::optional<double> AgeOf(const std::string& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (error) return std::nullopt;
  return std::chrono::duration<double>(std::filesystem::file_time_type::clock::now() - written).count();
}

}  // namespace

const CrossCheckVerdict* CheckHistory::first_divergence() const {
  const auto first = std::find_if(verdicts.begin(), verdicts.end(), [](const CrossCheckVerdict& verdict) {
    return OutcomeOfAllRanks(verdict) == DIFFERENT;
  });
  return first == verdicts.end() ? nullptr : &*first;
}

std::vector<std::pair<std::string, const CheckHistory*>> RunReport::checks() const {
  return {{"replicas", &replicas}, {"reference", &reference}, {"distinct", &distinct}};
}

bool RunReport::diverged() const {
  if (origin && origin->kind() != "none" && origin->kind() != "unknown") return true;
  const auto all = checks();
  return std::any_of(all.begin(), all.end(),
                     [](const auto& of) { return of.second->summary.num_different > 0; });
}

bool RunReport::hangs() const { return hang && hang->answer() == HangVerdict::HANGING; }

int64_t RunReport::start_iteration() const {
  if (!info) return 0;
  return info->resumptions().empty() ? info->config().start_iteration()
                                     : info->resumptions().rbegin()->start_iteration();
}

bool RunReport::complete() const {
  if (!origin_problem.empty() || (origin && origin->kind() == "unknown")) return false;
  if (hang && hang->answer() == HangVerdict::CANNOT_TELL) return false;
  const auto all = checks();
  return problems.empty() && std::all_of(all.begin(), all.end(), [](const auto& of) {
           return of.second->summary.num_not_compared == 0;
         });
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
  OTT_RETURN_IF_ERROR(ReadChecks(ranks, report));
  if (const size_t num_problems = report.problems.size(); num_problems > kMaxProblems) {
    report.problems.resize(kMaxProblems);
    report.problems.push_back(absl::StrCat("and ", num_problems - kMaxProblems, " more"));
  }
  const auto checks = report.checks();
  const bool has_verdicts =
      std::any_of(checks.begin(), checks.end(), [](const auto& of) { return !of.second->verdicts.empty(); });
  // A job that hung before it measured anything is told by its recorders.
  const bool stood =
      report.earlier_hang || (report.hang && report.hang->answer() != HangVerdict::NOT_HANGING);
  if (!report.stats && !has_verdicts && !stood) {
    return absl::NotFoundError(absl::StrCat(run_dir, ": neither statistics nor verdicts of cross-checks",
                                            report.problems.empty() ? "" : ": ",
                                            report.problems.empty() ? "" : report.problems.front()));
  }
  return report;
}

void AddOrigin(const std::string& reference, const std::string& perturbed, RunReport* report) {
  absl::StatusOr<OriginVerdict> origin = origin::FindOrigin(reference, report->run_dir, perturbed);
  if (origin.ok()) {
    report->origin = *std::move(origin);
  } else {
    report->origin_problem = std::string(origin.status().message());
  }
}

}  // namespace ott::report
