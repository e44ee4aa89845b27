#include "ott/questions/faster/ab_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/config.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/comparison_picture.h"
#include "ott/questions/faster/faster_answer.h"
#include "ott/questions/faster/read_samples.h"
#include "ott/questions/faster/report.h"
#include "ott/questions/faster/run_in_turn.h"
#include "ott/questions/faster/runs_directory.h"

namespace ott::faster {
namespace {

constexpr char kSeparator[] = "---";

struct AbFlags {
  std::vector<std::string> sides;  // A --- B
  bool are_commands = false;
  double confidence_percent = 99;
  double margin_percent = 1;
  std::string location = "median";
  std::optional<size_t> warm_up;
  std::vector<std::string> accepted;
  std::string measure = "auto";
  size_t max_runs = 20;
  std::string max_time;
  size_t num_warm_runs = 1;
  std::optional<uint64_t> seed;
  std::string directory;
  std::string results;
  std::string format = "text";
  std::string output;
  std::string html;
};

struct Sides {
  std::vector<std::string> a;
  std::vector<std::string> b;
};

absl::StatusOr<Sides> SplitSides(const AbFlags& flags) {
  const auto at = std::find(flags.sides.begin(), flags.sides.end(), kSeparator);
  Sides sides;
  sides.a.assign(flags.sides.begin(), at);
  if (at != flags.sides.end()) sides.b.assign(at + 1, flags.sides.end());
  if (sides.a.empty() || sides.b.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        sides.a.empty() ? "A" : "B", " is missing: the sides are separated by ---, as in `ott ab ",
        flags.are_commands ? "-- COMMAND_A --- COMMAND_B`" : "RUN_A... --- RUN_B...`; commands follow --"));
  }
  return sides;
}

FasterOptions OptionsOf(const AbFlags& flags) {
  FasterOptions options;
  options.error = (100 - flags.confidence_percent) / 100;
  options.margin = flags.margin_percent / 100;
  options.location = flags.location == "mean" ? Location::kMean : Location::kMedian;
  options.warm_up = flags.warm_up;
  options.accepted.insert(flags.accepted.begin(), flags.accepted.end());
  return options;
}

void Say(const std::string& text) { std::fprintf(stderr, "ott ab: %s\n", text.c_str()); }

// A line that is rewritten on a terminal, and lines elsewhere.
void ShowProgress(const Comparison& comparison) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::fprintf(stderr, "%sott ab: %s%s", terminal ? "\r\033[K" : "", DescribeProgress(comparison).c_str(),
               terminal ? "" : "\n");
}

std::string DescribeStop(Stop stop) {
  switch (stop) {
    case Stop::kInterrupted:
      return ", ended by a signal: this is the answer so far";
    case Stop::kMaxTime:
      return ", ended by --max-time: this is the answer so far";
    case Stop::kDecided:
    case Stop::kMaxRuns:
      break;
  }
  return "";
}

absl::StatusOr<TurnOptions> TurnOptionsOf(const AbFlags& flags, const Sides& sides) {
  TurnOptions turns;
  turns.command_a = sides.a;
  turns.command_b = sides.b;
  OTT_ASSIGN_OR_RETURN(turns.config, LoadConfigFromEnvironment());
  OTT_ASSIGN_OR_RETURN(turns.max_seconds, ParseMaxTime(flags.max_time));
  turns.results = flags.results;
  turns.what = flags.measure == "wall"  ? WhatToCompare::kWallTime
               : flags.measure == "cpu" ? WhatToCompare::kCpuTime
                                        : WhatToCompare::kAuto;
  turns.max_runs = flags.max_runs - flags.max_runs % 2;
  turns.num_warm_runs = flags.num_warm_runs;
  turns.seed = flags.seed.has_value() ? *flags.seed : std::random_device()();
  return turns;
}

// Returns true if more runs are not worth their time: there is an answer, and enough runs to say which
// measurements changed.
bool IsAnswered(const Comparison& comparison) {
  return comparison.answer.verdict != AbResult::CANNOT_TELL &&
         std::all_of(comparison.measurements.begin(), comparison.measurements.end(),
                     [](const Result& result) { return result.low.has_value(); });
}

