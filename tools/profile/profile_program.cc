#include "tools/profile/profile_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/file.h"
#include "ott/core/base/spawn_arguments.h"
#include "ott/core/base/status_macros.h"
#include "tools/profile/capture_receiver.h"
#include "tools/profile/channel.h"
#include "tools/profile/job_rank.h"

namespace ott::profile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInjectionVariables[] = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH"};

absl::Status CheckEnvironment() {
  for (const char* variable : kInjectionVariables) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    return absl::FailedPreconditionError(
        absl::StrCat(variable, " is already set, to ", value,
                     ": does another profiler run this? A program has one at a time; unset it"));
  }
  return absl::OkStatus();
}

// Makes the output's directory, and finds out before the program starts what would be found out after it.
absl::Status PrepareOutput(const ProfileOptions& options) {
  const std::string path = CapturePath(options.output, RankFromEnvironment(), 0, 0);
  const fs::path directory = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  OTT_RETURN_IF_ERROR(MakeDirectories(directory.string()));
  std::error_code error;
  // Should nothing be captured, the old file must not pass for the new one.
  if (options.overwrite && fs::exists(path, error) &&
      (!fs::is_regular_file(path, error) || !fs::remove(path, error))) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be overwritten"));
  }
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": is there already; -f overwrites it"));
  }
  if (fd < 0) return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  close(fd);
  unlink(path.c_str());
  return absl::OkStatus();
}

// Names that CapturePath makes of the output for ranks and further processes.
std::set<std::string> FilesOfProcesses(const std::string& output) {
  constexpr std::string_view kRank = "rank_00000";
  const std::string sample = fs::path(CapturePath(output, 0, 0, 0)).filename().string();
  const size_t at = sample.rfind(kRank);
  const std::string begin = sample.substr(0, at), end = sample.substr(at + kRank.size());
  std::set<std::string> names;
  std::error_code error;
  const fs::path directory = fs::path(output).parent_path();
  for (fs::directory_iterator entry(directory.empty() ? "." : directory, error), last;
       !error && entry != last; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_of_process =
        absl::StartsWith(name, begin + "rank_") || absl::StartsWith(name, begin + "pid_");
    if (is_of_process && absl::EndsWith(name, end)) names.insert(name);
  }
  return names;
}

SessionStart StartNow() {
  const auto nanoseconds = [](clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  };
  const uint64_t before = nanoseconds(CLOCK_MONOTONIC);
  const uint64_t utc = nanoseconds(CLOCK_REALTIME);
  return {before + (nanoseconds(CLOCK_MONOTONIC) - before) / 2, utc};
}

// Blocks, while it lives, the signals that are waited for and passed on, and that of a file beyond its limit.
class PassedOnSignals {
 public:
  PassedOnSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ})
      sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, &before_);
    // Whoever started us may have ignored it, and then children leave no status.
    signal(SIGCHLD, SIG_DFL);
  }
  PassedOnSignals(const PassedOnSignals&) = delete;
  PassedOnSignals& operator=(const PassedOnSignals&) = delete;
  ~PassedOnSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  const sigset_t& before() const { return before_; }

  // Passes signals on to the child until it ends. Returns its status.
  int Wait(pid_t child) const {
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      siginfo_t info;
      const int signal = sigwaitinfo(&set_, &info);
      // A terminal's signals reach the child without us.
      if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(child, signal);
    }
    return status;
  }

 private:
  sigset_t set_, before_;
};

// Returns errno.
int Spawn(std::vector<std::string> command, std::vector<std::string> environment, const sigset_t& mask,
          pid_t* child) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &mask);
  const int error = posix_spawnp(child, command[0].c_str(), nullptr, &attributes, Pointers(command).data(),
                                 Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

absl::StatusOr<std::string> FindCaptureLibrary() {
  if (const char* const library = std::getenv("OTT_CAPTURE_LIBRARY")) {
    if (access(library, R_OK) == 0) return fs::absolute(library).string();
    return absl::NotFoundError(absl::StrCat("OTT_CAPTURE_LIBRARY=", library, ": ", std::strerror(errno)));
  }
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"libott_capture.so", "profile/libott_capture.so", "../lib/libott_capture.so"}) {
    if (access((here / place).c_str(), R_OK) == 0) return (here / place).string();
  }
  return absl::NotFoundError(
      absl::StrCat("libott_capture.so is neither in ", here.string(),
                   " nor in its profile/ or ../lib/; OTT_CAPTURE_LIBRARY says where it is"));
}

bool HasCudaDevice() { return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0; }

absl::StatusOr<ProfiledProgram> ProfileProgram(const ProfileOptions& options) {
  OTT_RETURN_IF_ERROR(CheckEnvironment());
  OTT_RETURN_IF_ERROR(PrepareOutput(options));
  // Before any thread starts, which would take the signals else.
  const PassedOnSignals signals;
  OTT_ASSIGN_OR_RETURN(const auto receiver,
                       CaptureReceiver::Create({options.output, options.overwrite, StartNow(),
                                                absl::StrJoin(options.command, " ")}));
  std::map<std::string, std::string> added = {{kSocketVariable, receiver->address()},
                                              {kBufferMibVariable, std::to_string(options.buffer_mib)},
                                              {kRangeVariable, options.capture_range}};
  for (const char* variable : kInjectionVariables) added[variable] = options.library;
  std::set<std::string> others;
  if (RankFromEnvironment() < 0) others = FilesOfProcesses(options.output);
  ProfiledProgram program;
  pid_t child = 0;
  program.start_error = Spawn(options.command, EnvironmentWith(added), signals.before(), &child);
  if (program.start_error != 0) return program;
  program.wait_status = signals.Wait(child);
  program.captures = receiver->Stop();
  for (const CaptureSummary& capture : program.captures) others.erase(fs::path(capture.path).filename());
  program.other_files.assign(others.begin(), others.end());
  return program;
}

}  // namespace ott::profile
