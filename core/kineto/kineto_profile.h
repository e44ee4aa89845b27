// A trace of torch.profiler as a profile: what `ott prof` and `ott trace` show of any capture.

#ifndef OTT_CORE_KINETO_KINETO_PROFILE_H_
#define OTT_CORE_KINETO_KINETO_PROFILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "ott/core/kernel_profile/profile.h"

namespace ott::kineto {

// Kernels, copies and memsets with the call that launched each (by correlation) and the op that did (by
// External id, else by time); ops with shapes, types, strides and concrete inputs; annotations; of Python's
// stack the modules as layers, and the frames that are not PyTorch's own as source lines; forward and
// backward by Sequence number, or by the arrows of traces without. Memory: some 0.1 bytes for each byte of
// JSON.
//
// The rank is the header's, else that in the file's name ("rank3", "rank_00003", SGLang's "-TP-3").
//
// Errors of ReadTrace(). What was left out or repaired is in the profile's notes.
absl::StatusOr<kernels::Profile> ReadKinetoProfile(const std::string& path);

}  // namespace ott::kineto

#endif  // OTT_CORE_KINETO_KINETO_PROFILE_H_
