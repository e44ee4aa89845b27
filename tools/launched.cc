#include "tools/launched.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/launched_process.h"
#include "ott/dist/comm/tcp_communicator.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/answer/exit_code.h"

namespace ott {
namespace {

// Have nothing to do with how many processes there are.
constexpr const char* kOfEachProcess[] = {"profile", "--help", "-h", "--version"};

volatile std::sig_atomic_t g_is_ending = 0;

template <size_t kSize>
bool Contains(const char* const (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// MPI waits without end for a process that does not come; TCP names it sooner.
constexpr unsigned kStartSeconds = 90;

void GiveUp(int) {
  constexpr char kText[] = "ott: not all of the processes that the launcher started came within 90 s\n";
  (void)!write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(kExitCouldNotTell);
}

absl::StatusOr<std::unique_ptr<Communicator>> ConnectByTcp() {
  OTT_ASSIGN_OR_RETURN(const TcpOptions options, TcpOptionsFromEnvironment());
  return CreateTcpCommunicator(options);
}

absl::StatusOr<std::unique_ptr<Processes>> Start(bool by_mpi, char** argv, std::vector<ShareTask> tasks,
                                                 const Processes::Options& options) {
  Connect connect = &ConnectByTcp;
  if (by_mpi) {
    OTT_ASSIGN_OR_RETURN(connect, ConnectorOfMpi(argv));
  }
  return Processes::Start(connect, std::move(tasks), options);
}

// Ends without the launcher's library, which would wait for those that are lost.
[[noreturn]] void EndAtOnce(int exit_code) {
  std::fflush(stdout);
  std::fflush(stderr);
  _exit(exit_code);
}

}  // namespace

std::optional<int> RunLaunched(int argc, char** argv, std::vector<ShareTask> tasks,
                               const std::function<int()>& command) {
  const std::optional<LaunchedProcess> launched = LaunchedProcessFromEnvironment();
  const std::string name = argc > 1 ? argv[1] : "--help";
  if (!launched || launched->size == 1 || Contains(kOfEachProcess, name)) return std::nullopt;
  if (!Contains(kSharedCommands, name)) {
    if (launched->rank == 0) {
      PrintError(name.c_str(), absl::UnimplementedError(absl::StrCat(
                                   "is answered by one process, and a launcher started ", launched->size,
                                   "; several answer ", absl::StrJoin(kSharedCommands, ", "))));
    }
    // A launcher ends all when one ends badly, and only the first has something to say.
    return launched->rank == 0 ? kExitCouldNotTell : kExitGood;
  }
  Processes::Options options;
  options.is_ending = [] { return g_is_ending != 0; };
  if (launched->rank == 0) std::signal(SIGTERM, [](int) { g_is_ending = 1; });
  std::signal(SIGALRM, GiveUp);
  alarm(kStartSeconds);
  absl::StatusOr<std::unique_ptr<Processes>> processes =
      Start(launched->by_mpi, argv, std::move(tasks), options);
  alarm(0);
  if (!processes.ok()) {
    if (launched->rank != 0) EndAtOnce(kExitGood);
    PrintError(name, processes.status());
    EndAtOnce(kExitCouldNotTell);
  }
  if ((*processes)->rank() != 0) {
    const bool is_served = (*processes)->Serve().ok();
    if (!(*processes)->Finish()) EndAtOnce(kExitCouldNotTell);
    return is_served ? kExitGood : kExitCouldNotTell;
  }
  std::vector<std::string> paths;
  for (int i = 2; i < argc; ++i) {
    if (argv[i][0] != '-') paths.emplace_back(argv[i]);
  }
  (*processes)->FindFiles(paths);
  SetProcesses(processes->get());
  int exit_code = command();
  const std::vector<std::string> lost = (*processes)->Lost();
  for (const std::string& process : lost)
    PrintError(name.c_str(), absl::UnavailableError("without " + process));
  if (!lost.empty() && exit_code == kExitGood) exit_code = kExitCouldNotTell;
  std::fprintf(stderr, "ott %s: %s\n", name.c_str(), (*processes)->Describe().c_str());
  if (!(*processes)->Finish()) EndAtOnce(exit_code);
  return exit_code;
}

}  // namespace ott
