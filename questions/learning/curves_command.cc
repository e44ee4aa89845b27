#include "ott/questions/learning/curves_command.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/learning/comparison.h"
#include "ott/questions/learning/first_difference.h"
#include "ott/questions/learning/learning_answer.h"
#include "ott/questions/learning/learning_document.h"
#include "ott/questions/learning/read_curves.h"

namespace ott::learning {
namespace {

constexpr char kSeparator[] = "---";

struct CurvesFlags {
  std::vector<std::string> sides;  // A --- B
  std::string metric;
  std::string x;
  std::string better = "auto";
  std::string margin;
  double confidence_percent = 99;
  size_t max_runs = 0;
  std::string format = "text";
  std::string output;
  std::string html;
};

absl::StatusOr<CompareOptions> OptionsOf(const CurvesFlags& flags) {
  CompareOptions options;
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
  if (!absl::SimpleAtod(number, &margin) || !(margin >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--margin ", flags.margin, ": needs a number in units of the metric, or as 2%, of the steps"));
  }
  (is_share ? options.margin_share : options.margin) = is_share ? margin / 100 : margin;
  return options;
}

absl::StatusOr<int> CompareSides(const CurvesFlags& flags,
                                 const std::function<std::string(const Document&)>& page) {
  const auto at = std::find(flags.sides.begin(), flags.sides.end(), kSeparator);
  const std::vector<std::string> paths_a(flags.sides.begin(), at);
  const std::vector<std::string> paths_b(at == flags.sides.end() ? at : at + 1, flags.sides.end());
  if (paths_a.empty() || paths_b.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        paths_a.empty() ? "A" : "B",
        " is missing: the sides are separated by ---, as in `ott curves RUN_A... --- RUN_B...`"));
  }
  OTT_ASSIGN_OR_RETURN(const CompareOptions options, OptionsOf(flags));
  OTT_ASSIGN_OR_RETURN(const SidesRead sides, ReadSides(paths_a, paths_b, {flags.x}));
  OTT_ASSIGN_OR_RETURN(LearningVerdict verdict, Compare(sides.a, sides.b, sides.x_name, options));
  AddFirstDifference(sides.a, sides.b, &verdict);
  const Answer answer = AnswerLearning(verdict);
  const std::string text = ToText(verdict);
  const std::string report = flags.format == "json" ? AnswersToJsonText({answer}) : text;
  if (!flags.output.empty()) OTT_RETURN_IF_ERROR(WriteFileAtomically(flags.output, report));
  if (!flags.html.empty()) {
    OTT_RETURN_IF_ERROR(WriteFileAtomically(
        flags.html, page(DocumentOf(verdict, absl::StrCat("A: ", absl::StrJoin(paths_a, " "),
                                                          "; B: ", absl::StrJoin(paths_b, " "))))));
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
          "Run directories, or files of metrics: CSV, JSON lines, TensorBoard's event files, MLPerf's logs, "
          "trainer_state.json, exports of Weights & Biases; folders of them, or globs. B may be one run")
      ->required();
  command->add_option("--metric", flags->metric,
                      "What the answer is about; by default a loss of an evaluation");
  command->add_option("--x", flags->x, "What metrics are drawn over, a column or key; by default the steps");
  command->add_option("--better", flags->better, "auto: lower for a loss, else what most curves move to")
      ->check(CLI::IsMember({"auto", "lower", "higher"}))
      ->capture_default_str();
  command->add_option(
      "--margin", flags->margin,
      "What is as good: in units of the metric, or as 2%, of the steps; by default half of what the "
      "runs of A span");
  command->add_option("--confidence", flags->confidence_percent, "Percent of the answers that hold")
      ->check(CLI::Range(50.0, 99.9999))
      ->capture_default_str();
  command
      ->add_option("--max-runs", flags->max_runs,
                   "The most runs a side there will be, for who asks again after each run that ends")
      ->check(CLI::Range(2, 2000));
  command->add_option("--format", flags->format, "json has every point")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->add_option("-o,--output", flags->output,
                      "Writes the report to this file; standard output then has the text");
  command->add_option("--html", flags->html,
                      "Also writes a page for the browser with the curves, in one file");
  command->footer(
      "Exit code: 0 B is as good or better, 1 worse, a run of B diverged, or another metric differs, 2 "
      "cannot tell.\n"
      "Examples:\n"
      "  ott curves 'out/reference_*' --- 'out/fp8_*'\n"
      "  ott curves --metric eval_loss --margin 2% base/*.csv --- new/*.csv\n"
      "  ott curves --max-runs 10 --html curves.html runs/old --- runs/new");
  command->callback([flags, page = line.page, exit_code = line.exit_code] {
    *exit_code = FinishCommand(kQuestion.command, CompareSides(*flags, page));
  });
}

}  // namespace ott::learning
