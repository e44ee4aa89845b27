#include "ott/dist/directory/run_directory.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/core/dump/dump_files.h"

namespace ott {
namespace {

constexpr std::string_view kRankPrefix = "rank_";
constexpr std::string_view kAttemptPrefix = "attempt_";
constexpr std::string_view kTorchTrace = "torch";
// A million hosts.
constexpr int64_t kMaxInfoBytes = 256 << 20;
constexpr int kMaxAttempts = 100000;

// The numbers N of the folders `<prefix>N` in `dir`, ascending.
template <typename Number>
absl::StatusOr<std::vector<Number>> ListNumbered(const std::string& dir, std::string_view prefix) {
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir));
  std::vector<Number> numbers;
  for (const std::string& name : names) {
    Number number;
    if (name.compare(0, prefix.size(), prefix) == 0 &&
        absl::SimpleAtoi(name.substr(prefix.size()), &number) && number >= 0 &&
        IsDirectory(absl::StrCat(dir, "/", name))) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  // "3" and "00003".
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::string AttemptDirectory(const std::string& run_dir, int attempt) {
  return attempt == 1 ? run_dir : absl::StrCat(run_dir, "/", std::string(kAttemptPrefix), attempt);
}

// Returns true if one of them goes on where the other was.
bool AreOfOneJob(RunInfo a, RunInfo b) {
  for (RunInfo* const info : {&a, &b}) {
    info->mutable_config()->clear_run_dir();
    info->mutable_config()->clear_start_iteration();
  }
  return a.world_size() == b.world_size() && a.config().SerializeAsString() == b.config().SerializeAsString();
}

// Returns where the run is to go on; empty if nowhere.
absl::StatusOr<std::string> FindRunToContinue(const std::string& run_dir, const RunInfo& info) {
  std::vector<int> attempts = ListAttempts(run_dir);
  attempts.insert(attempts.begin(), 1);
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    const std::string dir = AttemptDirectory(run_dir, *attempt);
    absl::StatusOr<RunInfo> there = ReadRunInfo(dir);
    if (!there.ok() || !AreOfOneJob(*there, info)) continue;
    *there->mutable_hosts() = info.hosts();
    Resumption& resumption = *there->add_resumptions();
    resumption.set_started(info.started());
    resumption.set_start_iteration(info.config().start_iteration());
    OTT_RETURN_IF_ERROR(WriteRunInfo(dir, *there));
    return dir;
  }
  return std::string();
}

bool IsOneFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

// By the number of the window.
std::map<int, std::string> TorchTracesByWindow(const std::string& run_dir, int rank) {
  const std::string dir = RankDirectory(run_dir, rank);
  std::map<int, std::string> traces;
  for (const std::string& name : ListDirectory(dir).value_or(std::vector<std::string>())) {
    const size_t dot = name.find(".rank_");
    if (dot == std::string::npos || name.compare(0, kTorchTrace.size(), kTorchTrace) != 0) continue;
    std::string number = name.substr(kTorchTrace.size(), dot - kTorchTrace.size());
    int window = 1;
    if (!number.empty() && (number[0] != '_' || !absl::SimpleAtoi(number.substr(1), &window))) continue;
    traces[window] = absl::StrCat(dir, "/", name);
  }
  return traces;
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

std::string DumpPath(const std::string& run_dir, int rank, int64_t iteration) {
  return absl::StrCat(DumpsDirectory(run_dir, rank), "/", iteration);
}

std::string IterationsPath(const std::string& run_dir, int rank) {
  return RankDirectory(run_dir, rank) + "/iterations.pb";
}

std::string MetricsPath(const std::string& run_dir, int rank) {
  return RankDirectory(run_dir, rank) + "/metrics.jsonl";
}

std::string SoundPath(const std::string& run_dir, int rank) {
  return RankDirectory(run_dir, rank) + "/sound.json";
}

std::string OpLogPath(const std::string& run_dir, int rank) {
  return RankDirectory(run_dir, rank) + "/op_log.bin";
}

std::string OpTensorsDirectory(const std::string& run_dir, int rank) {
  return RankDirectory(run_dir, rank) + "/op_tensors";
}

absl::Status WriteRunInfo(const std::string& run_dir, const RunInfo& info) {
  return WriteFileAtomically(InfoPath(run_dir), ProtoToJson(info, JsonLayout::kIndented));
}

absl::StatusOr<RunInfo> ReadRunInfo(const std::string& run_dir, std::string* unknown) {
  OTT_ASSIGN_OR_RETURN(const std::string json, ReadFile(InfoPath(run_dir), kMaxInfoBytes));
  RunInfo info;
  const absl::Status status = JsonToProto(json, &info, unknown);
  if (unknown != nullptr && !unknown->empty()) *unknown = absl::StrCat(InfoPath(run_dir), ": ", *unknown);
  if (!status.ok()) return absl::DataLossError(absl::StrCat(InfoPath(run_dir), ": ", status.message()));
  if (info.world_size() < 1 || info.world_size() > kMaxWorldSize) {
    return absl::DataLossError(absl::StrCat(InfoPath(run_dir), ": world_size is ", info.world_size(),
                                            ", which is no number of ranks"));
  }
  return info;
}

absl::StatusOr<std::string> ClaimRunDirectory(const std::string& run_dir, const RunInfo& info) {
  if (info.config().start_iteration() > 0) {
    OTT_ASSIGN_OR_RETURN(const std::string dir, FindRunToContinue(run_dir, info));
    if (!dir.empty()) return dir;
  }
  for (int attempt = 1; attempt <= kMaxAttempts; ++attempt) {
    const std::string dir = AttemptDirectory(run_dir, attempt);
    OTT_RETURN_IF_ERROR(MakeDirectories(dir));
    if (IsRunDirectory(dir)) continue;
    // Only one of several jobs that begin at once makes this.
    std::error_code error;
    const bool is_mine = std::filesystem::create_directory(RankDirectory(dir, 0), error);
    if (error) return absl::UnavailableError(absl::StrCat(RankDirectory(dir, 0), ": ", error.message()));
    if (!is_mine) continue;
    OTT_RETURN_IF_ERROR(WriteRunInfo(dir, info));
    return dir;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(run_dir, ": holds ", kMaxAttempts, " runs already; set another run_dir"));
}

std::vector<int> ListAttempts(const std::string& run_dir) {
  return ListNumbered<int>(run_dir, kAttemptPrefix).value_or(std::vector<int>());
}

std::string LatestAttempt(const std::string& run_dir) {
  constexpr absl::string_view kFirst = "/attempt_1";
  if (absl::EndsWith(run_dir, kFirst) && !PathExists(run_dir)) {
    return run_dir.substr(0, run_dir.size() - kFirst.size());
  }
  const std::vector<int> attempts = ListAttempts(run_dir);
  return AttemptDirectory(run_dir, attempts.empty() ? 1 : attempts.back());
}

std::string DescribeStarts(const std::string& run_dir) {
  const std::string latest = LatestAttempt(run_dir);
  if (latest.size() <= run_dir.size()) return "";
  const std::string run = EscapeControlCharacters(run_dir);
  return absl::StrCat(run, " was started ", ListAttempts(run_dir).size() + 1,
                      " times: this is of the latest, ", EscapeControlCharacters(latest), "; ", run,
                      "/attempt_1 is the first");
}

void SayLatestAttempt(const char* command, const std::string& run_dir) {
  const std::string starts = DescribeStarts(run_dir);
  if (!starts.empty()) std::fprintf(stderr, "ott %s: %s\n", command, starts.c_str());
}

bool IsSameDump(const std::string& a, const std::string& b) {
  const std::string tree = absl::StrCat("/", std::string(kTensorsFile));
  return IsOneFile(a, b) || IsOneFile(a + tree, b + tree);
}

bool IsSameRun(const std::string& a, const std::string& b) {
  const auto share_a_dump = [](const std::string& x, const std::string& y) {
    const std::vector<int64_t> dumps = ListDumps(x).value_or(std::vector<int64_t>());
    return IsSameDump(x, y) || std::any_of(dumps.begin(), dumps.end(), [&](int64_t count) {
             return IsSameDump(absl::StrCat(x, "/", count), absl::StrCat(y, "/", count));
           });
  };
  if (share_a_dump(a, b)) return true;
  const std::vector<int> ranks = ListRanks(a).value_or(std::vector<int>());
  return std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    return IsOneFile(RankDirectory(a, rank), RankDirectory(b, rank)) ||
           share_a_dump(DumpsDirectory(a, rank), DumpsDirectory(b, rank)) ||
           IsOneFile(OpLogPath(a, rank), OpLogPath(b, rank));
  });
}

