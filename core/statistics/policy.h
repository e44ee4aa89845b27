// Whom verdicts about time name: how often they may be wrong, what is too small for a name, how many samples
// they need, and by what processes that are alike differ. A threshold is changed here, and nowhere else.

#ifndef OTT_CORE_STATISTICS_POLICY_H_
#define OTT_CORE_STATISTICS_POLICY_H_

#include <cstddef>
#include <cstdint>

namespace ott {

// Families: how often they may be wrong.

// The error rates of a gather that names a rank although all ranks are alike. It may be named for its work,
// for any measurement (over all ranks and measurements), or as one that the others wait for (over all ranks
// and collective measurements).
inline constexpr double kWorkError = 0.0025;
inline constexpr double kMeasurementError = 0.005;
inline constexpr double kHoldUpError = 0.0025;
// The share of these errors that one window between two gathers may have; a run has many windows.
inline constexpr double kWindowErrorShare = 0.05;
// A part of a run that is like the rest may be told from it so often.
inline constexpr double kPartError = 1e-4;
// Hiccups that come to processes by chance may look so often as if they were one's own.
inline constexpr double kHiccupError = 0.001;
// Replays of a job may mend, and blame, ranks that are like the others so often: over all sets of ranks and
// kinds of work.
inline constexpr double kBlameError = 0.001;

// The error rate of the intervals that are shown.
inline constexpr double kIntervalError = 0.05;
// The quantile of the normal distribution that four of five samples are below: the power at which it is said
// what would have been found.
inline constexpr double kPowerQuantile = 0.84;

// Sizes: what is too small for a name, however sure it is.

// A smaller excess is not named: smaller than this share of the others' median; and, for the work or for one
// measurement, than this share of a mean iteration.
inline constexpr double kMinExcess = 0.05;
inline constexpr double kMinWorkShare = 0.01;
inline constexpr double kMinMeasurementShare = 0.001;
// For a sampled one, such as a module: processes that are alike differ in what they take of memory and
// caches, and that lies in few modules.
inline constexpr double kMinSampledExcess = 0.05;
// Nor, for a measurement, an excess that is smaller than this share of that of a slow rank's work: the others
// run at other moments than that rank, which makes their short measurements longer or shorter.
inline constexpr double kMinShareOfStraggler = 0.05;
// Nor an excess of which less than this share is there with what others took of the CPU, where own times do
// without that: the others may have lost nothing by it, as they slept.
inline constexpr double kMinShareWithTaken = 1.0 / 3;
// An excess is said in the mean of all iterations, too, if that differs from it by more than this share.
inline constexpr double kOffInMean = 0.2;

// Each of nested measurements that has this share of the largest excess may be named for it.
inline constexpr double kMostOfExcess = 0.8;

// A rank holds the others up only if they wait for it longer than the clocks' error, and longer than this
// share of a mean iteration.
inline constexpr double kHoldUpIterationShare = 0.02;
// Nor if all wait for another rank nearly as long in sum: it has to make them wait this many times as long.
inline constexpr double kTimesCaused = 1.5;

// A process has a hiccup where it is late by at least kHiccupSeconds and kHiccupIterationShare of a mean
// iteration. Hiccups are named if they are in at most kRareShare of the iterations, and if even without the
// longest they make half of all that the processes are late by and kHiccupTimeShare of the time. Others'
// hiccups that are shorter than kHiccupOfOthersShare of the process's median one do not count beside it.
inline constexpr double kHiccupIterationShare = 0.2;
inline constexpr double kHiccupSeconds = 2e-3;
inline constexpr double kHiccupTimeShare = 0.02;
inline constexpr double kRareShare = 0.5;
inline constexpr double kHiccupOfOthersShare = 0.25;

// A single pause gets a line if it is at least so many seconds, and so many mean iterations, long.
inline constexpr double kPauseSeconds = 1;
inline constexpr double kPauseIterations = 10;

// A repair that saves a smaller share of a step is not worth a word, and nobody is to blame for it.
inline constexpr double kMinSaved = 0.03;
// For ranks that do the same: a smaller difference, from iteration to iteration, is not worth a word either.
inline constexpr double kMinUneven = 0.1;
// The ranks to blame are the fewest, and at most kMaxBlamed, that save this share of what the worst half
// saves.
inline constexpr double kShareOfBest = 0.8;
inline constexpr size_t kMaxBlamed = 8;
// For a pipeline: this share of the ranks, or the last stage, is to blame if mending it brings
// kMinShareOfBlamed of what all repairs bring.
inline constexpr double kWorstRanks = 0.03;
inline constexpr double kMinShareOfBlamed = 0.5;
// A repair of all that a rank does, or of a stage, goes before a smaller one only if this share of what it
// saves is more.
inline constexpr double kWeightOfWhole = 0.8;
// A rank that takes longer than the others' median by this factor is no example for one that is mended.
inline constexpr double kHealthy = 1.25;
// A rank that leaves collectives late has a slow link under two conditions. Others had the ranks' CPUs for no
// more than this share of the work, and it takes twice as long as the others in this share of the batches.
inline constexpr double kMaxTakenOfLateLeaver = 0.01;
inline constexpr double kNearlyAlways = 0.9;

// A rank's CPU counts as taken if others had it for at least this share of the time of its own work.
inline constexpr double kTakenShare = 0.1;

// Good news: "nobody" is said only where it is known.

// An excess, of the others' median, that would have been found: that none was found is good news.
inline constexpr double kLargestMissed = 0.5;
// A share of a step that all would have waited for one rank, in traces, and that would have been found.
inline constexpr double kDetectableShare = 0.5;
// There is nothing to mend only if it is sure that mending no rank saves so much.
inline constexpr double kMaxNotExcluded = 0.05;
// Ranks that come to a collective by this factor more often than others do not always meet them: who waits
// for whom is then not known.
inline constexpr double kMostOfVisits = 1.5;
// A replay of what was measured may take more or less than was measured by this share; else it tells nothing.
inline constexpr double kMaxReplayError = 0.02;

// Who waits for whom, where nobody declared it.

// A rank waits for another one if it leaves before that one comes in no more than this share of the cases. It
// waits for one that does not wait for it only if it came first, and so could have left, in kMinCameFirst of
// them.
inline constexpr double kMaxLeftBefore = 0.01;
inline constexpr double kMinCameFirst = 0.1;

// An iteration is an outlier, for the pictures, if it is longer than this many medians, and than the median
// by so many of the distances that half of the iterations keep.
inline constexpr double kOutlierMedians = 1.5;
inline constexpr double kOutlierDistances = 8;

// Samples: how many a verdict needs.

// A disturbance of an iteration often disturbs the next as well: replays compare means of so many.
inline constexpr int64_t kIterationsPerBatch = 5;

// Hiccups are named if there are so many; and come at equal distances if there are so many distances, which
// differ by no more than this share.
inline constexpr int64_t kMinHiccups = 3;
inline constexpr size_t kMinDistances = 4;
inline constexpr double kAlikeDistances = 0.1;
// With fewer steps of a trace, work that differs from step to step (sequence lengths, say) looks like a slow
// rank. Of two ranks with two kinds of steps, one is the later one in all of 9 steps in 0.4 % of the runs.
inline constexpr int64_t kMinStepsOfHoldUp = 10;
// Traces without steps are cut into as many parts of the same number of collectives.
inline constexpr int64_t kPartsOfTrace = 16;
// A straggler is persistent once the same rank stood out in this many intervals in a row.
inline constexpr int64_t kPersistentIntervals = 3;

// Machines: by what processes of one program that do the same differ, as standard deviations.

// Processes differ for good: memory lies elsewhere, and caches and branches with it (Mytkowicz and others
// 2009; Kalibera and Jones 2013). This is what is expected before any process was seen: a share of the time
// on a CPU, and seconds. It counts as much as kSpreadDegreesOfFreedom processes that were seen; with more of
// them, what they show counts (Smyth 2004).
inline constexpr double kExpectedSpread = 0.02;
inline constexpr double kExpectedSpreadSeconds = 5e-6;  // cold caches
inline constexpr double kSpreadDegreesOfFreedom = 20;
// A machine disturbs one of its CPUs for a while (clock rates, other threads or machines on the same core):
// it lasts for some kDisturbanceSeconds, whatever an iteration takes, and only a longer time averages over
// it.
inline constexpr double kDisturbance = 0.05;
inline constexpr double kDisturbanceSeconds = 0.3;
// Added for each unit of the larger CpuShare::taken_share: a process that had the CPU leaves other data in
// its caches, until the scheduler puts the processes elsewhere.
inline constexpr double kDisturbanceOfTaken = 0.25;
// Now and then it has a CPU at half its speed, for as long: seldom, but more often than a verdict may be
// wrong.
inline constexpr double kSlowdown = 1;
// Others take a CPU from one process for longer than from the next, also in the mean of a long run: by this
// share of the time that is taken.
inline constexpr double kLatenessOfTaken = 0.25;
// Ranks leave a collective one after the other, always in the same order: what that is expected to do, in
// seconds.
inline constexpr double kExpectedLateness = 2e-6;
// Clocks agree if the ends of one collective are no further apart than this on the ranks of one machine.
inline constexpr int64_t kAgreeingNanoseconds = 20'000;

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_POLICY_H_
