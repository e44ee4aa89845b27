// Lists of ranks as people read them.

#ifndef OTT_DIST_RANK_LIST_H_
#define OTT_DIST_RANK_LIST_H_

#include <string>
#include <vector>

namespace ott {

// "rank 3", "ranks 0-2, 5". Sorts, and names each rank once. "no rank" for none.
std::string FormatRanks(std::vector<int> ranks);

}  // namespace ott

#endif  // OTT_DIST_RANK_LIST_H_
