// The command `ott`.

#include <malloc.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/text_table.h"
#include "ott/core/base/version.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/questions/answer/exit_code.h"
#include "ott/questions/kernels/prof_command.h"
#include "ott/questions/questions.h"
#include "ott/questions/waiting/waiting_answer.h"
#include "tools/launched.h"
#include "tools/profile/profile_command.h"
#include "tools/report/page.h"
#include "tools/report/report_command.h"
#include "tools/report/trace_piece.h"
#include "tools/trace/trace_command.h"

namespace {

// Describes what is wrong with a command line: "ott stats: RUN is required; `ott stats --help` shows an
// example".
std::string DescribeError(const CLI::App* app, const CLI::Error& error) {
  const std::vector<CLI::App*> commands = app->get_subcommands();
  if (commands.empty() && !app->remaining().empty()) {
    return absl::StrCat("ott: no command '", ott::EscapeControlCharacters(app->remaining().front()),
                        "'; `ott --help` lists them\n");
  }
  const std::string command = commands.empty() ? "ott" : "ott " + commands.front()->get_name();
  return absl::StrCat(command, ": ", ott::EscapeControlCharacters(error.what()), "; `", command,
                      " --help` shows an example\n");
}

// Those that `add` adds stand under the title in the help.
template <typename Add>
void AddCommands(const ott::CommandLine& line, const char* title, const Add& add) {
  const size_t num_before = line.app.get_subcommands({}).size();
  add(line);
  const std::vector<CLI::App*> commands = line.app.get_subcommands({});
  for (size_t i = num_before; i < commands.size(); ++i) commands[i]->group(title);
}

// Returns what --threads says, for processes that do not parse their command line; 0 without.
int ThreadsOf(int argc, char** argv) {
  const std::string kFlag = "--threads";
  int number = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == kFlag && i + 1 < argc) (void)absl::SimpleAtoi(argv[i + 1], &number);
    if (argument.compare(0, kFlag.size() + 1, kFlag + "=") == 0)
      (void)absl::SimpleAtoi(argument.substr(kFlag.size() + 1), &number);
  }
  return number;
}

// exit_code: as a subcommand set it.
int ParseAndRun(int argc, char** argv, CLI::App& app, const int& exit_code) {
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

}  // namespace

int main(int argc, char** argv) {
  // A limit of the size of files is an error of the write. A handler, since programs that ott starts inherit
  // what is ignored.
  std::signal(SIGXFSZ, [](int) {});
  // Large blocks stay mappings of their own, which grow without a copy and go back to the system. glibc would
  // put them among the small ones after the first is freed.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  // `ott help stats` is `ott stats --help`.
  char help[] = "--help";
  if (argc > 1 && std::strcmp(argv[1], "help") == 0) {
    argv[1] = argc > 2 ? argv[2] : help;
    if (argc > 2) argv[2] = help;
  }
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
  std::vector<ott::ShareTask> tasks = ott::report::ShareTasks();
  for (const ott::Question& question : ott::AllQuestions()) {
    tasks.insert(tasks.end(), question.tasks.begin(), question.tasks.end());
    if (question.add_commands != nullptr) AddCommands(line, question.title, question.add_commands);
  }
  AddCommands(line, ott::waiting::kQuestion.title, ott::trace::AddTraceCommand);
  AddCommands(line, ott::kernels::kKernelsTitle, ott::profile::AddProfileCommand);
  int num_threads = 0;
  for (const char* command : ott::kSharedCommands) {
    app.get_subcommand(command)
        ->add_option("--threads", num_threads, "Cores to use; by default all that the process may")
        ->check(CLI::Range(1, 4096));
  }
  ott::SetDefaultNumThreads(ThreadsOf(argc, argv));
  const auto run = [&] { return ParseAndRun(argc, argv, app, exit_code); };
  const std::optional<int> together = ott::RunLaunched(argc, argv, std::move(tasks), run);
  return together ? *together : run();
}
