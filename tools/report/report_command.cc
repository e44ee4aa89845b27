#include "tools/report/report_command.h"

#include <cstdio>
#include <memory>
#include <string>

#include "ott/core/base/file.h"
#include "tools/exit_code.h"
#include "tools/report/report_html.h"
#include "tools/report/report_text.h"
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

int RunReportCommand(const ReportFlags& flags) {
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
  command->add_option("RUN", flags->run, "Run directory, also of a run that was cut short")->required();
  command->add_option("--html", flags->html, "Also writes the report as a page for the browser");
  command->footer(
      "Exit code: 0 complete and nothing diverged, 1 something diverged, 2 incomplete or RUN cannot be "
      "read.\n"
      "Example:\n  ott report out/demo/faulty --html report.html");
  command->callback([flags, exit_code] { *exit_code = RunReportCommand(*flags); });
}

}  // namespace ott::report
