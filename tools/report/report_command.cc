#include "tools/report/report_command.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/exit_code.h"
#include "ott/questions/questions.h"
#include "ott/questions/right/compare/compare_answer.h"
#include "ott/questions/right/compare/compare_runs.h"
#include "ott/questions/right/compare/runs_report.h"
#include "tools/report/document_json.h"
#include "tools/report/document_text.h"
#include "tools/report/page.h"
#include "tools/report/prometheus.h"
#include "tools/report/report_traces.h"
#include "tools/report/run_report.h"

namespace ott::report {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::vector<std::string> before;
  std::string reference;
  std::string perturbed;
  std::string html;
  std::string prometheus;
  std::string format = "text";
  std::string color = "auto";
  bool follow = false;
  int every_seconds = 5;

  bool wants_pictures() const { return !html.empty() || format == "json"; }
  bool wants_metrics() const { return !prometheus.empty() || format == "prometheus"; }
};

struct Report {
  Document document;
  std::string prometheus;
  std::optional<RunReport> run;
};

absl::StatusOr<Report> ReportOfTraces(const ReportFlags& flags, const std::vector<std::string>& traces) {
  if (flags.wants_metrics() || !flags.before.empty() || !flags.reference.empty() || flags.runs.size() > 1 ||
      flags.follow) {
    return absl::InvalidArgumentError(flags.runs.front() +
                                      ": has traces, and --before, --reference, --follow, metrics of "
                                      "Prometheus and several directories are for runs");
  }
  Report report;
  OTT_ASSIGN_OR_RETURN(report.document, ReportTraces(flags.runs.front(), traces, flags.wants_pictures()));
  return report;
}

absl::StatusOr<Report> ReportOfCheckpoints(const ReportFlags& flags) {
  const std::string& run = flags.runs.front();
  if (flags.reference.empty() || flags.wants_metrics() || !flags.before.empty() || !flags.perturbed.empty() ||
      flags.runs.size() > 1 || flags.follow) {
    return absl::InvalidArgumentError(
        run +
        ": is no run, and of a checkpoint the report compares the one that --reference names, nothing "
        "else; `ott show` says what it holds");
  }
  OTT_ASSIGN_OR_RETURN(const compare::RunsComparison comparison, compare::CompareRuns(flags.reference, run));
  Report report;
  report.document.title = run;
  report.document.subject = "checkpoints, compared with " + EscapeControlCharacters(flags.reference);
  report.document.answers = {compare::AnswerCompare(comparison)};
  report.document.details = {{"All that was compared", compare::ToText(comparison)}};
  return report;
}

// before: of the same flags; null: none.
absl::StatusOr<Report> MakeReport(const ReportFlags& flags, const RunReport* before = nullptr) {
  const std::string& run = flags.runs.front();
  if (!IsRunDirectory(LatestAttempt(run)) && IsCheckpoint(run)) return ReportOfCheckpoints(flags);
  const std::vector<std::string> traces = ListTraces(run);
  if (!traces.empty()) return ReportOfTraces(flags, traces);
  if (flags.runs.size() > 1 && flags.before.empty()) {
    return absl::InvalidArgumentError("several runs are one side of a comparison: --before names the other");
  }
  AskedRun asked;
  asked.run_dir = run;
  asked.reference = flags.reference;
  asked.perturbed = flags.perturbed;
  asked.runs = flags.runs;
  asked.before = flags.before;
  OTT_ASSIGN_OR_RETURN(RunReport run_report, ReadRunReport(std::move(asked), AllQuestions(), before));
  Report report;
  report.document = MakeDocument(run_report);
  if (flags.wants_pictures()) AddPictures(run_report, &report.document);
  if (!run_report.files || run_report.files->HasOfRank("torch"))
    AddTorchTraces(run, flags.wants_pictures(), &report.document);
  if (flags.wants_metrics()) report.prometheus = ToPrometheus(run_report, report.document);
  report.run = std::move(run_report);
  return report;
}

std::string Format(const Report& report, const ReportFlags& flags) {
  if (flags.format == "prometheus") return report.prometheus;
  if (flags.format == "json") return Dump(ToJson(report.document), /*indent=*/1);
  const TextStyle style = StyleOfStandardOutput(flags.color);
  return flags.follow ? ToSummary(report.document, style) : ToText(report.document, style);
}

absl::Status WriteFiles(const Report& report, const ReportFlags& flags) {
  if (!flags.prometheus.empty())
    OTT_RETURN_IF_ERROR(WriteFileAtomically(flags.prometheus, report.prometheus));
  if (flags.html.empty()) return absl::OkStatus();
  PageOptions options;
  if (flags.follow) options.reload_seconds = flags.every_seconds;
  return WriteFileAtomically(flags.html, ToPage(report.document, options));
}

absl::StatusOr<int> ReportOnce(const ReportFlags& flags) {
  OTT_ASSIGN_OR_RETURN(const Report report, MakeReport(flags));
  std::fputs(Format(report, flags).c_str(), stdout);
  OTT_RETURN_IF_ERROR(WriteFiles(report, flags));
  return ExitCodeOf(report.document.finding());
}

volatile std::sig_atomic_t g_interrupted = 0;

void Interrupt(int) { g_interrupted = 1; }

using Clock = std::chrono::steady_clock;

