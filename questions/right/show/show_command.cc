#include "ott/questions/right/show/show_command.h"

#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ott/core/base/status_macros.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/right/show/show.h"

namespace ott::show {
namespace {

struct ShowFlags {
  std::string path;
  std::string format = "text";
};

absl::StatusOr<int> RunShow(const ShowFlags& flags) {
  OTT_ASSIGN_OR_RETURN(const Contents contents, Show(flags.path));
  const std::string text = flags.format == "json"  ? ToJson(contents)
                           : flags.format == "csv" ? ToCsv(contents)
                                                   : ToText(contents);
  std::fputs(text.c_str(), stdout);
  return ExitCodeOf(Answer::GOOD);
}

}  // namespace

void AddShowCommand(const CommandLine& line) {
  CLI::App* command =
      line.app.add_subcommand("show", "The tensors of a checkpoint or a dump, and what they are like");
  const auto flags = std::make_shared<ShowFlags>();
  command->add_option("PATH", flags->path, "Checkpoint or dump")->required();
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  command->footer("Exit code: 0, or 2 where it cannot be read.\nExample:\n  ott show run/checkpoint_200.pt");
  command->callback(
      [flags, exit_code = line.exit_code] { *exit_code = FinishCommand("show", RunShow(*flags)); });
}

}  // namespace ott::show
