// The command `ott`.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "ott/core/base/version.h"
#include "questions/faster/ab_command.h"
#include "questions/hang/hang_command.h"
#include "questions/kernels/prof_command.h"
#include "questions/origin/origin_command.h"
#include "questions/right/calibrate/calibrate_command.h"
#include "questions/right/compare/compare_command.h"
#include "questions/right/crosscheck/crosscheck_command.h"
#include "questions/right/show/show_command.h"
#include "questions/saved/whatif_command.h"
#include "questions/slow/stats_command.h"
#include "tools/capture/profile_command.h"
#include "tools/exit_code.h"
#include "tools/report/comparison_document.h"
#include "tools/report/report_command.h"
#include "tools/trace/trace_command.h"

namespace {

// What is wrong with a command line: "ott stats: RUN is required; `ott stats --help` shows an example".
std::string DescribeError(const CLI::App* app, const CLI::Error& error) {
  const std::vector<CLI::App*> commands = app->get_subcommands();
  if (commands.empty() && !app->remaining().empty()) {
    return absl::StrCat("ott: no command '", app->remaining().front(), "'; `ott --help` lists them\n");
  }
  const std::string command = commands.empty() ? "ott" : "ott " + commands.front()->get_name();
  return absl::StrCat(command, ": ", error.what(), "; `", command, " --help` shows an example\n");
}

// The question that each command answers.
constexpr std::pair<const char*, const char*> kQuestions[] = {
    {"report", "All questions at once"},
    {"stats", "Who is slow, and who waits for whom"},
    {"trace", "Who is slow, and who waits for whom"},
    {"whatif", "What would mending it save"},
    {"ab", "Did it become faster"},
    {"hang", "Why does it hang"},
    {"compare", "Is it still right"},
    {"crosscheck", "Is it still right"},
    {"calibrate", "Is it still right"},
    {"show", "Is it still right"},
    {"origin", "Which operation broke it"},
    {"profile", "What do the kernels do"},
    {"prof", "What do the kernels do"},
};

}  // namespace

int main(int argc, char** argv) {
  // A limit of the size of files is an error of the write. A handler, since programs that ott starts inherit
  // what is ignored.
  std::signal(SIGXFSZ, [](int) {});
  CLI::App app("Answers about runs of training programs: who is slow, and what first diverged.", "ott");
  app.set_version_flag("--version", absl::StrCat("ott ", ott::kVersion), "Print the version and exit");
  app.require_subcommand(1);
  app.failure_message(DescribeError);
  app.footer(
      "Example:\n  ott compare out/reference out/optimized\nEach subcommand's --help shows one of its own.");
  int exit_code = 0;
  // Help lists them in this order.
  ott::report::AddReportCommand(app, &exit_code);
  ott::stats::AddStatsCommand(app, &exit_code);
  ott::trace::AddTraceCommand(app, &exit_code);
  ott::whatif::AddWhatIfCommand(app, &exit_code);
  ott::ab::AddAbCommand(app, ott::report::ToComparisonPage, &exit_code);
  ott::hang::AddHangCommand(app, &exit_code);
  ott::compare::AddCompareCommand(app, &exit_code);
  ott::crosscheck::AddCrosscheckCommand(app, &exit_code);
  ott::calibrate::AddCalibrateCommand(app, &exit_code);
  ott::show::AddShowCommand(app, &exit_code);
  ott::origin::AddOriginCommand(app, &exit_code);
  ott::capture::AddProfileCommand(app, &exit_code);
  ott::prof::AddProfCommand(app, &exit_code);
  for (const auto& [command, question] : kQuestions) app.get_subcommand(command)->group(question);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help ends with 0; a wrong command line is as bad as a wrong file.
    if (app.exit(error) != 0) return ott::kExitCouldNotTell;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::fprintf(stderr, "ott: standard output: %s\n", std::strerror(errno));
    return ott::kExitCouldNotTell;
  }
  return exit_code;
}
