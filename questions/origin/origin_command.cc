#include "ott/questions/origin/origin_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/origin/origin.h"
#include "ott/questions/origin/origin_answer.h"
#include "ott/questions/origin/origin_text.h"

namespace ott::origin {
namespace {

struct OriginFlags {
  std::string reference;
  std::string current;
  std::string perturbed;
  std::vector<int> ranks;
  bool repeat = false;
  std::string format = "text";
};

absl::StatusOr<OriginVerdict> Find(const OriginFlags& flags) {
  if (flags.ranks.empty()) {
    if (flags.current.empty()) {
      return absl::InvalidArgumentError("a second run is needed, or --ranks for two ranks of one");
    }
    return FindOrigin(flags.reference, flags.current, flags.perturbed);
  }
  const std::string& current = flags.current.empty() ? flags.reference : flags.current;
  return FindOrigin(flags.reference, current, flags.perturbed, {{flags.ranks[0], flags.ranks[1]}});
}

// Returns true if a run has operations that the other one has not, and the others repeat.
bool HasMore(const OriginVerdict& verdict) {
  return verdict.kind() == OriginVerdict::NONE &&
         verdict.num_only_in_reference() + verdict.num_only_in_current() > 0;
}

// Describes the verdict on two runs of one program.
const char* DescribeRepetition(const OriginVerdict& verdict) {
  if (HasMore(verdict)) {
    return "whether it is deterministic cannot be told: what both logged repeats, and one run logged more";
  }
  switch (verdict.kind()) {
    case OriginVerdict::NONE:
      return "deterministic: all that was logged repeats bit for bit";
    case OriginVerdict::UNKNOWN:
      return "whether it is deterministic cannot be told";
    default:
      return "not deterministic: above is the first that does not repeat";
  }
}

absl::StatusOr<int> RunOrigin(const OriginFlags& flags) {
  for (const std::string& run : {flags.reference, flags.current, flags.perturbed}) {
    if (!run.empty()) SayLatestAttempt("origin", run);
  }
  OTT_ASSIGN_OR_RETURN(const OriginVerdict verdict, Find(flags));
  Answer answer = AnswerOrigin(verdict);
  if (flags.repeat && HasMore(verdict)) {
    answer.set_finding(Answer::CANNOT_TELL);
    answer.add_sentences(DescribeRepetition(verdict));
  }
  std::fputs((flags.format == "json" ? AnswersToJsonText({answer}) : FormatOrigin(verdict)).c_str(), stdout);
  if (flags.repeat && flags.format == "text") std::puts(DescribeRepetition(verdict));
  return ExitCodeOf(answer.finding());
}

}  // namespace

void AddOriginCommand(const CommandLine& line) {
  CLI::App* command =
      line.app.add_subcommand("origin", "Which operation first computed something else than in another run");
  const auto flags = std::make_shared<OriginFlags>();
  command->add_option("REFERENCE", flags->reference, "Run directory with logs of operations (`op_log {}`)")
      ->required();
  command->add_option("CURRENT", flags->current, "The run that computed something else");
  CLI::Option* const perturbed = command->add_option(
      "--perturbed", flags->perturbed,
      "The reference's program with `perturb {}`: what rounding grows to there is no finding");
  command->add_option("--ranks", flags->ranks, "Compare these two ranks, A,B, of one run or of both")
      ->delimiter(',')
      ->expected(2);
  command->add_flag("--repeat", flags->repeat, "Both are runs of one program: what is not deterministic?")
      ->excludes(perturbed);
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Exit code: 0 nothing differs (with --perturbed: by more than is explained), 1 an operation, update or "
      "input is\nto blame, 2 could not tell: logs are missing, cut or of other programs.\n"
      "Examples:\n  ott origin out/reference out/optimized --perturbed out/perturbed\n"
      "  ott origin out/run --ranks 0,1");
  command->callback([flags, exit_code = line.exit_code] {
    *exit_code = FinishCommand(kQuestion.command, RunOrigin(*flags));
  });
}

}  // namespace ott::origin
