#include "questions/faster/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ott/core/base/spawn_arguments.h"
#include "ott/core/base/text_table.h"
#include "ott/core/stopwatch/cpu_usage.h"

namespace ott::faster {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace(5);

// Returns errno.
int Spawn(Program& program, const sigset_t& mask, pid_t* child) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, program.output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  // The process group is the program's own by default.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setsigmask(&attributes, &mask);
  std::vector<std::string> environment = EnvironmentWith(program.environment);
  const int error = posix_spawnp(child, program.command[0].c_str(), &files, &attributes,
                                 Pointers(program.command).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Waits for the child's end, and brings it about where it is wanted earlier.
ProgramRun Await(pid_t child, InterruptSignals& signals, SteadyClock::time_point deadline) {
  ProgramRun run;
  rusage usage{};
  bool killed = false;
  while (wait4(child, &run.wait_status, WNOHANG, &usage) == 0) {
    if (run.ended_by_itself && (signals.interrupted() || SteadyClock::now() >= deadline)) {
      run.ended_by_itself = false;
      kill(-child, SIGTERM);
      deadline = SteadyClock::now() + kGrace;
    } else if (!run.ended_by_itself && !killed && SteadyClock::now() >= deadline) {
      killed = true;
      kill(-child, SIGKILL);
      deadline = SteadyClock::time_point::max();
    }
    signals.Wait(deadline);
  }
  if (!run.ended_by_itself) kill(-child, SIGKILL);  // what outlived its parent
  run.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  return run;
}

}  // namespace

InterruptSignals::InterruptSignals() {
  sigemptyset(&set_);
  for (const int signal : {SIGCHLD, SIGHUP, SIGINT, SIGTERM}) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
  // Whoever started us may have ignored it, and then children leave no status.
  signal(SIGCHLD, SIG_DFL);
  // A reader of our progress that has gone must not end us with runs and their files left behind.
  pipe_before_ = signal(SIGPIPE, SIG_IGN);
}

InterruptSignals::~InterruptSignals() {
  interrupted();  // what is pending would end the process otherwise
  signal(SIGPIPE, pipe_before_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void InterruptSignals::Wait(SteadyClock::time_point until) {
  // In pieces, since a far deadline overflows, and since SIGCHLD may come before it is waited for.
  const auto left = std::clamp<std::chrono::nanoseconds>(
      until - SteadyClock::now(), std::chrono::nanoseconds(0), std::chrono::seconds(1));
  timespec timeout{};
  timeout.tv_sec = left.count() / 1'000'000'000;
  timeout.tv_nsec = left.count() % 1'000'000'000;
  const int signal = sigtimedwait(&set_, nullptr, &timeout);
  if (signal > 0 && signal != SIGCHLD) interrupted_ = true;
}

bool InterruptSignals::interrupted() {
  sigset_t pending;
  sigpending(&pending);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    if (sigismember(&pending, signal) != 1) continue;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    const timespec now{};
    if (sigtimedwait(&one, nullptr, &now) > 0) interrupted_ = true;
  }
  return interrupted_;
}

absl::StatusOr<ProgramRun> RunProgram(Program program, InterruptSignals& signals,
                                      SteadyClock::time_point deadline) {
  const absl::StatusOr<CpuTimes> before = ReadCpuTimes();
  const SteadyClock::time_point start = SteadyClock::now();
  pid_t child = 0;
  if (const int error = Spawn(program, signals.mask_before(), &child); error != 0) {
    return absl::NotFoundError(absl::StrCat(EscapeControlCharacters(program.command[0]),
                                            " cannot be started: ", std::strerror(error)));
  }
  ProgramRun run = Await(child, signals, deadline);
  run.wall_seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  const absl::StatusOr<CpuTimes> after = ReadCpuTimes();
  if (before.ok() && after.ok() && after->all_total > before->all_total) {
    const double others = after->all_busy - before->all_busy - run.cpu_seconds;
    run.cpus_of_others = std::max(0.0, others / run.wall_seconds);
  }
  return run;
}

std::string DescribeFailure(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return absl::StrCat("signal ", WTERMSIG(wait_status), " (", strsignal(WTERMSIG(wait_status)), ")");
  }
  return WEXITSTATUS(wait_status) == 0 ? "" : absl::StrCat("exit code ", WEXITSTATUS(wait_status));
}

}  // namespace ott::faster
