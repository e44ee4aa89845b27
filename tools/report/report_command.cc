#include "tools/report/report_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ott/core/base/file.h"
#include "tools/exit_code.h"
#include "tools/report/report_html.h"
#include "tools/report/report_text.h"
#include "tools/report/report_traces.h"
#include "tools/report/run_report.h"

namespace ott::report {
namespace {

struct ReportFlags {
  std::string run;
  std::string html;
};

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "ott report: %s\n", std::string(status.message()).c_str());
  return kExitCouldNotTell;
}

int ReportOfTraces(const ReportFlags& flags, const std::vector<std::string>& traces) {
  const absl::StatusOr<TracesReport> report = ReportTraces(flags.run, traces);
  if (!report.ok()) return Fail(report.status());
  std::fputs(report->text.c_str(), stdout);
  if (!flags.html.empty()) {
    if (const absl::Status status = WriteFileAtomically(flags.html, report->html); !status.ok())
      return Fail(status);
  }
  if (report->somebody_is_waited_for) return kExitBad;
  return report->complete ? kExitGood : kExitCouldNotTell;
}

int RunReportCommand(const ReportFlags& flags) {
  const std::vector<std::string> traces = ListTraces(flags.run);
  if (!traces.empty()) return ReportOfTraces(flags, traces);
  const absl::StatusOr<RunReport> report = ReadRunReport(flags.run);
  if (!report.ok()) return Fail(report.status());
  std::fputs(ToText(*report).c_str(), stdout);
  if (!flags.html.empty()) {
    if (const absl::Status status = WriteFileAtomically(flags.html, ToHtml(*report)); !status.ok()) {
      return Fail(status);
    }
  }
  if (report->diverged()) return kExitBad;
  return report->complete() ? kExitGood : kExitCouldNotTell;
}

}  // namespace

void AddReportCommand(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("report", "Who was slow and what first diverged in a run, in one report");
  const auto flags = std::make_shared<ReportFlags>();
  command
      ->add_option("RUN", flags->run,
                   "Run directory, also of a run that was cut short, or a directory of traces of "
                   "torch.profiler, one a rank")
      ->required();
  command->add_option("--html", flags->html, "Also writes the report as a page for the browser");
  command->footer(
      "Exit code: 0 complete and nothing diverged (of traces: nobody is waited for), 1 something diverged (a "
      "rank is waited for), 2 incomplete or RUN cannot be "
      "read.\n"
      "Examples:\n  ott report out/demo/faulty --html report.html\n"
      "  ott report log/traces --html report.html");
  command->callback([flags, exit_code] { *exit_code = RunReportCommand(*flags); });
}

}  // namespace ott::report
