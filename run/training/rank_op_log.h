// A rank's log of operations in a run: which iterations, and where it lies.

#ifndef OTT_RUN_TRAINING_RANK_OP_LOG_H_
#define OTT_RUN_TRAINING_RANK_OP_LOG_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/iteration_selection.h"
#include "ott/core/op_log/op_log.h"
#include "ott/run/training/run_frame.h"

namespace ott {

// Not thread-safe.
class RankOpLog {
 public:
  static absl::StatusOr<std::unique_ptr<RankOpLog>> Start(const RunFrame& frame);
  RankOpLog(const RankOpLog&) = delete;
  RankOpLog& operator=(const RankOpLog&) = delete;
  ~RankOpLog();

  // Has the operations of this iteration logged if it is selected.
  absl::Status BeginIteration(int64_t iteration);
  absl::Status Finish();

 private:
  RankOpLog(std::unique_ptr<OpLog> log, IterationSelector iterations)
      : log_(std::move(log)), iterations_(std::move(iterations)) {}

  std::unique_ptr<OpLog> log_;
  IterationSelector iterations_;
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_RANK_OP_LOG_H_
