#include "questions/saved/full_replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace ott::saved {

double ReplayError(const ReplayJob& job) {
  std::vector<double> own;
  std::vector<double> delays;
  for (const ReplayJob::Operation& operation : job.operations) {
    own.push_back(operation.own);
    delays.push_back(operation.delay);
  }
  const DependencyGraph::Times times = job.graph.ReplayInFull(own, delays);
  double difference = 0;
  double total = 0;
  for (size_t step = 0; step < job.steps.size(); ++step) {
    difference += std::abs(times.seconds[job.longest_part][step] - job.steps[step].measured_seconds);
    total += job.steps[step].measured_seconds;
  }
  return total > 0 ? difference / total : 1;
}

std::vector<PathPart> FindCriticalPath(const ReplayJob& job) {
  std::vector<double> own;
  for (const ReplayJob::Operation& operation : job.operations) own.push_back(operation.own);
  const DependencyGraph::Times times = job.graph.ReplayInFull(own, {});
  std::map<std::pair<int32_t, int32_t>, double> seconds;
  for (int step = 0; step < job.graph.num_steps(); ++step) {
    double end = -1;
    for (const int32_t operation : job.graph.CriticalPath(step, times)) {
      const ReplayJob::Operation& what = job.operations[operation];
      // From where it may have been waited for, to where the next one on the path took over.
      if (end < 0) end = times.end[operation];
      const double begin =
          std::max(times.start[operation], times.end[operation] - std::max(own[operation], 0.0));
      seconds[{what.rank, what.kind}] += std::max(std::min(end, times.end[operation]) - begin, 0.0);
      end = std::min(end, begin);
    }
  }
  std::vector<PathPart> parts;
  for (const auto& [rank_and_kind, time] : seconds) {
    if (time > 0) parts.push_back({rank_and_kind.first, rank_and_kind.second, time});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const PathPart& a, const PathPart& b) { return a.seconds > b.seconds; });
  return parts;
}

}  // namespace ott::saved
