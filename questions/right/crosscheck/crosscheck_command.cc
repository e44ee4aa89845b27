#include "ott/questions/right/crosscheck/crosscheck_command.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ott/core/base/config.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/check/verdict_log.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/right/crosscheck/check_history.h"
#include "ott/questions/right/crosscheck/check_reference.h"
#include "ott/questions/right/crosscheck/check_replicas.h"
#include "ott/questions/right/layout/check_layout.h"
#include "ott/questions/right/layout/layout_text.h"

namespace ott::crosscheck {
namespace {

constexpr int kMaxFailuresPrinted = 5;

struct CrosscheckFlags {
  std::string run;      // alone, or the reference of current
  std::string current;  // may be ""
  std::string config;
  std::vector<std::string> replicated;
  std::vector<int> reference_ranks;
  std::optional<double> atol;
  std::optional<double> rtol;
  std::string tolerances;
  std::string layout;
  std::string format = "text";
};

const std::string& CheckedRun(const CrosscheckFlags& flags) {
  return flags.current.empty() ? flags.run : flags.current;
}

// Takes what the run was made with or --config says, and instead of it what flags say.
absl::StatusOr<CrossCheckConfig> MakeConfig(const CrosscheckFlags& flags) {
  CrossCheckConfig config;
  if (!flags.config.empty()) {
    OTT_ASSIGN_OR_RETURN(const Config loaded, LoadConfig(flags.config));
    config = loaded.cross_check();
  } else if (const absl::StatusOr<RunInfo> info = ReadRunInfo(LatestAttempt(CheckedRun(flags))); info.ok()) {
    config = info->config().cross_check();
  }
  if (!flags.replicated.empty()) {
    *config.mutable_replicated() = {flags.replicated.begin(), flags.replicated.end()};
  }
  if (!flags.reference_ranks.empty()) {
    *config.mutable_reference_ranks() = {flags.reference_ranks.begin(), flags.reference_ranks.end()};
  }
  if (flags.atol) config.mutable_reference_tolerance()->set_atol(*flags.atol);
  if (flags.rtol) config.mutable_reference_tolerance()->set_rtol(*flags.rtol);
  if (!flags.tolerances.empty()) config.set_reference_tolerances(flags.tolerances);
  config.set_reference_run(flags.current.empty() ? "" : flags.run);
  return config;
}

// The worst of the verdicts on one question.
template <typename Verdicts>
Answer AnswerVerdicts(const CrosscheckFlags& flags, const Verdicts& verdicts) {
  Answer worst = MakeAnswer(flags.current.empty() ? kReplicasQuestion : kReferenceQuestion);
  for (const auto& verdict : verdicts) {
    Answer answer = worst;
    answer.set_finding(FindingOfOutcome(verdict.outcome()));
    if (FindingOf({worst, answer}) != worst.finding()) {
      SetEvidence(verdict, &answer);
      worst = std::move(answer);
    }
  }
  return worst;
}

// Returns the answer as a line of JSON, behind those of the verdicts.
std::string AnswerLine(const Answer& answer) {
  return AnswersToJson({answer}).dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

// A run with another has a verdict for each rank: only failures are worth a line.
std::string FormatReferenceVerdicts(const std::string& reference,
                                    const std::vector<CrossCheckVerdict>& verdicts) {
  std::string text;
  const auto counts = VerdictLog::Open("");
  int num_failures = 0;
  for (const CrossCheckVerdict& verdict : verdicts) {
    (*counts)->Add(verdict).IgnoreError();
    if (!Passed(verdict) && num_failures++ < kMaxFailuresPrinted) text += FormatVerdict(verdict);
  }
  return text + FormatSummary("reference " + reference, (*counts)->reference()) + "\n" +
         FormatErrorTrend(verdicts);
}

absl::StatusOr<std::vector<CrossCheckVerdict>> Check(const CrosscheckFlags& flags) {
  OTT_ASSIGN_OR_RETURN(const CrossCheckConfig config, MakeConfig(flags));
  if (!flags.current.empty()) return CheckRunAgainstReference(flags.current, config);
  return CheckReplicasOfRun(flags.run, config);
}

absl::StatusOr<std::vector<LayoutVerdict>> CheckLayouts(const CrosscheckFlags& flags) {
  if (flags.current.empty()) {
    return absl::InvalidArgumentError("--layout compares two runs: give A and B");
  }
  Layout layout;
  OTT_RETURN_IF_ERROR(ReadTextProto(flags.layout, &layout));
  OTT_ASSIGN_OR_RETURN(const CrossCheckConfig config, MakeConfig(flags));
  LayoutOptions options;
  const ToleranceConfig& tolerance = config.reference_tolerance();
  if (!IsTolerance(tolerance.atol()) || !IsTolerance(tolerance.rtol())) {
    return absl::InvalidArgumentError("cross_check: reference_tolerance: not a finite number of at least 0");
  }
  if (tolerance.atol() > 0 || tolerance.rtol() > 0) {
    options.tolerance.emplace();
    options.tolerance->atol = tolerance.atol();
    options.tolerance->rtol = tolerance.rtol();
  }
  if (!config.reference_tolerances().empty()) {
    OTT_ASSIGN_OR_RETURN(options.tolerance_file, ToleranceFile::Read(config.reference_tolerances()));
  }
  return CheckLayout(flags.run, flags.current, layout, options);
}

absl::StatusOr<int> RunLayoutCheck(const CrosscheckFlags& flags) {
  OTT_ASSIGN_OR_RETURN(const std::vector<LayoutVerdict> verdicts, CheckLayouts(flags));
  const Answer answer = AnswerVerdicts(flags, verdicts);
  std::string text;
  if (flags.format == "json") {
    for (const LayoutVerdict& verdict : verdicts) text += ProtoToJson(verdict, JsonLayout::kOneLine);
    text += AnswerLine(answer);
  } else {
    text = LayoutVerdictsToText(verdicts);
  }
  std::fputs(text.c_str(), stdout);
  return ExitCodeOf(answer.finding());
}

absl::StatusOr<int> RunCrosscheck(const CrosscheckFlags& flags) {
  for (const std::string& run : {flags.run, flags.current}) SayLatestAttempt("crosscheck", run);
  if (!flags.layout.empty()) return RunLayoutCheck(flags);
  OTT_ASSIGN_OR_RETURN(const std::vector<CrossCheckVerdict> verdicts, Check(flags));
  Answer answer = AnswerVerdicts(flags, verdicts);
  CrossCheckVerdict worst;
  if (worst.ParseFromString(answer.evidence()) && !verdicts.empty())
    AddSentences(VerdictLines(worst), &answer);
  std::string text;
  if (flags.format == "text" && !flags.current.empty()) {
    text = FormatReferenceVerdicts(flags.run, verdicts);
  } else {
    for (const CrossCheckVerdict& verdict : verdicts) {
      text += flags.format == "json" ? VerdictToJsonLine(verdict) : FormatVerdict(verdict);
    }
  }
  if (flags.format == "json") text += AnswerLine(answer);
  std::fputs(text.c_str(), stdout);
  return ExitCodeOf(answer.finding());
}

}  // namespace

void AddCrosscheckCommand(const CommandLine& line) {
  CLI::App* command = line.app.add_subcommand(
      "crosscheck", "Whether the ranks of a run held the same tensors, and those of a reference run");
  const auto flags = std::make_shared<CrosscheckFlags>();
  command->add_option("RUN", flags->run, "Run directory with dumps: do its ranks agree?")->required();
  command->add_option("CURRENT", flags->current, "Another: does it agree with RUN, the reference?");
  command->add_option(
      "--config", flags->config,
      "File with an ott.Config whose cross_check says what is compared; without it, what the run was "
      "made with");
  CLI::Option* const replicated =
      command
          ->add_option(
              "--replicated", flags->replicated,
              "Glob over paths of tensors that must be equal on all ranks; may be repeated; none: all")
          ->allow_extra_args(false);
  CLI::Option* const reference_ranks =
      command
          ->add_option("--reference-ranks", flags->reference_ranks,
                       "The reference's rank for each rank of the run, such as 0,1,0,1, or one for all")
          ->delimiter(',')
          ->allow_extra_args(false);
  command->add_option("--atol", flags->atol, "Absolute tolerance against the reference")
      ->check(NumberFrom(0));
  command->add_option("--rtol", flags->rtol, "Tolerance relative to the reference; both add up")
      ->check(NumberFrom(0));
  command->add_option("--tolerances", flags->tolerances,
                      "File that `ott calibrate` wrote, for the tensors that it names");
  command
      ->add_option(
          "--layout", flags->layout,
          "File that says how RUN (a) and CURRENT (b) hold the same tensors on their ranks: split over "
          "named axes, summed, transposed, padded, fused, renamed")
      ->excludes(replicated)
      ->excludes(reference_ranks);
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Exit code: 0 equal or within tolerance, 1 different, 2 could not compare.\n"
      "Examples:\n  ott crosscheck out/demo/faulty --replicated 'weights.*'\n"
      "  ott crosscheck out/demo/reference out/demo/optimized --tolerances tolerances.textproto\n"
      "  ott crosscheck out/data4 out/data2_tensor2 --layout layout.textproto");
  command->callback([flags, exit_code = line.exit_code] {
    *exit_code = FinishCommand("crosscheck", RunCrosscheck(*flags));
  });
}

}  // namespace ott::crosscheck
