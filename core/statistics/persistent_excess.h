// Judges whether one of several processes that do like work takes longer than the others: all the time or
// from some iteration on, and by more than processes of the same program differ anyway.

#ifndef OTT_CORE_STATISTICS_PERSISTENT_EXCESS_H_
#define OTT_CORE_STATISTICS_PERSISTENT_EXCESS_H_

#include <vector>

#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/steady_time.h"

namespace ott {

// The share that a process had of the machine while it did the work that is compared.
struct CpuShare {
  // Seconds of the work on a CPU; the rest is sleep, input and output, a device.
  double cpu_seconds = 0;
  // For what share of the work others had its CPU, in [0, 1].
  double taken_share = 0;
  // How long the work was watched, from the first of its times to the last.
  double watched_seconds = 0;
  // Seconds of the work in which others had the CPU.
  double taken_seconds = 0;
};

// Takes of each number the one that lets processes that are alike differ more: the longer time on a CPU, the
// larger share, the shorter watch.
CpuShare LeastCertain(const CpuShare& a, const CpuShare& b);

// The times that one process takes for the work that is compared.
struct ProcessTime {
  SteadyTime time;
  CpuShare cpu;
};

// Processes of one program that do the same differ for good: memory lies elsewhere, and caches and branches
// with it (Mytkowicz and others 2009; Kalibera and Jones 2013). This is what is expected before any process
// was seen, as a standard deviation: a share of the time on a CPU, and seconds. It counts as much as
// kSpreadDegreesOfFreedom processes that were seen; with more of them, what they show counts (Smyth 2004).
inline constexpr double kExpectedSpread = 0.02;
inline constexpr double kExpectedSpreadSeconds = 5e-6;  // cold caches
// And what a machine does to one of its CPUs for a while (clock rates, other threads or machines on the same
// core): it lasts for some kDisturbanceSeconds, whatever an iteration takes, and only a longer time averages
// over it.
inline constexpr double kDisturbance = 0.05;
inline constexpr double kDisturbanceSeconds = 0.3;
// As much more for each unit of the larger taken_share: who had the CPU leaves other data in its caches,
// until the scheduler puts the processes elsewhere.
inline constexpr double kDisturbanceOfTaken = 0.25;
// Now and then it has a CPU at half its speed, for as long: seldom, but more often than a verdict may be
// wrong.
inline constexpr double kSlowdown = 1;
inline constexpr double kSpreadDegreesOfFreedom = 20;

// Seconds, as a standard deviation, that a process like the others may take more or less.
double ExpectedSpread(const CpuShare& cpu);

// Seconds that a process like the others takes more where its CPU had one such slowdown.
double SecondsOfOneSlowdown(const CpuShare& cpu);

// Others take a CPU from one process for longer than from the next, also in the mean of a long run. As a
// standard deviation, this share of the time that is taken.
inline constexpr double kLatenessOfTaken = 0.25;

// Seconds by which what others take makes one of several processes that are alike later than the next.
double SpreadOfTaken(const CpuShare& cpu);

// With a spread that was expected, and not seen, added to what it is uncertain by within the run.
Estimate WithExpectedSpread(const Estimate& within_run, double spread);

// The excess of one process over the median of the others.
struct Excess {
  double seconds = 0;
  // The others' median.
  double of_others = 0;
  // The uncertainty of the excess within this run.
  Estimate within_run;
  // The excess less what one slowdown of a CPU makes, with what innocent processes differ by as its error:
  // what the test rests on.
  Estimate among_processes;
  // Of how many tests this is one, as there are parts of a run.
  double num_tests = 1;
  // Where it begins and ends, as shares of the run: 0 and 1 unless only a part of the run has it. In a part,
  // all of the above are of that part.
  double begin = 0;
  double end = 1;
  // In the mean of the whole run.
  double seconds_of_run = 0;

  bool is_of_part() const { return begin > 0 || end < 1; }

  // How probable such an excess is, in any of the tests, where the process is like the others.
  double PValue() const;
  // The excess that would have been found at this level in four of five runs.
  // REQUIRES: 0 < level < 1
  double Detectable(double level) const;
};

// Compares iteration by iteration where all have blocks of the same iterations, so that what changes for all
// of them, as phases of a job do, does not count. Then it also looks for the part of the run, of at least
// four blocks, that has an excess which the rest has not.
//
// REQUIRES: others is not empty.
Excess ExcessOver(const std::vector<ProcessTime>& others, const ProcessTime& process);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_PERSISTENT_EXCESS_H_
