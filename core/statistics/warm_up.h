// Finds where a process has settled.

#ifndef OTT_CORE_STATISTICS_WARM_UP_H_
#define OTT_CORE_STATISTICS_WARM_UP_H_

#include <cstddef>
#include <vector>

namespace ott {

// Returns how many of the first iterations are left out so that the mean of the logarithms of the rest is
// known best: MSER (White 1997), from 20 iterations on over means of five (MSER-5; White, Cobb and Spratt
// 2000). Half of them at most, and then the process may not have settled. 0 for fewer than four. Knows
// nothing but this one process. REQUIRES: seconds > 0.
size_t WarmUpLength(const std::vector<double>& seconds);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_WARM_UP_H_