bool IsRunDirectory(const std::string& dir) {
  if (PathExists(InfoPath(dir))) return true;
  const absl::StatusOr<std::vector<int>> ranks = ListRanks(dir);
  return ranks.ok() && !ranks->empty();
}

absl::Status CheckRunDirectory(const std::string& dir) {
  if (IsRunDirectory(dir)) return absl::OkStatus();
  OTT_RETURN_IF_ERROR(ListRanks(dir).status());
  return absl::NotFoundError(
      absl::StrCat(dir, ": no run directory: it has neither run.json nor rank_* folders"));
}

absl::StatusOr<std::vector<int>> ListRanks(const std::string& run_dir) {
  OTT_ASSIGN_OR_RETURN(std::vector<int> ranks, ListNumbered<int>(run_dir, kRankPrefix));
  ranks.erase(std::lower_bound(ranks.begin(), ranks.end(), kMaxWorldSize), ranks.end());
  return ranks;
}

absl::StatusOr<std::vector<int64_t>> ListDumps(const std::string& dumps_dir) {
  return ListNumbered<int64_t>(dumps_dir, "");
}

std::vector<std::string> ListTorchTraces(const std::string& run_dir, int rank) {
  std::vector<std::string> paths;
  for (const auto& [window, path] : TorchTracesByWindow(run_dir, rank)) paths.push_back(path);
  return paths;
}

