#include "ott/questions/faster/run_in_turn.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/text_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/faster/read_run.h"
#include "ott/questions/faster/read_samples.h"
#include "questions/faster/run_program.h"

namespace ott::faster {
namespace {

namespace fs = std::filesystem;
using SteadyClock = std::chrono::steady_clock;

std::string LastLines(const std::string& path) {
  constexpr std::streamoff kMostBytes = 4096;
  constexpr size_t kMostLines = 10;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kMostBytes));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back("  " + EscapeControlCharacters(line));
  if (lines.empty()) return "it printed nothing";
  if (lines.size() > kMostLines) lines.erase(lines.begin(), lines.end() - kMostLines);
  return absl::StrCat("its last lines:\n", absl::StrJoin(lines, "\n"));
}

// The machine changes its clock rate as it likes.
void NoteFrequencyScaling(Samples* samples) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::string governor;
  if (!(file >> governor) || governor == "performance") return;
  samples->notes.push_back(absl::StrCat("the CPUs' frequency is scaled (governor ",
                                        EscapeControlCharacters(governor),
                                        "): runs vary more than they need to"));
}

class Session {
 public:
  explicit Session(const TurnOptions& options)
      : options_(options),
        deadline_(options.max_seconds.has_value()
                      ? SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                                 std::chrono::duration<double>(*options.max_seconds))
                      : SteadyClock::time_point::max()),
        random_(options.seed) {}

  absl::StatusOr<Turns> Run(const std::function<bool(const Samples&)>& on_block) {
    Turns turns;
    NoteFrequencyScaling(&turns.samples);
    for (size_t run = 0; run < options_.num_warm_runs; ++run) {
      for (const bool is_b : {false, true}) {
        OTT_ASSIGN_OR_RETURN(const std::optional<Process> ended,
                             RunOne(is_b, absl::StrFormat("%03d", run + 1), "warm_"));
        if (!ended.has_value()) return Stopped(std::move(turns));
      }
    }
    while (turns.samples.a.size() < options_.max_runs) {
      OTT_ASSIGN_OR_RETURN(const bool whole, RunBlock(&turns.samples));
      if (!whole) return Stopped(std::move(turns));
      if (on_block(turns.samples)) {
        turns.stop = Stop::kDecided;
        return turns;
      }
    }
    return turns;
  }

 private:
  Turns Stopped(Turns turns) {
    turns.stop = signals_.interrupted() ? Stop::kInterrupted : Stop::kMaxTime;
    return turns;
  }

  // False, and nothing added, where it was stopped before its end.
  absl::StatusOr<bool> RunBlock(Samples* samples) {
    const bool b_first = (random_() & 1) != 0;
    Samples block;
    for (const bool is_b : {b_first, !b_first, !b_first, b_first}) {
      std::vector<Process>& side = is_b ? block.b : block.a;
      const size_t number = samples->a.size() + side.size() + 1;
      OTT_ASSIGN_OR_RETURN(std::optional<Process> process, RunOne(is_b, absl::StrFormat("%03d", number)));
      if (!process.has_value()) return false;
      process->block = samples->a.size() / 2;
      side.push_back(*std::move(process));
    }
    std::move(block.a.begin(), block.a.end(), std::back_inserter(samples->a));
    std::move(block.b.begin(), block.b.end(), std::back_inserter(samples->b));
    samples->primary = primary_;
    samples->iterations_must_match = iterations_must_match_;
    return true;
  }

  // nullopt: it was stopped. kind: before the name of the folder, so that a_* are those that count.
  absl::StatusOr<std::optional<Process>> RunOne(bool is_b, const std::string& number, const char* kind = "") {
    if (signals_.interrupted() || SteadyClock::now() >= deadline_) return std::optional<Process>();
    const std::string name = absl::StrCat(is_b ? "B" : "A", ", run ", kind, number);
    const std::string directory = absl::StrCat(options_.directory, "/", kind, is_b ? "b_" : "a_", number);
    OTT_ASSIGN_OR_RETURN(const Program program, Prepare(is_b, directory));
    const double started =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    OTT_ASSIGN_OR_RETURN(const ProgramRun run, RunProgram(program, signals_, deadline_));
    if (!run.ended_by_itself) return std::optional<Process>();
    if (const std::string failure = DescribeFailure(run.wait_status); !failure.empty()) {
      return absl::AbortedError(absl::StrCat(name, " ended with ", failure, ": ",
                                             EscapeControlCharacters(absl::StrJoin(program.command, " ")),
                                             "\n", LastLines(program.output)));
    }
    OTT_ASSIGN_OR_RETURN(Process process, Read(directory, name, run));
    process.name = name;
    process.started = started;
    process.cpus_of_others = run.cpus_of_others;
    std::error_code ignored;
    if (!options_.keep) fs::remove_all(directory, ignored);
    return std::optional<Process>(std::move(process));
  }

  absl::StatusOr<Program> Prepare(bool is_b, const std::string& directory) {
    OTT_RETURN_IF_ERROR(MakeDirectories(directory));
    const std::string seed = absl::StrCat(++num_started_);
    Program program;
    for (const std::string& argument : is_b ? options_.command_b : options_.command_a) {
      program.command.push_back(absl::StrReplaceAll(argument, {{"{dir}", directory}, {"{seed}", seed}}));
    }
    program.output = directory + "/output.txt";
    Config config = options_.config;
    config.set_run_dir(directory + "/run");
    config.mutable_stopwatch();
    std::string text;
    google::protobuf::TextFormat::PrintToString(config, &text);
    program.environment = {{"OTT_CONFIG", directory + "/ott.textproto"}, {"OTT_AB_DIR", directory}};
    OTT_RETURN_IF_ERROR(WriteFileAtomically(program.environment["OTT_CONFIG"], text));
    return program;
  }

  // Reads what the run left, or how long it took.
  absl::StatusOr<Process> Read(const std::string& directory, const std::string& name, const ProgramRun& run) {
    Process process;
    const bool has_run = IsRunDirectory(directory + "/run");
    if (options_.what == WhatToCompare::kAuto && !options_.results.empty()) {
      OTT_ASSIGN_OR_RETURN(SideSamples samples,
                           ReadSide({directory + "/" + options_.results}, ott::faster::ClockKind::kWall));
      if (samples.processes.size() != 1) {
        return absl::InvalidArgumentError(absl::StrCat(directory, "/", options_.results, ": has ",
                                                       samples.processes.size(),
                                                       " processes, and one run is one"));
      }
      primary_ = samples.primary;
      iterations_must_match_ = samples.iterations_must_match;
      process = std::move(samples.processes[0]);
    } else if (options_.what == WhatToCompare::kAuto && has_run) {
      OTT_ASSIGN_OR_RETURN(process, ReadRun(LatestAttempt(directory + "/run")));
      primary_ = kIteration;
      iterations_must_match_ = true;
    } else {
      const bool cpu = options_.what == WhatToCompare::kCpuTime;
      process.measurements.push_back(
          {cpu ? "CPU time" : "wall time", {cpu ? run.cpu_seconds : run.wall_seconds}});
    }
    if (!has_run_.has_value()) has_run_ = has_run;
    if (options_.what == WhatToCompare::kAuto && options_.results.empty() && has_run != *has_run_) {
      return absl::FailedPreconditionError(absl::StrCat(
          name,
          has_run ? " left a run directory, and others did not" : " left no run directory, and others did",
          ": --measure wall compares the wall times of both"));
    }
    return process;
  }

  const TurnOptions& options_;
  const SteadyClock::time_point deadline_;
  std::mt19937_64 random_;
  size_t num_started_ = 0;
  InterruptSignals signals_;
  std::string primary_;
  bool iterations_must_match_ = false;
  std::optional<bool> has_run_;
};

}  // namespace

absl::StatusOr<Turns> RunInTurn(const TurnOptions& options,
                                const std::function<bool(const Samples&)>& on_block) {
  return Session(options).Run(on_block);
}

}  // namespace ott::faster
