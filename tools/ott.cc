// The command `ott`.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "ott/core/base/version.h"
#include "ott/questions/answer/exit_code.h"
#include "ott/questions/kernels/prof_command.h"
#include "ott/questions/questions.h"
#include "ott/questions/waiting/waiting_answer.h"
#include "tools/profile/profile_command.h"
#include "tools/report/page.h"
#include "tools/report/report_command.h"
#include "tools/trace/trace_command.h"

namespace {

// Describes what is wrong with a command line: "ott stats: RUN is required; `ott stats --help` shows an
// example".
std::string DescribeError(const CLI::App* app, const CLI::Error& error) {
  const std::vector<CLI::App*> commands = app->get_subcommands();
  if (commands.empty() && !app->remaining().empty()) {
    return absl::StrCat("ott: no command '", app->remaining().front(), "'; `ott --help` lists them\n");
  }
  const std::string command = commands.empty() ? "ott" : "ott " + commands.front()->get_name();
  return absl::StrCat(command, ": ", error.what(), "; `", command, " --help` shows an example\n");
}

// Those that `add` adds stand under the title in the help.
template <typename Add>
void AddCommands(const ott::CommandLine& line, const char* title, const Add& add) {
  const size_t num_before = line.app.get_subcommands({}).size();
  add(line);
  const std::vector<CLI::App*> commands = line.app.get_subcommands({});
  for (size_t i = num_before; i < commands.size(); ++i) commands[i]->group(title);
}

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
  const ott::CommandLine line = {app, &exit_code,
                                 [](const ott::Document& document) { return ott::report::ToPage(document); }};
  AddCommands(line, "All questions at once", ott::report::AddReportCommand);
  for (const ott::Question& question : ott::AllQuestions()) {
    if (question.add_commands != nullptr) AddCommands(line, question.title, question.add_commands);
  }
  AddCommands(line, ott::waiting::kQuestion.title, ott::trace::AddTraceCommand);
  AddCommands(line, ott::kernels::kKernelsTitle, ott::profile::AddProfileCommand);
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
