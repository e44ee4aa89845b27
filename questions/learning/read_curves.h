// Reads what trainings leave of their metrics.

#ifndef OTT_QUESTIONS_LEARNING_READ_CURVES_H_
#define OTT_QUESTIONS_LEARNING_READ_CURVES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/learning/curve.h"

namespace ott::learning {

struct ReadOptions {
  // The column or key of the files over which the metrics are drawn; empty: the first of kXNames that a file
  // has.
  std::string x;
};

struct ReadRuns {
  std::vector<RunCurves> runs;
  // The name of x; empty if files disagree.
  std::string x_name;
  // The files that they are of, without links in their paths.
  std::set<std::string> files;
};

// Paths are files, folders of them, or globs. What a file is, its content says; it may be compressed by gzip.
//
//   run directory              its rank_NNNNN/metrics.jsonl, of the first rank that has one; of the latest
//   start CSV                        a column for x, one for each metric, and perhaps `run`, of several runs;
//                              or as Weights & Biases exports: a column "RUN - METRIC" for each run
//   JSON lines                 objects with the same names
//   trainer_state.json         of Hugging Face, or of a folder that has one, or of its last checkpoint-N
//   MLPerf's logs              lines with :::MLLOG: eval_accuracy and tracked_stats
//   TensorBoard's event files  a folder of them is one run
//
// Errors name the file, the line, and what is wrong. A file that is on a side twice is one.
absl::StatusOr<ReadRuns> ReadSide(const std::vector<std::string>& paths, const ReadOptions& options);

// Both sides. INVALID_ARGUMENT if they have a file in common, or other kinds of x.
struct SidesRead {
  std::vector<RunCurves> a;
  std::vector<RunCurves> b;
  std::string x_name;
};
absl::StatusOr<SidesRead> ReadSides(const std::vector<std::string>& a, const std::vector<std::string>& b,
                                    const ReadOptions& options);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_READ_CURVES_H_
