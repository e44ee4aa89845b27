// Tells whether a process that is seldom late, and then by much, is so again and again.

#ifndef OTT_CORE_STATISTICS_RARE_EXCESS_H_
#define OTT_CORE_STATISTICS_RARE_EXCESS_H_

#include <cstdint>
#include <vector>

namespace ott {

// Returns true if an iteration of this mean length in which a process is so late has a hiccup.
bool IsHiccup(double late_seconds, double iteration_seconds);

// hiccups: seconds, of one process. all_late_seconds: of whichever process, in all iterations.
bool IsRepeated(const std::vector<double>& hiccups, double all_late_seconds, int64_t num_iterations,
                double iteration_seconds);

// Returns true if hiccups come from one of several processes so often that, were all alike, hardly ever any
// had so many. others: of the other processes; those far shorter than the one's own are none of the kind.
// REQUIRES: hiccups is not empty.
bool IsMoreThanChance(const std::vector<double>& hiccups, const std::vector<double>& others,
                      int64_t num_processes);

// Returns true if a process's hiccups come at equal distances, which those by chance do not. iterations:
// ascending.
bool IsRegular(const std::vector<int64_t>& iterations);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_RARE_EXCESS_H_
