// `ott stats RUN`: the cluster table, from what the ranks left on disk.

#ifndef OTT_QUESTIONS_SLOW_STATS_COMMAND_H_
#define OTT_QUESTIONS_SLOW_STATS_COMMAND_H_

#include "ott/questions/answer/question.h"

namespace ott::slow {

void AddStatsCommand(const CommandLine& line);

}  // namespace ott::slow

#endif  // OTT_QUESTIONS_SLOW_STATS_COMMAND_H_
