#include "questions/slow/stats_command.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "ott/dist/stats/cluster_table.h"
#include "ott/questions/slow/read_cluster_stats.h"
#include "tools/exit_code.h"

namespace ott::stats {
namespace {

struct StatsFlags {
  std::string run;
  std::string format = "text";
};

int RunStats(const StatsFlags& flags) {
  std::vector<std::string> problems;
  const absl::StatusOr<ClusterStats> stats = ReadClusterStats(flags.run, &problems);
  if (!stats.ok()) {
    std::fprintf(stderr, "ott stats: %s\n", std::string(stats.status().message()).c_str());
    return kExitCouldNotTell;
  }
  std::fputs((flags.format == "json" ? ClusterStatsToJson(*stats) : FormatClusterTable(*stats)).c_str(),
             stdout);
  return stats->missing_ranks().empty() && problems.empty() ? kExitGood : kExitCouldNotTell;
}

}  // namespace

void AddStatsCommand(CLI::App& app, int* exit_code) {
  CLI::App* command =
      app.add_subcommand("stats", "Where the time of a run went, over all ranks, and who was slow");
  const auto flags = std::make_shared<StatsFlags>();
  command->add_option("RUN", flags->run, "Run directory, also of a run that was cut short")->required();
  command->add_option("--format", flags->format)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Exit code: 0 all ranks reported, whoever is slow; 2 some did not (they are named), or RUN or a file "
      "of "
      "it\ncannot be read.\n"
      "Example:\n  ott stats out/demo/reference");
  command->callback([flags, exit_code] { *exit_code = RunStats(*flags); });
}

}  // namespace ott::stats
