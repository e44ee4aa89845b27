// The check of replicas and shards after the fact, from the dumps that a run left.

#ifndef OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_REPLICAS_H_
#define OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_REPLICAS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/dist/check/cross_check.pb.h"

namespace ott::crosscheck {

// Verdicts as CrossCheck::CheckReplicas and CheckShards give them in a run, for each iteration that any rank
// dumped, ascending. config: what of it concerns replicas and shards. A rank without a readable dump is named
// as missing. NOT_FOUND if run_dir holds no dumps.
absl::StatusOr<std::vector<CrossCheckVerdict>> CheckReplicasOfRun(const std::string& run_dir,
                                                                  const CrossCheckConfig& config);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_CROSSCHECK_CHECK_REPLICAS_H_
