// Describes what one worker of a pipeline does in one step, and what its operations wait for there.

#ifndef OTT_QUESTIONS_SAVED_WORKER_STEP_H_
#define OTT_QUESTIONS_SAVED_WORKER_STEP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ott/questions/saved/timeline.h"

namespace ott::saved {

// The size of a pipeline.
struct Pipeline {
  int num_stages = 1;
  // Chunks of the model that a stage holds.
  int num_chunks = 1;
  // Gradients are reduced while others are still computed.
  bool overlaps_gradients = false;
};

// Numbers are positions in the events.
struct WorkerStep {
  // First waits for second.
  std::vector<std::pair<int32_t, int32_t>> comes_after;
  // Sends and receives that have a partner, in order of their sequence, by type less kForwardSend.
  struct Message {
    int32_t event = 0;
    // The output that is sent or received: of which chunk of the whole model, and the how many-th of it.
    int32_t chunk = 0;
    int32_t ordinal = 0;
  };
  std::vector<Message> messages[4];
};

// events: of one worker in one step, in order of type and sequence.
WorkerStep FindDependencies(absl::Span<const Timeline::Event> events, int stage, const Pipeline& pipeline);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_WORKER_STEP_H_
