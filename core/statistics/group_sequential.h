// Looking at data several times while they come in, without being wrong more often for it.

#ifndef OTT_CORE_STATISTICS_GROUP_SEQUENTIAL_H_
#define OTT_CORE_STATISTICS_GROUP_SEQUENTIAL_H_

#include <vector>

namespace ott {

// The share of the error rate that is spent when this share of all samples is there: its square (Kim and
// DeMets 1987 with rho = 2). So early looks stop for what is plain, and the last keeps most of the rate.
// REQUIRES: 0 <= information <= 1.
double SpentError(double information);

// The error at which the interval of each look is to be made, so that all the intervals together miss the
// truth, in any of them, with probability `error` at most. Who stops at a look for whatever reason may then
// report its interval (repeated confidence intervals, Jennison and Turnbull 1989). Each level is two-sided.
//
// The levels are those of normal sums, by the recursion of Armitage, McPherson and Rowe (1969). As levels of
// exact tests and of t they keep the error closely (Jennison and Turnbull 2000, section 3.8), which
// statistics_test.cc simulates.
//
// information: samples at each look, as a share of the most there can be.
// REQUIRES: 0 < error < 1; information is ascending and in (0, 1].
std::vector<double> GroupSequentialLevels(const std::vector<double>& information, double error);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_GROUP_SEQUENTIAL_H_