// Sleeps until the next report, or until the user has enough.
void WaitUntil(Clock::time_point end) {
  constexpr Clock::duration kLongest = std::chrono::milliseconds(100);
  for (Clock::duration left; g_interrupted == 0 && (left = end - Clock::now()) > Clock::duration::zero();)
    std::this_thread::sleep_for(std::min(left, kLongest));
}

// Keeps reports of many ranks to a small share of a core, so that those that compute here are not disturbed.
// One that costs more, as all files have changed, is paid for by those before it: they may save up for some
// seconds.
class Budget {
 public:
  explicit Budget(int every_seconds) : every_(every_seconds) {}

  // Returns the time from the begin of a report, which took so much CPU time, to the begin of the next one.
  Clock::duration PeriodAfter(double cpu_seconds) {
    saved_ -= cpu_seconds;
    const double period = std::max(every_, -saved_ / kShareOfCore);
    saved_ = std::min(saved_ + period * kShareOfCore, kMostSaved);
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(period));
  }

 private:
  static constexpr double kShareOfCore = 0.04;
  static constexpr double kMostSaved = 10 * kShareOfCore;
  const double every_;
  double saved_ = kMostSaved;
};

// Until it is interrupted; then its exit code is the last report's. On a terminal each report takes the place
// of the one before.
absl::StatusOr<int> Follow(const ReportFlags& flags) {
  std::signal(SIGINT, Interrupt);
  std::signal(SIGTERM, Interrupt);
  int exit_code = kExitCouldNotTell;
  std::optional<RunReport> before;
  Budget budget(flags.every_seconds);
  const bool replaces = flags.format == "text" && StyleOfStandardOutput("auto").width > 0;
  while (true) {
    const Clock::time_point begin = Clock::now();
    const std::clock_t cpu_begin = std::clock();
    absl::StatusOr<Report> report = MakeReport(flags, before ? &*before : nullptr);
    if (absl::IsInvalidArgument(report.status())) return report.status();
    if (replaces) std::fputs("\033[H\033[2J", stdout);
    if (report.ok()) {
      exit_code = ExitCodeOf(report->document.finding());
      std::fputs(Format(*report, flags).c_str(), stdout);
      OTT_RETURN_IF_ERROR(WriteFiles(*report, flags));
      before = std::move(report->run);
    } else {
      // A run that has not begun to write will.
      std::printf("waiting: %s\n", EscapeControlCharacters(std::string(report.status().message())).c_str());
    }
    if (std::fflush(stdout) != 0) return kExitCouldNotTell;
    const double cpu_seconds = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
    WaitUntil(begin + budget.PeriodAfter(cpu_seconds));
    if (g_interrupted != 0) return exit_code;
  }
}

}  // namespace

void AddReportCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand(
      "report", "All questions in one report: who is slow, does it hang, is it right, did it become faster");
  const auto flags = std::make_shared<ReportFlags>();
  command
      ->add_option(
          "RUN", flags->runs,
          "Run directory, also of a run that goes on or was cut short; or a directory of traces of "
          "torch.profiler, one a rank; or a checkpoint, with --reference. Further runs are for --before")
      ->required();
  command->add_option("--before", flags->before, "Runs of another version: did it become faster since?");
  CLI::Option* const reference = command->add_option(
      "--reference", flags->reference,
      "Run to compare with: which operation first computed something else (`ott origin`), or "
      "where neither logged operations, which dumped tensor first differs (`ott compare`)");
  command
      ->add_option("--perturbed", flags->perturbed,
                   "The reference's program with `perturb {}`: what rounding grows to there is no finding")
      ->needs(reference);
  command->add_option("--html", flags->html, "Also writes the report as a page for the browser, in one file");
  command->add_option("--prometheus", flags->prometheus,
                      "Also writes metrics to this file, for the node exporter's text files");
  command->add_option("--format", flags->format, "json and prometheus are described in docs/report.md")
      ->check(CLI::IsMember({"text", "json", "prometheus"}))
      ->capture_default_str();
  command->add_option("--color", flags->color, "auto: on a terminal, unless NO_COLOR is set")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command->add_flag("--follow", flags->follow,
                    "Reports again and again until it is interrupted; the page reloads itself");
  command
      ->add_option("--every", flags->every_seconds,
                   "Seconds between two reports; more where they take over 4 % of a core")
      ->check(CLI::Range(1, 86400))
      ->needs("--follow")
      ->capture_default_str();
  command->footer(
      "Exit code: 0 all answers that were asked for are good, 1 one is bad news, 2 none is, but one cannot "
      "be\n"
      "told, or RUN is incomplete or cannot be read.\n"
      "Examples:\n"
      "  ott report out/demo/faulty --html report.html\n"
      "  ott report out/new_* --before out/old_*\n"
      "  ott report out/run --reference out/good --perturbed out/perturbed\n"
      "  ott report out/run --follow --html live.html --prometheus "
      "/var/lib/prometheus/node-exporter/ott.prom\n"
      "  ott report log/traces --html report.html\n"
      "  ott report resumed/step_200.pt --reference run/step_200.pt --html report.html");
  command->callback([flags, exit_code = line.exit_code] {
    *exit_code = FinishCommand("report", flags->follow ? Follow(*flags) : ReportOnce(*flags));
  });
}

}  // namespace ott::report
