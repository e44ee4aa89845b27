// Holds what all parts of a TrainingRun share.

#ifndef OTT_RUN_TRAINING_RUN_FRAME_H_
#define OTT_RUN_TRAINING_RUN_FRAME_H_

#include <algorithm>
#include <chrono>

#include "ott/core/base/config.pb.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/deadline.h"
#include "ott/dist/mesh/rank_mesh.h"
#include "ott/dist/stats/rank_groups.h"
#include "ott/run/training/unwritten_files.h"

namespace ott {

// Measures the time that is spent in a TrainingRun.
inline constexpr char kObserverMeasurement[] = "ott";

// Outlives the parts that get it.
struct RunFrame {
  Communicator& ranks;
  // Its run_dir is the one that this run got.
  Config config;
  std::chrono::nanoseconds timeout;
  // The parallelism that the configuration declares, and who does like work and waits together by it.
  RankMeshes meshes;
  RankGroups groups;
  mutable UnwrittenFiles unwritten = {};

  void NoteUnwritten(const absl::Status& written) const { unwritten.Note(ranks.rank(), written); }
  void NoteLost(const absl::Status& written) const { unwritten.NoteLost(ranks.rank(), written); }

  Deadline NextDeadline() const { return Deadline::After(timeout); }
  // For what the ranks have to do by themselves, on disks and in memory, where some may take longer than
  // others.
  Deadline PreparationDeadline() const {
    return Deadline::After(std::max<std::chrono::nanoseconds>(timeout, std::chrono::seconds(30)));
  }
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_RUN_FRAME_H_
