// Samples that are of two kinds.

#ifndef OTT_CORE_STATISTICS_MODES_H_
#define OTT_CORE_STATISTICS_MODES_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace ott {

struct TwoModes {
  double low = 0;   // mean of the lower group
  double high = 0;  // of the upper
  size_t num_low = 0;
  size_t num_high = 0;
};

// Returns the split into two groups, of two samples and a fifth of all at least, that leaves the least
// variance inside of them; nullopt unless it leaves less than 999 of 1000 sets of as many normal samples do.
// Needs six samples, and looks at no more than 1000.
std::optional<TwoModes> FindTwoModes(std::vector<double> samples);

// Returns the probability that two groups of so many samples each, of the same kind, are told apart for no
// reason but that this kind has two modes: all of one group in one mode, and all of the other in the other.
// At most, which is where both modes are equally probable. No test of so few samples can be wrong less often
// and ever say that the groups differ. REQUIRES: size > 0.
double SeparationProbability(size_t size);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_MODES_H_
