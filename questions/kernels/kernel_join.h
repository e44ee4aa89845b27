// Finds the op, layer and line of the program that each kernel comes from.

#ifndef OTT_QUESTIONS_KERNELS_KERNEL_JOIN_H_
#define OTT_QUESTIONS_KERNELS_KERNEL_JOIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "ott/core/kernel_profile/profile.h"

namespace ott::kernels {

// Holds what the ranges around a launch say, shared by all launches that have the same. Labels are indices of
// Profile::labels, texts of KernelJoin::texts; kNone if there is none.
struct LaunchContext {
  uint32_t marker = kNone;    // the innermost op with its arguments: ours, or PyProf's
  uint32_t op = kNone;        // the innermost op by PyTorch's label, within the marker if there is one
  uint32_t backward = kNone;  // the innermost backward node; marker and op are within it
  // In backward: the forward op of the same sequence number.
  uint32_t forward_marker = kNone;
  uint32_t forward_op = kNone;
  uint32_t layer = kNone;   // layers from the outside in, joined by ':'
  uint32_t source = kNone;  // innermost line
  uint32_t module = kNone;  // innermost PyProf module
  uint32_t phase = kNone;   // innermost range that is nothing of the above
  uint32_t outer = kNone;   // the context of the op that called op; kNone: nobody's
  OpDirection direction = OpDirection::kUnknown;
};

struct KernelJoin {
  // Says where a kernel's launch was found; every kernel is in one of these states.
  enum class State : uint8_t { kOp, kNoOp, kNoRange, kNoLaunch };

  struct Launch {
    uint32_t context = kNone;  // of contexts; kNone: outside of any range
    // Pairs forward and backward: of the innermost backward node, else of the innermost range that has one.
    uint32_t sequence_number = kNone;
    uint32_t other_sequence_number = kNone;  // of the next enclosing range that has another
    uint32_t op_instance = kNone;            // launches of one call of an op share it
  };

  State StateOf(const Profile& profile, uint32_t launch) const;

  std::vector<LaunchContext> contexts;
  std::vector<std::string> texts;
  std::vector<Launch> launches;  // parallel to Profile::launches
  uint32_t num_op_instances = 0;
  std::vector<std::string> notes;
};

// A launch belongs to the range that the capture tells, else to the ranges of its own thread that contain its
// start, ends included. One sweep a thread, so any depth of nesting costs the same. Backward launches take
// op, layer and line of the forward range with their sequence number: of the same process, of a thread that
// launches on the same device where several threads count alike, the latest before the backward node. Frees
// profile's ranges.
KernelJoin JoinKernels(Profile* profile);

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_KERNEL_JOIN_H_
