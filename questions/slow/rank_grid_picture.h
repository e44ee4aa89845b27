// The pictures "heat_map", "iterations" and "time_tree".

#ifndef OTT_QUESTIONS_SLOW_RANK_GRID_PICTURE_H_
#define OTT_QUESTIONS_SLOW_RANK_GRID_PICTURE_H_

#include <vector>

#include "ott/questions/answer/document.h"
#include "ott/questions/slow/rank_grid.h"

namespace ott::slow {

// named: ranks that answers name.
void AddRankGrid(const RankGrid& grid, const std::vector<int>& named, Document* document);

}  // namespace ott::slow

#endif  // OTT_QUESTIONS_SLOW_RANK_GRID_PICTURE_H_
