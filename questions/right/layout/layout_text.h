// Words what a comparison of layouts found, for people.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_LAYOUT_TEXT_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_LAYOUT_TEXT_H_

#include <string>
#include <vector>

#include "ott/questions/right/layout/layout.pb.h"

namespace ott::crosscheck {

// Returns the layout as understood, what differs and what was not compared in each iteration, the counts, and
// the first divergence: which iteration, tensor, ranks and element, in the coordinates of both runs.
std::string LayoutVerdictsToText(const std::vector<LayoutVerdict>& verdicts);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_LAYOUT_TEXT_H_
