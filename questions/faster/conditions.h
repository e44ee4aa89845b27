// Finds what makes a comparison void, or weaker than it looks.

#ifndef OTT_QUESTIONS_FASTER_CONDITIONS_H_
#define OTT_QUESTIONS_FASTER_CONDITIONS_H_

#include <vector>

#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/samples.h"

namespace ott::faster {

// Adds to the comparison's voids and notes. logarithms: of the processes' locations in the measurement that
// is plotted.
void CheckConditions(const Samples& samples, const std::vector<double>& logarithms_a,
                     const std::vector<double>& logarithms_b, const FasterOptions& options,
                     Comparison* comparison);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_CONDITIONS_H_
