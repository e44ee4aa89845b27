// Reads the timelines that StragglerAnalysis publishes: operations of a training job in Chrome's trace
// format.

#ifndef OTT_QUESTIONS_SAVED_TIMELINE_H_
#define OTT_QUESTIONS_SAVED_TIMELINE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ott::saved {

// The kinds of operation of a timeline.
enum class OperationType : int8_t {
  kForwardCompute,
  kBackwardCompute,
  kForwardSend,
  kForwardReceive,
  kBackwardSend,
  kBackwardReceive,
  kParamsAllGather,
  kGradsReduceScatter,
  kSeparateGradsAllReduce,
  kLayernormGradsAllReduce,
  kEmbeddingGradsAllReduce,
  kClipMainGrad,
  kOptimizer,
  kGc,
};
inline constexpr int kNumOperationTypes = 14;

// Returns the name that timelines give it.
std::string_view OperationTypeName(OperationType type);

struct Timeline {
  struct Worker {
    int rank = 0;
    // Data-parallel, pipeline and tensor-parallel rank.
    int replica = 0;
    int stage = 0;
    int tensor = 0;
  };
  struct Event {
    int32_t worker = 0;  // index into `workers`
    OperationType type = OperationType::kGc;
    // Its number among the operations of its type in a step on a worker, counted from 0.
    int32_t sequence = 0;
    // The chunk of the model, on the worker; -1: of none.
    int32_t chunk = -1;
    int64_t step = 0;
    // Seconds.
    double start = 0;
    double duration = 0;
  };

  // In order of rank.
  std::vector<Worker> workers;
  // In the order of the file.
  std::vector<Event> events;
  // Says what could not be used, and why.
  std::vector<std::string> notes;
  // Workers or operations that the job has are not there.
  bool incomplete = false;
};

// path: JSON, also compressed by gzip; read in one pass, in memory for its events alone. sizes: a file with
// lines such as `pp_size: 4`, or empty: meta-NAME.yaml beside a timeline-NAME.json.gz, if there is one.
// Errors of the file; DATA_LOSS for what is no JSON or is cut; INVALID_ARGUMENT for a trace
// without operations of workers.
absl::StatusOr<Timeline> ReadTimeline(const std::string& path, const std::string& sizes = "");

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_TIMELINE_H_
