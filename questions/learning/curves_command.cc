#include "ott/questions/learning/curves_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ott/core/base/config.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/faster/run_in_turn.h"
#include "ott/questions/faster/runs_directory.h"
#include "ott/questions/learning/comparison.h"
#include "ott/questions/learning/first_difference.h"
#include "ott/questions/learning/learning_answer.h"
#include "ott/questions/learning/learning_document.h"
#include "ott/questions/learning/read_curves.h"

namespace ott::learning {
namespace {

constexpr char kSeparator[] = "---";
// Runs of each side, where commands are run.
constexpr size_t kMostRunsByDefault = 10;

struct CurvesFlags {
  std::vector<std::string> sides;  // A --- B
  std::string metric;
  std::string x;
  std::string better = "auto";
  std::string margin;
  double confidence_percent = 99;
  size_t max_runs = 0;
  bool are_commands = false;
  std::string results;
  std::string directory;
  std::string max_time;
  std::string format = "text";
  std::string output;
  std::string html;
};

absl::StatusOr<LearningOptions> OptionsOf(const CurvesFlags& flags) {
  LearningOptions options;
  options.error = (100 - flags.confidence_percent) / 100;
  options.metric = flags.metric;
  options.better = flags.better == "lower"    ? Better::kLower
                   : flags.better == "higher" ? Better::kHigher
                                              : Better::kByCurve;
  options.max_runs = flags.max_runs;
  if (flags.margin.empty()) return options;
  absl::string_view number = flags.margin;
  const bool is_share = absl::ConsumeSuffix(&number, "%");
  double margin = 0;
  if (!absl::SimpleAtod(number, &margin) || !(margin >= 0 && std::isfinite(margin))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--margin ", flags.margin,
                     ": needs a finite number from 0 on, in units of the metric, or as 2%, of the steps"));
  }
  (is_share ? options.margin_share : options.margin) = is_share ? margin / 100 : margin;
  return options;
}

struct Sides {
  std::vector<std::string> a;
  std::vector<std::string> b;
};

absl::StatusOr<Sides> SplitSides(const CurvesFlags& flags) {
  const auto at = std::find(flags.sides.begin(), flags.sides.end(), kSeparator);
  const Sides sides = {{flags.sides.begin(), at}, {at == flags.sides.end() ? at : at + 1, flags.sides.end()}};
  if (!sides.a.empty() && !sides.b.empty()) return sides;
  return absl::InvalidArgumentError(absl::StrCat(
      sides.a.empty() ? "A" : "B", " is missing: the sides are separated by ---, as in `ott curves ",
      flags.are_commands ? "-- COMMAND_A --- COMMAND_B`" : "RUN_A... --- RUN_B...`; commands follow --"));
}

absl::StatusOr<LearningVerdict> JudgeFiles(const Sides& sides, const LearningOptions& options,
                                           const std::string& x) {
  OTT_ASSIGN_OR_RETURN(const SidesRead read, ReadSides(sides.a, sides.b, {x}));
  OTT_ASSIGN_OR_RETURN(LearningVerdict verdict, Compare(read.a, read.b, read.x_name, options));
  AddFirstDifference(read.a, read.b, &verdict);
  return verdict;
}

// Returns where the first `count` runs of both sides left their metrics.
Sides MetricsOfRuns(const std::string& directory, const std::string& results, size_t count) {
  const std::string name = results.empty() ? "run" : results;
  Sides sides;
  for (size_t run = 1; run <= count; ++run) {
    sides.a.push_back(absl::StrFormat("%s/a_%03d/%s", directory, run, name));
    sides.b.push_back(absl::StrFormat("%s/b_%03d/%s", directory, run, name));
  }
  return sides;
}

bool IsAnswered(const LearningVerdict& verdict) {
  const LearningVerdict::Kind kind = verdict.metrics(0).kind();
  return kind == LearningVerdict::AS_GOOD || kind == LearningVerdict::WORSE ||
         kind == LearningVerdict::BETTER;
}

// Runs both commands in turn until there is an answer.
absl::StatusOr<LearningVerdict> JudgeCommands(const Sides& sides, LearningOptions options,
                                              const CurvesFlags& flags) {
  faster::TurnOptions turns;
  turns.command_a = sides.a;
  turns.command_b = sides.b;
  turns.what = faster::WhatToCompare::kWallTime;
  turns.num_warm_runs = 0;
  turns.max_runs = options.max_runs =
      flags.max_runs > 0 ? flags.max_runs + flags.max_runs % 2 : kMostRunsByDefault;
  turns.seed = std::random_device()();
  OTT_ASSIGN_OR_RETURN(turns.config, LoadConfigFromEnvironment());
  OTT_ASSIGN_OR_RETURN(turns.max_seconds, faster::ParseMaxTime(flags.max_time));
  if (const size_t fewest = FewestRunsASide(options.error); turns.max_runs < fewest) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--max-runs %d: a confidence of %g %% needs %d a side at least", flags.max_runs,
                        flags.confidence_percent, fewest));
  }
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<faster::RunsDirectory> directory,
                       faster::RunsDirectory::Create(flags.directory));
  turns.directory = directory->path();
  absl::StatusOr<LearningVerdict> verdict = absl::CancelledError("cannot tell: no two runs a side ended");
  const absl::StatusOr<faster::Turns> ended = faster::RunInTurn(turns, [&](const faster::Samples& samples) {
    const Sides metrics = MetricsOfRuns(directory->path(), flags.results, samples.a.size());
    verdict = JudgeFiles(metrics, options, flags.x);
    if (!verdict.ok()) return true;
    std::fprintf(stderr, "ott curves: after %zu a side: %s\n", samples.a.size(),
                 AnswerLearning(*verdict).sentences(0).c_str());
    return IsAnswered(*verdict);
  });
  OTT_RETURN_IF_ERROR(ended.status());
  OTT_RETURN_IF_ERROR(verdict.status());
  if (ended->stop == faster::Stop::kInterrupted || ended->stop == faster::Stop::kMaxTime) {
    verdict->add_notes("ended before there was an answer: this is the one so far");
  }
  // A hint that leads to a folder that is gone helps nobody.
  if (directory->temporary()) verdict->clear_next();
  return verdict;
}