struct Answered {
  Comparison comparison;
  Samples samples;
};

absl::StatusOr<Answered> RunCommands(const AbFlags& flags, const Sides& sides) {
  OTT_ASSIGN_OR_RETURN(TurnOptions turns, TurnOptionsOf(flags, sides));
  FasterOptions options = OptionsOf(flags);
  options.max_runs = turns.max_runs;
  if (const size_t fewest = FewestRunsInTurn(options.error); turns.max_runs < fewest) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--max-runs %d: a confidence of %g %% needs %d a side at least", flags.max_runs,
                        flags.confidence_percent, fewest));
  }
  // Before there is a directory: a reader that has gone ends it here.
  Say(absl::StrCat("runs in turn, ABBA or BAAB by --seed ", turns.seed, ", at most ", turns.max_runs,
                   " a side"));
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<RunsDirectory> directory,
                       RunsDirectory::Create(flags.directory));
  turns.directory = directory->path();
  turns.keep = !directory->temporary();
  absl::Status status;
  absl::StatusOr<Turns> ended = RunInTurn(turns, [&](const Samples& samples) {
    const absl::StatusOr<Comparison> so_far = Compare(samples, options);
    status = so_far.status();
    if (so_far.ok()) ShowProgress(*so_far);
    // Samples that cannot be compared do not become better.
    return !so_far.ok() || !so_far->voids.empty() || IsAnswered(*so_far);
  });
  if (isatty(STDERR_FILENO) != 0) std::fputs("\n", stderr);
  if (!ended.ok()) {
    if (!directory->temporary()) return ended.status();
    return absl::Status(ended.status().code(),
                        absl::StrCat(ended.status().message(), "\n-d DIR keeps what runs leave"));
  }
  OTT_RETURN_IF_ERROR(status);
  if (ended->samples.a.empty()) {
    return absl::CancelledError(absl::StrCat("cannot tell: no two runs a side", DescribeStop(ended->stop)));
  }
  ended->samples.notes.push_back(absl::StrCat("run in turn with --seed ", turns.seed, ", ",
                                              ended->samples.a.size(), " of at most ", turns.max_runs,
                                              " runs a side", DescribeStop(ended->stop)));
  OTT_ASSIGN_OR_RETURN(Comparison comparison, Compare(ended->samples, options));
  return Answered{std::move(comparison), std::move(ended->samples)};
}

absl::StatusOr<Answered> ReadFiles(const AbFlags& flags, const Sides& sides) {
  OTT_ASSIGN_OR_RETURN(
      Samples samples,
      ReadSides(sides.a, sides.b, flags.measure == "cpu" ? ClockKind::kCpu : ClockKind::kWall));
  OTT_ASSIGN_OR_RETURN(Comparison comparison, Compare(samples, OptionsOf(flags)));
  return Answered{std::move(comparison), std::move(samples)};
}

std::string Report(const Answered& answered, const std::string& format) {
  if (format == "json") {
    return WithAnswers(ToJson(answered.comparison, answered.samples),
                       {AnswerFaster(answered.comparison, {"A", "B"})});
  }
  if (format == "csv") return ToCsv(answered.comparison);
  if (format == "junit") return ToJUnitXml(answered.comparison);
  return ToText(answered.comparison);
}

// "A: ./train_old; B: ./train_new"
std::string DescribeSides(const Sides& sides) {
  return absl::StrCat("A: ", absl::StrJoin(sides.a, " "), "; B: ", absl::StrJoin(sides.b, " "));
}

absl::StatusOr<int> RunAb(const AbFlags& flags, const std::function<std::string(const Document&)>& page) {
  OTT_ASSIGN_OR_RETURN(const Sides sides, SplitSides(flags));
  OTT_ASSIGN_OR_RETURN(const Answered answered,
                       flags.are_commands ? RunCommands(flags, sides) : ReadFiles(flags, sides));
  if (!flags.output.empty()) {
    OTT_RETURN_IF_ERROR(WriteFileAtomically(flags.output, Report(answered, flags.format)));
  }
  if (!flags.html.empty()) {
    OTT_RETURN_IF_ERROR(
        WriteFileAtomically(flags.html, page(DocumentOf(answered.comparison, DescribeSides(sides)))));
  }
  std::fputs(Report(answered, flags.output.empty() ? flags.format : "text").c_str(), stdout);
  return ExitCodeOf(AnswerFaster(answered.comparison, {"A", "B"}).finding());
}

