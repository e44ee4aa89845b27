// What the answers about a run say, and whether that is true.

#ifndef OTT_TESTS_SHAPES_TOLD_H_
#define OTT_TESTS_SHAPES_TOLD_H_

#include <string>
#include <vector>

#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/saved/replay_job.h"
#include "ott/questions/saved/what_if.pb.h"
#include "ott/tests/shapes/shape.h"

namespace ott::shapes {

// The seconds that what is planted takes of a mean iteration, on the job's own clock.
struct Loss {
  double of_run = 0;
  double of_last_quarter = 0;
};

// The answers about one run.
struct Told {
  ClusterStats stats;
  WhatIfAnswer what_if;
  // Whom any answer names, and whom the table does, ascending.
  std::vector<int> named;
  std::vector<int> named_by_table;
  // The ends of all iterations on the job's own clock, in seconds since its start.
  std::vector<double> ends;
  // The table's lines and the answer in words.
  std::string text;
};

// Returns the seconds of a mean iteration, of those from `first` to `last`.
double MeanIteration(const std::vector<double>& ends, size_t first, size_t last);

// job: null if there is none.
Told Ask(ClusterStats stats, const saved::ReplayJob* job, std::vector<double> ends);

// Counts answers that are not true.
struct Rates {
  int num_runs = 0;
  // Names an innocent, or says that all is good where nothing can be told.
  int num_false = 0;
  // Does not name what is planted.
  int num_missed = 0;
  // States a number that is more than a tenth off.
  int num_wrong = 0;
  // By the table, all wait longer for a rank than what if says that mending any rank saves at most.
  int num_contradicted = 0;
  // The text of the first run that is not true.
  std::string first;

  // name: of the run.
  void Add(const Shape& shape, int num_ranks, int planted, const Loss& loss, const Told& told,
           const std::string& name);
};

}  // namespace ott::shapes

#endif  // OTT_TESTS_SHAPES_TOLD_H_
