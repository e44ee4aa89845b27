// Ranks as people read them.

#ifndef OTT_DIST_COMM_RANK_LIST_H_
#define OTT_DIST_COMM_RANK_LIST_H_

#include <string>
#include <string_view>
#include <vector>

namespace ott {

// Returns "rank 3 (node1)", the host's control characters escaped.
std::string FormatRank(int rank, std::string_view host);

// Returns "rank 3", "ranks 0-2, 5". Sorts, and names each rank once. "no rank" for none. A list that nobody
// would read is cut: "ranks 1, 3, 5, ... (4000 in all)".
std::string FormatRanks(std::vector<int> ranks);

// Returns "on rank 2 alone", "on all 4 ranks", "on ranks 0, 2 of 4". num_ranks is how many `ranks` there are,
// which may be the first ones only. REQUIRES: ranks is not empty
std::string FormatRanksAmong(const std::vector<int>& ranks, int num_ranks, int world_size);

}  // namespace ott

#endif  // OTT_DIST_COMM_RANK_LIST_H_
