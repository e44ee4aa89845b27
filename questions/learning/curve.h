// The learning curves of a run, as they were read.

#ifndef OTT_QUESTIONS_LEARNING_CURVE_H_
#define OTT_QUESTIONS_LEARNING_CURVE_H_

#include <map>
#include <string>
#include <vector>

namespace ott::learning {

struct Point {
  double x = 0;  // a step, a number of samples, an epoch or a time
  double y = 0;  // may be NaN or infinite
};

// Ascending, one point at each x.
using Curve = std::vector<Point>;

struct RunCurves {
  std::string name;
  std::string directory;  // of a run directory; empty: it has none
  // By metric.
  std::map<std::string, Curve> curves;
};

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_CURVE_H_
