#include "tools/profile/profile_command.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "ott/questions/answer/exit_code.h"
#include "tools/profile/profile_program.h"

namespace ott::profile {
namespace {

constexpr int kCannotExecute = 126, kNotFound = 127;  // as shells have it

void Say(const std::string& text) { std::fprintf(stderr, "ott profile: %s\n", text.c_str()); }

std::string Count(int64_t count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

void Report(const CaptureSummary& capture) {
  if (!capture.path.empty()) {
    Say(capture.path + ": " + Count(capture.num_ranges, "range") + ", " + Count(capture.num_marks, "mark") +
        ", " + Count(capture.num_kernels, "kernel") + " of " + capture.program + " (process " +
        std::to_string(capture.pid) + ")");
  }
  if (capture.num_dropped > 0) {
    Say("  " + Count(capture.num_dropped, "event") +
        " dropped: the buffer was full; --buffer-size makes it larger, --capture-range the capture shorter");
  }
  if (capture.num_truncated > 0) Say("  " + Count(capture.num_truncated, "text") + " cut to 32 KiB");
  if (capture.num_lost_rows > 0) Say("  " + Count(capture.num_lost_rows, "row") + " could not be written:");
  for (const std::string& problem : capture.problems) Say("  " + problem);
}

void Report(const ProfiledProgram& program) {
  if (program.captures.empty()) {
    Say("nothing was captured and no file written: the program made no NVTX call" +
        std::string(HasCudaDevice() ? ", and none to CUDA" : ""));
  }
  bool has_file = false, has_cuda = false;
  for (const CaptureSummary& capture : program.captures) {
    Report(capture);
    has_file |= !capture.path.empty();
    has_cuda |= capture.has_cuda;
  }
  for (const std::string& file : program.other_files) Say(file + " is not of this run; it was there before");
  if (!has_file || has_cuda) return;
  Say(HasCudaDevice() ? "NVTX only: the program did not use CUDA, or CUPTI could not be opened"
                      : "no CUDA device: NVTX only");
}

// Ends as the program ended; the core dump was the program's.
[[noreturn]] void EndBySignal(int signal) {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  ::signal(signal, SIG_DFL);
  raise(signal);
  std::_Exit(128 + signal);
}

int RunProfile(ProfileOptions options) {
  const absl::StatusOr<std::string> library = FindCaptureLibrary();
  if (!library.ok()) {
    Say(std::string(library.status().message()));
    return kExitCouldNotTell;
  }
  options.library = *library;
  if (options.capture_range == "cudaProfilerApi" && !HasCudaDevice()) {
    Say("--capture-range cudaProfilerApi needs a CUDA device, and this machine has none; profiler needs "
        "none");
    return kExitCouldNotTell;
  }
  const absl::StatusOr<ProfiledProgram> program = ProfileProgram(options);
  if (!program.ok()) {
    Say(std::string(program.status().message()));
    return kExitCouldNotTell;
  }
  if (program->start_error != 0) {
    Say(options.command[0] + ": " + std::strerror(program->start_error));
    return program->start_error == ENOENT ? kNotFound : kCannotExecute;
  }
  Report(*program);
  if (WIFSIGNALED(program->wait_status)) EndBySignal(WTERMSIG(program->wait_status));
  return WEXITSTATUS(program->wait_status);
}

}  // namespace

void AddProfileCommand(const CommandLine& line) {
  CLI::App* command =
      line.app.add_subcommand("profile", "Captures a program's NVTX ranges and CUDA kernels in a file");
  const auto options = std::make_shared<ProfileOptions>();
  command
      ->add_option("-o,--output", options->output,
                   "SQLite file, as Nsight Systems exports it; ranks add theirs")
      ->required();
  command->add_flag("-f,--force", options->overwrite, "Overwrite it");
  command
      ->add_option("--capture-range", options->capture_range, "Record between start and stop of this alone")
      ->check(CLI::IsMember({"none", "cudaProfilerApi", "profiler"}))
      ->capture_default_str();
  command->add_option("--buffer-size", options->buffer_mib, "MiB of memory that a process keeps events in")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  command->add_option("PROGRAM", options->command, "The program to run, after --, with its arguments")
      ->required();
  command->footer(
      "Exit code: the program's; 2 it was not started, 126 and 127 it cannot be, as shells have it.\n"
      "Examples:\n  ott profile -o out/run.sqlite -- train --iterations 10\n"
      "  mpirun -np 4 ott profile -o out/run.sqlite -- train    # out/run.rank_00000.sqlite and so on");
  command->callback([options, exit_code = line.exit_code] { *exit_code = RunProfile(*options); });
}

}  // namespace ott::profile
