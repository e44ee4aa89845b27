// The command `ott`.

#include "CLI/CLI.hpp"
#include "tools/calibrate/calibrate_command.h"
#include "tools/capture/profile_command.h"
#include "tools/compare/compare_command.h"
#include "tools/crosscheck/crosscheck_command.h"
#include "tools/exit_code.h"
#include "tools/prof/prof_command.h"
#include "tools/report/report_command.h"
#include "tools/stats/stats_command.h"
#include "tools/trace/trace_command.h"

int main(int argc, char** argv) {
  CLI::App app("Answers about runs of training programs: who is slow, and what first diverged.", "ott");
  app.require_subcommand(1);
  app.footer(
      "Example:\n  ott compare out/reference out/optimized\nEach subcommand's --help shows one of its own.");
  int exit_code = 0;
  ott::AddCalibrateCommand(app, &exit_code);
  ott::AddCompareCommand(app, &exit_code);
  ott::AddCrosscheckCommand(app, &exit_code);
  ott::AddProfCommand(app, &exit_code);
  ott::AddProfileCommand(app, &exit_code);
  ott::AddReportCommand(app, &exit_code);
  ott::AddStatsCommand(app, &exit_code);
  ott::AddTraceCommand(app, &exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help ends with 0; a wrong command line is as bad as a wrong file.
    return app.exit(error) == 0 ? 0 : ott::kExitCouldNotTell;
  }
  return exit_code;
}
