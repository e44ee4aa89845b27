// `ott stats RUN`: the cluster table, from what the ranks left on disk.

#ifndef OTT_QUESTIONS_SLOW_STATS_COMMAND_H_
#define OTT_QUESTIONS_SLOW_STATS_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::stats {

// Sets *exit_code (exit_code.h) when the subcommand ran.
void AddStatsCommand(CLI::App& app, int* exit_code);

}  // namespace ott::stats

#endif  // OTT_QUESTIONS_SLOW_STATS_COMMAND_H_
