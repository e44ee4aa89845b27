#include "ott/questions/right/compare/compare_command.h"

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/config.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/right/compare/compare_answer.h"
#include "ott/questions/right/compare/compare_runs.h"
#include "ott/questions/right/compare/guess_names.h"
#include "ott/questions/right/compare/runs_report.h"

namespace ott::compare {
namespace {

struct CompareFlags {
  std::string reference;
  std::string current;
  std::string format = "text";
  std::string output;
  std::vector<std::string> tolerances;
  std::string tolerances_file;
  std::string names_file;
  std::string guess_file;
  bool warn_only = false;
  CompareRunsOptions options;
};

std::string Report(const RunsComparison& comparison, const Answer& answer, const std::string& format) {
  if (format == "json") return WithAnswers(ToJson(comparison), {answer});
  if (format == "csv") return ToCsv(comparison);
  if (format == "junit") return ToJUnitXml(comparison);
  return ToText(comparison) + FormatNext(answer);
}

// "GLOB=ATOL,RTOL"
absl::StatusOr<PathTolerance> ParsePathTolerance(const std::string& text) {
  const size_t equals = text.rfind('=');
  PathTolerance tolerance;
  const std::vector<std::string> numbers =
      absl::StrSplit(equals == std::string::npos ? "" : text.substr(equals + 1), ',');
  if (numbers.size() != 2 || !absl::SimpleAtod(numbers[0], &tolerance.tolerance.atol) ||
      !absl::SimpleAtod(numbers[1], &tolerance.tolerance.rtol) || !IsTolerance(tolerance.tolerance.atol) ||
      !IsTolerance(tolerance.tolerance.rtol)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--tolerance ", text,
        ": needs GLOB=ATOL,RTOL, finite numbers of at least 0, as in '*.gradients.*=1e-4,1e-3'"));
  }
  tolerance.glob = text.substr(0, equals);
  return tolerance;
}

// Writes the rules to a file that --names takes.
absl::StatusOr<GuessedNames> Guess(const CompareFlags& flags) {
  OTT_ASSIGN_OR_RETURN(const Checkpoint reference, ReadCheckpoint(flags.reference));
  OTT_ASSIGN_OR_RETURN(const Checkpoint current, ReadCheckpoint(flags.current));
  GuessedNames guessed = GuessNames(reference.state, current.state);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(guessed.names, &text))
    return absl::InternalError("the rules cannot be printed");
  OTT_RETURN_IF_ERROR(WriteFileAtomically(
      flags.guess_file,
      absl::StrCat("# A guess of `ott compare`, by which tensors went together: ", guessed.by,
                   ".\n# Look at each rule, then pass the file as --names.\n", text)));
  return guessed;
}

absl::StatusOr<RunsComparison> Compare(const CompareFlags& flags) {
  CompareRunsOptions options = flags.options;
  options.keep_results = flags.format == "csv" || flags.format == "junit";
  for (const std::string& text : flags.tolerances) {
    OTT_ASSIGN_OR_RETURN(PathTolerance tolerance, ParsePathTolerance(text));
    tolerance.tolerance.nan_equal = options.compare.tensors.tolerance.nan_equal;
    options.compare.path_tolerances.push_back(std::move(tolerance));
  }
  if (!flags.tolerances_file.empty()) {
    OTT_ASSIGN_OR_RETURN(options.tolerances, ToleranceFile::Read(flags.tolerances_file));
  }
  if (!flags.names_file.empty())
    OTT_RETURN_IF_ERROR(ReadTextProto(flags.names_file, &options.names.emplace()));
  if (!flags.guess_file.empty()) {
    OTT_ASSIGN_OR_RETURN(GuessedNames guessed, Guess(flags));
    options.names = std::move(guessed.names);
    OTT_ASSIGN_OR_RETURN(RunsComparison comparison, CompareRuns(flags.reference, flags.current, options));
    comparison.problems.push_back(absl::StrCat(
        "which tensors go together was guessed: ", guessed.by, ". A guess is no pass: look at the rules in ",
        flags.guess_file, ", then compare with --names ", flags.guess_file));
    return comparison;
  }
  return CompareRuns(flags.reference, flags.current, options);
}

