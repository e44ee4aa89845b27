#include "tools/crosscheck/crosscheck_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ott/dist/verdict.h"
#include "tools/crosscheck/check_replicas.h"
#include "tools/exit_code.h"

namespace ott {
namespace {

struct CrosscheckFlags {
  std::string run;
  std::vector<std::string> replicated;
  std::string format = "text";
};

int RunCrosscheck(const CrosscheckFlags& flags) {
  const absl::StatusOr<std::vector<CrossCheckVerdict>> verdicts =
      CheckReplicasOfRun(flags.run, flags.replicated);
  if (!verdicts.ok()) {
    std::fprintf(stderr, "ott crosscheck: %s\n", std::string(verdicts.status().message()).c_str());
    return kExitCouldNotTell;
  }
  int exit_code = kExitGood;
  for (const CrossCheckVerdict& verdict : *verdicts) {
    std::fputs((flags.format == "json" ? VerdictToJsonLine(verdict) : FormatVerdict(verdict)).c_str(),
               stdout);
    if (verdict.outcome() == DIFFERENT) {
      exit_code = kExitBad;
    } else if (!Passed(verdict) && exit_code == kExitGood) {
      exit_code = kExitCouldNotTell;
    }
  }
  return exit_code;
}

}  // namespace

void AddCrosscheckCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand("crosscheck", "Whether the ranks of a run held the same tensors");
  const auto flags = std::make_shared<CrosscheckFlags>();
  command->add_option("RUN", flags->run, "Run directory with dumps")->required();
  command->add_option("--replicated", flags->replicated,
                      "Globs over paths of tensors that must be equal on all ranks; none: all");
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Exit code: 0 equal bit for bit, 1 different, 2 could not compare.\n"
      "Two runs are compared by `ott compare`.\n"
      "Example:\n  ott crosscheck out/demo/faulty --replicated 'weights.*'");
  command->callback([flags, exit_code] { *exit_code = RunCrosscheck(*flags); });
}

}  // namespace ott
