// Many tests at once, of which none shall be wrong by chance.

#ifndef OTT_CORE_STATISTICS_FAMILY_H_
#define OTT_CORE_STATISTICS_FAMILY_H_

#include <vector>

namespace ott {

// Holm's adjusted p-values (Holm 1979): who rejects each hypothesis whose adjusted p-value is at most `level`
// rejects a true one of the whole family with at most that probability, however the tests depend on each
// other. In the order of p_values, each at least as large as its own. REQUIRES: 0 <= p <= 1 for each.
std::vector<double> HolmAdjusted(const std::vector<double>& p_values);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_FAMILY_H_
