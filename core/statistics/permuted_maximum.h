// Tests whether two groups of runs differ in any of several numbers that each run has: exact, whatever these
// look like and however they depend on each other.
//
//   const PermutedMaximum found = PermuteMaximum(scores, num_runs, num_a, critical_ts, 0.01);
//   if (found.p_value <= 0.01) printf("score %zu differs", found.largest);

#ifndef OTT_CORE_STATISTICS_PERMUTED_MAXIMUM_H_
#define OTT_CORE_STATISTICS_PERMUTED_MAXIMUM_H_

#include <cstddef>
#include <vector>

namespace ott {

struct PermutedMaximum {
  // Welch's t of B against A, by score; where a group has one run, by the spread of the other group alone. 0
  // where no run differs from any other.
  std::vector<double> t;
  // The score whose |t| is the largest in units of its scale, and that |t|.
  size_t largest = 0;
  double value = 0;
  // The probability of so large a value of any score if each choice of B's runs is as probable as any other.
  double p_value = 1;
  // The value exceeds this with probability `error` at most; infinite if so few runs have no such value.
  double critical = 0;
};

// Compares the groups with all ways to choose them (Westfall and Young 1993, section 2.6), or where there are
// more than some thousand, with as many random ones of a fixed seed, themselves included.
//
// scores: row-major [runs, scores], the runs of A first. scales: one of each score, above 0.
// REQUIRES: 0 < num_a < num_runs, num_runs >= 3, 0 < error < 1.
PermutedMaximum PermuteMaximum(const std::vector<double>& scores, size_t num_runs, size_t num_a,
                               const std::vector<double>& scales, double error);

// Returns the smallest p-value that groups of these sizes can have. REQUIRES: both above 0.
double SmallestPermutedPValue(size_t num_a, size_t num_b);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_PERMUTED_MAXIMUM_H_
