#include "ott/questions/waiting/gathered_stats.h"

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {

absl::StatusOr<ClusterStats> ReadGatheredStats(const std::string& run_dir,
                                               std::vector<std::string>* problems) {
  const std::string path = ClusterStatsPath(run_dir);
  OTT_ASSIGN_OR_RETURN(const std::string json, ReadFile(path));
  ClusterStats stats;
  std::string unknown;
  const absl::Status status = JsonToProto(json, &stats, &unknown);
  if (!status.ok()) return absl::DataLossError(absl::StrCat(path, ": ", status.message()));
  if (!unknown.empty()) problems->push_back(absl::StrCat("of another version: ", path, ": ", unknown));
  return stats;
}

}  // namespace ott
