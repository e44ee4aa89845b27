// The comparison of two dumps, as a piece of work for whichever process has both.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_DUMP_PIECE_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_DUMP_PIECE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/compare/compare.h"
#include "ott/dist/share/processes.h"
#include "ott/questions/right/compare/compare_runs.h"

namespace ott::compare {

struct DumpPiece {
  std::string reference;
  std::string current;
  // As of DumpSummary.
  std::optional<int> rank;
  std::optional<int64_t> iteration;
  CompareOptions options;
};

// Sums up the comparison of two dumps or checkpoints.
DumpSummary Summarize(TreeComparison comparison, std::optional<int> rank, std::optional<int64_t> iteration,
                      const CompareRunsOptions& options);

// Returns the summaries, in the order of the pieces. Errors: UNAVAILABLE if a process was lost that alone has
// the dumps. options: those that are the same for all; of what DumpPiece has, nothing is read.
std::vector<absl::StatusOr<DumpSummary>> CompareDumpPieces(const std::vector<DumpPiece>& pieces,
                                                           const CompareRunsOptions& options);

// The task of the others.
extern const ShareTask kCompareDumps;

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_DUMP_PIECE_H_
