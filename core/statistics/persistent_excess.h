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
  // The time for which the work was watched, from the first of its times to the last.
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

// Returns the seconds, as a standard deviation, that a process like the others may take more or less.
double ExpectedSpread(const CpuShare& cpu);

// Seconds that a process like the others takes more where its CPU had one such slowdown.
double SecondsOfOneSlowdown(const CpuShare& cpu);

// Seconds by which what others take makes one of several processes that are alike later than the next.
double SpreadOfTaken(const CpuShare& cpu);

// Adds a spread that was expected, and not seen, to what it is uncertain by within the run.
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
  // The number of tests of which this is one, as there are parts of a run.
  double num_tests = 1;
  // The ends of the part that has it, as shares of the run: 0 and 1 unless only a part of the run has it. In
  // a part, all of the above are of that part.
  double begin = 0;
  double end = 1;
  // In the mean of the whole run.
  double seconds_of_run = 0;

  bool is_of_part() const { return begin > 0 || end < 1; }

  // Returns the probability of such an excess, in any of the tests, if the process is like the others.
  double PValue() const;
  // The excess that would have been found at this level in four of five runs.
  // REQUIRES: 0 < level < 1
  double Detectable(double level) const;
};

// Compares iteration by iteration where all have blocks of the same iterations, by seconds and by shares of
// the others' time, so that what changes for all of them, as phases of a job do, does not count. Then it also
// looks for the part of the run, of at least four blocks, that has an excess which the rest has not.
//
// REQUIRES: others is not empty.
Excess ExcessOver(const std::vector<ProcessTime>& others, const ProcessTime& process);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_PERSISTENT_EXCESS_H_
