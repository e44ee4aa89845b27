#include "ott/dist/directory/run_directory.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

constexpr std::string_view kRankPrefix = "rank_";

// The numbers N of the folders `<prefix>N` in `dir`, ascending.
template <typename Number>
absl::StatusOr<std::vector<Number>> ListNumbered(const std::string& dir, std::string_view prefix) {
  std::vector<Number> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(dir, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    Number number;
    if (name.compare(0, prefix.size(), prefix) == 0 &&
        absl::SimpleAtoi(name.substr(prefix.size()), &number) && number >= 0 && entry->is_directory(error)) {
      numbers.push_back(number);
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat(dir, ": cannot be listed: ", error.message()));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string InfoPath(const std::string& run_dir) { return run_dir + "/run.json"; }

}  // namespace

std::string ClusterStatsPath(const std::string& run_dir) { return run_dir + "/cluster_stats.json"; }

std::string RankDirectory(const std::string& run_dir, int rank) {
  return absl::StrFormat("%s/%s%05d", run_dir, std::string(kRankPrefix), rank);
}

std::string DumpsDirectory(const std::string& run_dir, int rank) {
  return RankDirectory(run_dir, rank) + "/dumps";
}

absl::Status WriteRunInfo(const std::string& run_dir, const RunInfo& info) {
  return WriteFileAtomically(InfoPath(run_dir), ProtoToJson(info, JsonLayout::kIndented));
}

absl::StatusOr<RunInfo> ReadRunInfo(const std::string& run_dir) {
  OTT_ASSIGN_OR_RETURN(const std::string json, ReadFile(InfoPath(run_dir)));
  RunInfo info;
  const absl::Status status = JsonToProto(json, &info);
  if (!status.ok()) return absl::DataLossError(absl::StrCat(InfoPath(run_dir), ": ", status.message()));
  if (info.world_size() < 1 || info.world_size() > kMaxWorldSize) {
    return absl::DataLossError(absl::StrCat(InfoPath(run_dir), ": world_size is ", info.world_size(),
                                            ", which is no number of ranks"));
  }
  return info;
}

bool IsRunDirectory(const std::string& dir) {
  if (std::filesystem::exists(InfoPath(dir))) return true;
  const absl::StatusOr<std::vector<int>> ranks = ListRanks(dir);
  return ranks.ok() && !ranks->empty();
}

absl::StatusOr<std::vector<int>> ListRanks(const std::string& run_dir) {
  OTT_ASSIGN_OR_RETURN(std::vector<int> ranks, ListNumbered<int>(run_dir, kRankPrefix));
  ranks.erase(std::lower_bound(ranks.begin(), ranks.end(), kMaxWorldSize), ranks.end());
  return ranks;
}

absl::StatusOr<std::vector<int64_t>> ListDumps(const std::string& dumps_dir) {
  return ListNumbered<int64_t>(dumps_dir, "");
}

}  // namespace ott
