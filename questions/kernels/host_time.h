// Tells where the host's threads spend the time of their ranges, as a capture without kernels does.

#ifndef OTT_QUESTIONS_KERNELS_HOST_TIME_H_
#define OTT_QUESTIONS_KERNELS_HOST_TIME_H_

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "ott/core/kernel_profile/profile.h"
#include "ott/questions/kernels/table_writer.h"

namespace ott::kernels {

// One row for each op with its shapes, each layer and each range of the program's own, by its threads' time
// in it: kind, dir, name, count, total (ns), self (total without the ranges within), share (percent of all
// self time), mean, min, max; of ops their tensors' shapes, the FLOPs of all calls, and those a nanosecond of
// total, which is GFLOP/s. Ops within nodes of the backward pass are of the backward pass. What wraps around
// a description of the same op counts once. REQUIRES: profile has its ranges; JoinKernels has not been
// called. INVALID_ARGUMENT as CheckWidth().
absl::Status WriteHostTimes(const Profile& profile, const TableLayout& layout, int64_t limit,
                            const std::function<void(std::string_view)>& write);

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_HOST_TIME_H_
