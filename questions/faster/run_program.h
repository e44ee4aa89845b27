// Runs a program to its end, and no longer than the user wants.

#ifndef OTT_QUESTIONS_FASTER_RUN_PROGRAM_H_
#define OTT_QUESTIONS_FASTER_RUN_PROGRAM_H_

#include <signal.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ott::faster {

// Blocks, while it lives, SIGINT, SIGTERM, SIGHUP and SIGCHLD in this thread and those it starts, so that
// they are waited for.
class InterruptSignals {
 public:
  InterruptSignals();
  InterruptSignals(const InterruptSignals&) = delete;
  InterruptSignals& operator=(const InterruptSignals&) = delete;
  ~InterruptSignals();

  // Waits until a signal comes, or `until`. Remembers an interruption.
  void Wait(std::chrono::steady_clock::time_point until);
  // Returns true if anybody asked this process to end. Never becomes false again.
  bool interrupted();

  const sigset_t& mask_before() const { return before_; }

 private:
  sigset_t set_, before_;
  void (*pipe_before_)(int) = nullptr;
  bool interrupted_ = false;
};

struct ProgramRun {
  // False if it was ended before its time, by an interruption or by the deadline.
  bool ended_by_itself = true;
  int wait_status = 0;  // of waitpid(2)
  double wall_seconds = 0;
  // CPU time of the program and of the children that it waited for.
  double cpu_seconds = 0;
  // CPUs that others kept busy meanwhile; absent if the machine does not tell.
  std::optional<double> cpus_of_others;
};

struct Program {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  // added to this process's
  std::string output;                              // file for what it prints, stdout and stderr
};

// Runs it in a process group of its own, without standard input. A program that does not end by SIGTERM
// within five seconds is killed, with its group. An error if it cannot be started.
absl::StatusOr<ProgramRun> RunProgram(Program program, InterruptSignals& signals,
                                      std::chrono::steady_clock::time_point deadline);

// Returns "exit code 3" or "signal 11 (Segmentation fault)"; empty if it ended well.
std::string DescribeFailure(int wait_status);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_RUN_PROGRAM_H_
