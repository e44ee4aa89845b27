// Compares a rank's tensors with those that a reference run dumped.

#ifndef OTT_DIST_CHECK_REFERENCE_CHECK_H_
#define OTT_DIST_CHECK_REFERENCE_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/compare/compare.h"
#include "ott/core/dump/selection.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {

// One run against config.reference_run, while it trains or afterwards.
//
// Thread-safe.
class ReferenceCheck {
 public:
  // Returns INVALID_ARGUMENT for tolerances, ranks or shards that make no sense; the error of a file of
  // tolerances. What cannot be compared with is a verdict of Check(). Of a reference that was started several
  // times, the latest start counts. reference: its run.json, where that is on another host; nullopt: it is
  // read.
  static absl::StatusOr<ReferenceCheck> Create(const CrossCheckConfig& config, const RankMeshes& meshes,
                                               std::optional<RunInfo> reference = std::nullopt);

  // Returns true if there is a reference.
  bool enabled() const { return !config().reference_run().empty(); }

  // Compares with REFERENCE/rank_<rank>/dumps/<iteration>, rank being this one or what config.reference_ranks
  // says. grads: null if there are none. Tensors that the reference's configuration selects for no dump are
  // left out. The verdict has TensorName()s of core/dump/dump_files.h. problem: why there are no tensors,
  // which is then the verdict's reason.
  CrossCheckVerdict Check(int64_t iteration, int rank, const Value& tensors, const Value* grads,
                          const absl::Status& problem = absl::OkStatus()) const;
  // Return the rank, and the dump, of the reference that a rank's is compared with.
  int ReferenceRank(int rank) const;
  std::string ReferenceDump(int64_t iteration, int rank) const;
  // Does the same for a dump on disk instead of tensors in memory.
  CrossCheckVerdict CheckDump(int64_t iteration, int rank, const std::string& dump_dir) const;

  const CrossCheckConfig& config() const { return selection_.config(); }
  const TensorSelection& selection() const { return selection_; }

 private:
  ReferenceCheck(TensorSelection selection, int world_size, CompareOptions options,
                 std::optional<ToleranceFile> tolerances);

  // Why `rank` cannot be compared with the reference run; empty if it can.
  std::string FindProblem(int rank) const;
  // Says what the reference has instead of a dump.
  std::string DescribeMissing(int of_reference, int64_t iteration) const;
  CrossCheckVerdict Start(int64_t iteration, int rank) const;
  void Compare(int rank, const Value& tensors, const Value* grads, CrossCheckVerdict& verdict) const;

  TensorSelection selection_;
  int world_size_;
  CompareOptions options_;
  std::optional<ToleranceFile> tolerances_;
  absl::StatusOr<RunInfo> reference_;
  // The paths that the reference dumps; nullopt: all.
  std::optional<Selection> dumped_;
};

}  // namespace ott

#endif  // OTT_DIST_CHECK_REFERENCE_CHECK_H_
