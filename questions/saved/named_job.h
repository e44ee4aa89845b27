// A job with its replay, and what in it has a name.

#ifndef OTT_QUESTIONS_SAVED_NAMED_JOB_H_
#define OTT_QUESTIONS_SAVED_NAMED_JOB_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ott/questions/saved/replay_job.h"
#include "questions/saved/part_replayer.h"

namespace ott::saved {

// Immutable, so thread-safe. The job outlives it.
struct NamedJob {
  // REQUIRES: the job has operations.
  explicit NamedJob(const ReplayJob& job);

  const ReplayJob& job;
  const PartReplayer replay;
  std::set<int> stages;
  std::set<int> replicas;
  std::map<std::string, int> ranks_of_host;
  // In the order in which kinds have them; without those of which the job has none.
  std::vector<std::string> operations;
  int64_t num_iterations = 0;

  // Returns true if ranks do the same, and are compared with each other.
  bool compares_ranks() const { return replay.scenarios().compares_ranks(); }
  // "an iteration"
  std::string AStep() const;
  // "rank 3 (node1)"
  std::string NameOf(size_t rank) const;
  // "host node1" if these are all of a host, else "ranks 1, 3".
  std::string NameOf(const std::vector<size_t>& ranks) const;
};

// Returns 0 to size - 1.
std::vector<size_t> Indices(size_t size);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_NAMED_JOB_H_
