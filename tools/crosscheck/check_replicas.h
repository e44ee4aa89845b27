// The check of replicas after the fact, from the dumps that a run left.

#ifndef OTT_TOOLS_CROSSCHECK_CHECK_REPLICAS_H_
#define OTT_TOOLS_CROSSCHECK_CHECK_REPLICAS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/cross_check.pb.h"

namespace ott {

// A verdict for each iteration that any rank dumped, ascending, as CrossCheck::CheckReplicas gives it in a
// run. globs: over paths, gradients being below "grads."; none: all tensors. A rank without a readable dump
// is named as missing. NOT_FOUND if run_dir holds no dumps.
absl::StatusOr<std::vector<CrossCheckVerdict>> CheckReplicasOfRun(const std::string& run_dir,
                                                                  const std::vector<std::string>& globs);

}  // namespace ott

#endif  // OTT_TOOLS_CROSSCHECK_CHECK_REPLICAS_H_