absl::StatusOr<int> RunCompare(const CompareFlags& flags) {
  for (const std::string& run : {flags.reference, flags.current}) SayLatestAttempt("compare", run);
  OTT_ASSIGN_OR_RETURN(const RunsComparison comparison, Compare(flags));
  const Answer answer = AnswerCompare(comparison);
  if (!flags.output.empty()) {
    OTT_RETURN_IF_ERROR(WriteFileAtomically(flags.output, Report(comparison, answer, flags.format)));
  }
  std::fputs(Report(comparison, answer, flags.output.empty() ? flags.format : "text").c_str(), stdout);
  return ExitCodeOf(flags.warn_only && answer.finding() == Answer::BAD ? Answer::GOOD : answer.finding());
}

}  // namespace

void AddCompareCommand(const CommandLine& line) {
  CLI::App* command =
      line.app.add_subcommand("compare", "What first differs between two runs, dumps or checkpoints");
  const auto flags = std::make_shared<CompareFlags>();
  flags->options.compare.tensors.num_worst = 1;
  Tolerance& tolerance = flags->options.compare.tensors.tolerance;
  command->add_option("REFERENCE", flags->reference, "Run directory, folder of dumps, dump, or checkpoint")
      ->required();
  command->add_option("CURRENT", flags->current, "The same kind")->required();
  command->add_option("--atol", tolerance.atol, "Absolute tolerance")
      ->check(NumberFrom(0))
      ->capture_default_str();
  command->add_option("--rtol", tolerance.rtol, "Tolerance relative to the reference; both add up")
      ->check(NumberFrom(0))
      ->capture_default_str();
  command->add_flag("--bitwise", tolerance.bitwise, "Only equal bits are equal")
      ->excludes("--atol")
      ->excludes("--rtol");
  command
      ->add_flag("--default-tolerances", flags->options.compare.default_tolerances,
                 "torch.testing's tolerance of each tensor's dtype instead of --atol and --rtol")
      ->excludes("--atol")
      ->excludes("--rtol")
      ->excludes("--bitwise");
  command
      ->add_option("--tolerance", flags->tolerances,
                   "GLOB=ATOL,RTOL: another tolerance for the tensors whose path matches; the first counts")
      ->allow_extra_args(false);
  command->add_option("--tolerances", flags->tolerances_file,
                      "File that `ott calibrate` wrote, for the tensors of dumps that it names");
  command->add_option("--names", flags->names_file,
                      "File that says which tensors of two checkpoints go together (docs/checkpoints.md)");
  command
      ->add_option("--guess-names", flags->guess_file,
                   "Guesses which tensors of two checkpoints go together, and writes the rules to this file")
      ->excludes("--names");
  command->add_flag("--nan-equal", tolerance.nan_equal, "NaN equals NaN");
  command->add_flag("--allow-missing", flags->options.compare.allow_missing,
                    "Tensors that only the reference has do not count");
  command->add_flag("--allow-extra", flags->options.compare.allow_extra,
                    "Tensors that only the current has do not count");
  command->add_flag("--order", flags->options.compare.compare_order,
                    "Names in another order count as a difference");
  command->add_flag("--allow-empty", flags->options.allow_empty,
                    "Equal instead of \"could not compare\" if no dump has a number on either side");
  command
      ->add_option("--worst", flags->options.compare.tensors.num_worst,
                   "Elements with the largest error that are shown of a tensor")
      ->check(NumberFrom(0))
      ->capture_default_str();
  command->add_flag("--warn-only", flags->warn_only, "Exit code 0 although different");
  command->add_option("--format", flags->format, "text and json sum up; csv and junit have every tensor")
      ->check(CLI::IsMember({"text", "json", "csv", "junit"}))
      ->capture_default_str();
  command->add_option("-o,--output", flags->output,
                      "Writes the report to this file; standard output then has the text");
  command->footer(
      "Exit code: 0 equal within the tolerance, 1 different, 2 could not be compared in full.\n"
      "Examples:\n"
      "  ott compare --atol 1e-4 --rtol 1e-3 out/demo/reference out/demo/optimized\n"
      "  ott compare run/checkpoint_200.pt resumed/checkpoint_200.pt\n"
      "  ott compare --format=junit -o compare.xml out/demo/reference out/demo/faulty");
  command->callback(
      [flags, exit_code = line.exit_code] { *exit_code = FinishCommand("compare", RunCompare(*flags)); });
}

}  // namespace ott::compare