void AddStatisticsOptions(CLI::App* command, AbFlags* flags) {
  command->add_option("--confidence", flags->confidence_percent, "Percent of the answers that hold")
      ->check(NumberFrom(50, 99.9999))
      ->capture_default_str();
  command->add_option("--margin", flags->margin_percent, "Percent; a smaller change counts as the same")
      ->check(NumberFrom(0, 100))
      ->capture_default_str();
  command->add_option("--location", flags->location, "The number that stands for the iterations of a process")
      ->check(CLI::IsMember({"median", "mean"}))
      ->capture_default_str();
  command->add_option("--warmup", flags->warm_up,
                      "First iterations of each process to leave out; by default those before it settles");
  command->add_option("--accept", flags->accepted, "Intended differences between the sides")
      ->check(CLI::IsMember({"machine", "CPU", "ranks", "library", "iterations"}))
      ->delimiter(',')
      ->allow_extra_args(false);
}

void AddRunOptions(CLI::App* command, AbFlags* flags) {
  command->add_option("--measure", flags->measure, "auto: iterations and measurements, if there are any")
      ->check(CLI::IsMember({"auto", "wall", "cpu"}))
      ->capture_default_str();
  command
      ->add_option("--max-runs", flags->max_runs,
                   "Runs of each side at most; after them the answer may be cannot tell")
      ->check(CLI::Range(2, 2000))
      ->capture_default_str();
  command->add_option("--max-time", flags->max_time,
                      "Seconds, or as in 1h30m, until the answer so far is given");
  command->add_option("--warm-runs", flags->num_warm_runs, "First runs of each side that do not count")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  command->add_option("--seed", flags->seed,
                      "Seed of the order of the runs; by default another one each time");
  command->add_option("-d,--directory", flags->directory, "Keeps what the runs leave, in a folder for each");
  command->add_option("--results", flags->results,
                      "File with times that each run leaves in its folder, {dir} in the command");
}

}  // namespace

void AddAbCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand("ab", "Whether B became faster than A, with how sure that is");
  const auto flags = std::make_shared<AbFlags>();
  command
      ->add_option("A --- B", flags->sides,
                   "After --, two commands to run in turn; else what earlier runs left: run directories, or "
                   "files of Google Benchmark, nvbench, hyperfine, CSV, JSON lines")
      ->required();
  AddStatisticsOptions(command, flags.get());
  AddRunOptions(command, flags.get());
  command->add_option("--format", flags->format, "json has every sample")
      ->check(CLI::IsMember({"text", "json", "csv", "junit"}))
      ->capture_default_str();
  command->add_option("-o,--output", flags->output,
                      "Writes the report to this file; standard output then has the text");
  command->add_option("--html", flags->html,
                      "Also writes a page for the browser with a picture of all runs, in one file");
  command->footer(
      "Exit code: 0 B is faster or the same, 1 slower, 2 cannot tell, or a run failed.\n"
      "Examples:\n"
      "  ott ab -- ./train --kernel old --- ./train --kernel new\n"
      "  ott ab --max-time 30m --html ab.html -- mpirun -np 4 ./train_old --- mpirun -np 4 ./train_new\n"
      "  ott ab 'out/old_*' --- 'out/new_*'\n"
      "  ott ab --results b.json -- ./old --benchmark_out={dir}/b.json --- ./new "
      "--benchmark_out={dir}/b.json");
  command->callback([flags, command, page = line.page, exit_code = line.exit_code] {
    const std::vector<std::string> rest = command->remaining();
    flags->are_commands = std::find(rest.begin(), rest.end(), "--") != rest.end();
    *exit_code = FinishCommand(kQuestion.command, RunAb(*flags, page));
  });
}

}  // namespace ott::faster