absl::StatusOr<int> CompareSides(const CurvesFlags& flags,
                                 const std::function<std::string(const Document&)>& page) {
  OTT_ASSIGN_OR_RETURN(const Sides sides, SplitSides(flags));
  OTT_ASSIGN_OR_RETURN(const LearningOptions options, OptionsOf(flags));
  OTT_ASSIGN_OR_RETURN(const LearningVerdict verdict, flags.are_commands
                                                          ? JudgeCommands(sides, options, flags)
                                                          : JudgeFiles(sides, options, flags.x));
  const Answer answer = AnswerLearning(verdict);
  const std::string text = ToText(verdict);
  const std::string report = flags.format == "json" ? AnswersToJsonText({answer}) : text;
  if (!flags.output.empty()) OTT_RETURN_IF_ERROR(WriteFileAtomically(flags.output, report));
  if (!flags.html.empty()) {
    OTT_RETURN_IF_ERROR(WriteFileAtomically(
        flags.html, page(DocumentOf(verdict, absl::StrCat("A: ", absl::StrJoin(sides.a, " "),
                                                          "; B: ", absl::StrJoin(sides.b, " "))))));
  }
  std::fputs((flags.output.empty() ? report : text).c_str(), stdout);
  return ExitCodeOf(answer.finding());
}

}  // namespace

void AddCurvesCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand("curves", "Whether the runs of B learn as well as those of A");
  const auto flags = std::make_shared<CurvesFlags>();
  command
      ->add_option(
          "A --- B", flags->sides,
          "Behind --, two commands to run in turn; else run directories, or files of metrics: CSV, JSON "
          "lines, TensorBoard's event files, MLPerf's logs, "
          "trainer_state.json, exports of Weights & Biases; folders of them, or globs. B may be one run")
      ->required();
  command->add_option("--metric", flags->metric,
                      "The metric that the answer is about; by default a loss of an evaluation");
  command->add_option("--x", flags->x,
                      "The column or key over which metrics are drawn; by default the steps");
  command
      ->add_option("--better", flags->better,
                   "auto: lower for a loss, else the direction in which most curves of A move")
      ->check(CLI::IsMember({"auto", "lower", "higher"}))
      ->capture_default_str();
  command->add_option("--margin", flags->margin,
                      "A loss up to this is as good: in units of the metric, or as 2%, of the steps; by "
                      "default half of what the runs of A span");
  command->add_option("--confidence", flags->confidence_percent, "Percent of the answers that hold")
      ->check(NumberFrom(50, 99.9999))
      ->capture_default_str();
  command
      ->add_option(
          "--max-runs", flags->max_runs,
          "The most runs a side there will be, for who asks again after each run that ends; of commands, 10 "
          "by default")
      ->check(CLI::Range(2, 2000));
  command->add_option(
      "--results", flags->results,
      "File with metrics that each run of a command leaves in its folder, {dir} in the command; by "
      "default its run directory");
  command->add_option("-d,--directory", flags->directory,
                      "Keeps what the runs of commands leave, in a folder for each");
  command->add_option("--max-time", flags->max_time,
                      "Seconds, or as in 1h30m, until the answer so far is given");
  command->add_option("--format", flags->format, "json has every point")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("-o,--output", flags->output,
                      "Writes the report to this file; standard output then has the text");
  command->add_option("--html", flags->html,
                      "Also writes a page for the browser with the curves, in one file");
  command->footer(
      "Exit code: 0 B is as good or better, 1 worse, B's one run is not finite, or another metric differs, 2 "
      "cannot tell.\n"
      "Examples:\n"
      "  ott curves 'out/reference_*' --- 'out/fp8_*'\n"
      "  ott curves --metric eval_loss --margin 2% base/*.csv --- new/*.csv\n"
      "  ott curves --max-runs 10 --html curves.html runs/old --- runs/new\n"
      "  ott curves --results log.csv -- ./old --seed {seed} --log {dir}/log.csv --- ./new --seed {seed} "
      "--log {dir}/log.csv");
  command->callback([flags, command, page = line.page, exit_code = line.exit_code] {
    const std::vector<std::string> rest = command->remaining();
    flags->are_commands = std::find(rest.begin(), rest.end(), "--") != rest.end();
    *exit_code = FinishCommand(kQuestion.command, CompareSides(*flags, page));
  });
}

}  // namespace ott::learning
