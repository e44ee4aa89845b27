#include "ott/run/training/rank_op_log.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "ott/core/base/status_macros.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {

absl::StatusOr<std::unique_ptr<RankOpLog>> RankOpLog::Start(const RunFrame& frame) {
  const OpLogConfig& config = frame.config.op_log();
  OTT_ASSIGN_OR_RETURN(IterationSelector iterations, IterationSelector::Create(config.iterations()));
  OpLog::Options options;
  options.rank = frame.ranks.rank();
  options.world_size = frame.ranks.size();
  // A run that goes on in its directory keeps what was logged before.
  const std::string path = OpLogPath(frame.config.run_dir(), options.rank);
  std::error_code error;
  int part = 1;
  while (std::filesystem::exists(OpLogPart(path, part), error)) ++part;
  options.path = OpLogPart(path, part);
  options.keep.assign(config.keep().begin(), config.keep().end());
  options.kept_dir = OpTensorsDirectory(frame.config.run_dir(), options.rank);
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<OpLog> log, OpLog::Create(options));
  return std::unique_ptr<RankOpLog>(new RankOpLog(std::move(log), std::move(iterations)));
}

RankOpLog::~RankOpLog() { OpRanges::Get().TellObserver(nullptr); }

absl::Status RankOpLog::BeginIteration(int64_t iteration) {
  if (!iterations_.Contains(iteration)) {
    OpRanges::Get().TellObserver(nullptr);
    return absl::OkStatus();
  }
  const absl::Status status = log_->BeginIteration(iteration);
  OpRanges::Get().TellObserver(log_.get());
  return status;
}

absl::Status RankOpLog::Finish() {
  OpRanges::Get().TellObserver(nullptr);
  return log_->Finish();
}

}  // namespace ott
