// Reads from its name whether a metric is a loss, a learning rate, or of learning at all.

#ifndef OTT_QUESTIONS_LEARNING_METRIC_NAMES_H_
#define OTT_QUESTIONS_LEARNING_METRIC_NAMES_H_

#include <string>
#include <vector>

#include "ott/questions/learning/curve.h"

namespace ott::learning {

// Returns true for losses, errors and perplexities, which are better where they are lower.
bool IsLoss(const std::string& name);

bool IsLearningRate(const std::string& name);

// Returns false for speeds, times, counters and what a program is told.
bool IsOfLearning(const std::string& name);

// Returns the names of the metrics that all runs have, in order.
std::vector<std::string> MetricsOfAll(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b);

// Returns the metric that all runs have and that says most about learning: an evaluation's before a
// training's. Empty if there is none that all runs have.
std::string DefaultMetric(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_METRIC_NAMES_H_