std::map<int, std::string> LatestTorchTraces(const std::string& run_dir) {
  std::map<int, std::string> latest;
  const std::string attempt = LatestAttempt(run_dir);
  for (const int rank : ListRanks(attempt).value_or(std::vector<int>())) {
    const std::vector<std::string> traces = ListTorchTraces(attempt, rank);
    if (!traces.empty()) latest[rank] = traces.back();
  }
  return latest;
}

std::map<int, std::string> TorchTracesOfOneWindow(const std::string& run_dir) {
  std::map<int, std::string> latest = LatestTorchTraces(run_dir);
  const std::string attempt = LatestAttempt(run_dir);
  std::map<int, std::map<int, std::string>> by_window;
  for (const auto& [rank, unused_path] : latest) {
    for (const auto& [window, path] : TorchTracesByWindow(attempt, rank)) by_window[window][rank] = path;
  }
  for (auto window = by_window.rbegin(); window != by_window.rend(); ++window) {
    if (window->second.size() == latest.size()) return window->second;
  }
  return latest;
}

bool HasDumps(const std::string& run_dir) {
  const std::string attempt = LatestAttempt(run_dir);
  const std::vector<int> ranks = ListRanks(attempt).value_or(std::vector<int>());
  return std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
    const absl::StatusOr<std::vector<int64_t>> dumps = ListDumps(DumpsDirectory(attempt, rank));
    return dumps.ok() && !dumps->empty();
  });
}

bool HasOpLogs(const std::string& run_dir) {
  const std::string attempt = LatestAttempt(run_dir);
  const std::vector<int> ranks = ListRanks(attempt).value_or(std::vector<int>());
  return std::any_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return PathExists(OpLogPath(attempt, rank)); });
}

void AddDumpedIterations(const std::string& run_dir, int rank, std::set<int64_t>* iterations) {
  const absl::StatusOr<std::vector<int64_t>> dumps = ListDumps(DumpsDirectory(run_dir, rank));
  if (dumps.ok()) iterations->insert(dumps->begin(), dumps->end());
}

}  // namespace ott
