#include "ott/questions/right/crosscheck/check_reference.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/reference_check.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/share/archive.h"
#include "ott/questions/right/crosscheck/error_trend.h"

namespace ott::crosscheck {
namespace {

// One rank's dump of one iteration. The runs' hosts are left out.
struct ReferencePiece {
  CrossCheckConfig config;
  RunInfo info;
  RunInfo reference;
  int64_t iteration = 0;
  int rank = 0;
  std::string dump;
};

template <typename Archive>
void Fields(Archive& archive, ReferencePiece& piece) {
  archive(piece.config, piece.info, piece.reference, piece.iteration, piece.rank, piece.dump);
}

absl::StatusOr<std::string> CheckPiece(const std::string& argument, int /*num_threads*/) {
  ReferencePiece piece;
  if (!FromBytes(argument, &piece)) return absl::InternalError("no ReferencePiece");
  OTT_ASSIGN_OR_RETURN(const RankMeshes meshes,
                       RankMeshes::Create(piece.info.config().mesh(), piece.info.world_size()));
  OTT_ASSIGN_OR_RETURN(const ReferenceCheck check,
                       ReferenceCheck::Create(piece.config, meshes, piece.reference));
  return check.CheckDump(piece.iteration, piece.rank, piece.dump).SerializeAsString();
}

CrossCheckVerdict NotCompared(const ReferencePiece& piece, const absl::Status& why) {
  CrossCheckVerdict verdict;
  verdict.set_mode(REFERENCE);
  verdict.set_iteration(piece.iteration);
  verdict.set_rank(piece.rank);
  verdict.set_outcome(NOT_COMPARED);
  verdict.set_reason(std::string(why.message()));
  return verdict;
}

}  // namespace

bool DumpsNothing(const std::string& run_dir, const RunInfo& info, int rank) {
  const auto& dumping = info.config().dump().ranks();
  return !dumping.empty() && std::find(dumping.begin(), dumping.end(), rank) == dumping.end() &&
         !PathExists(DumpsDirectory(run_dir, rank));
}

const ShareTask kCheckAgainstReference = {"check_against_reference", &CheckPiece};

absl::StatusOr<std::vector<CrossCheckVerdict>> CheckRunAgainstReference(const std::string& run,
                                                                        const CrossCheckConfig& given) {
  const std::string run_dir = LatestAttempt(run);
  CrossCheckConfig config = given;
  config.set_reference_run(LatestAttempt(given.reference_run()));
  OTT_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(run_dir));
  OTT_ASSIGN_OR_RETURN(const RunInfo reference, ReadRunInfo(config.reference_run()));
  OTT_ASSIGN_OR_RETURN(const RankMeshes meshes, RankMeshes::Create(info.config().mesh(), info.world_size()));
  OTT_ASSIGN_OR_RETURN(const ReferenceCheck check, ReferenceCheck::Create(config, meshes));
  if (config.reference_ranks().empty() && IsSameRun(run_dir, config.reference_run())) {
    return absl::InvalidArgumentError(
        absl::StrCat(run_dir, ": would be compared with itself, which always agrees"));
  }
  std::set<int64_t> iterations;
  for (int rank = 0; rank < info.world_size(); ++rank) AddDumpedIterations(run_dir, rank, &iterations);
  for (int rank = 0; rank < reference.world_size(); ++rank) {
    AddDumpedIterations(config.reference_run(), rank, &iterations);
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < info.world_size(); ++rank) {
    if (!DumpsNothing(run_dir, info, rank) ||
        !DumpsNothing(config.reference_run(), reference, check.ReferenceRank(rank))) {
      ranks.push_back(rank);
    }
  }
  if (iterations.empty() || ranks.empty()) {
    return absl::NotFoundError(absl::StrCat(run_dir, ", ", config.reference_run(), ": no rank has dumps"));
  }
  ReferencePiece piece = {config, info, reference, 0, 0, ""};
  piece.info.clear_hosts();
  piece.reference.clear_hosts();
  std::vector<ReferencePiece> pieces;
  std::vector<SharePiece> work;
  for (const int64_t iteration : iterations) {
    for (const int rank : ranks) {
      piece.iteration = iteration;
      piece.rank = rank;
      piece.dump = DumpPath(run_dir, rank, iteration);
      SharePiece& shared = work.emplace_back();
      shared.argument = ToBytes(piece);
      for (const std::string& path : {piece.dump, check.ReferenceDump(iteration, rank)}) {
        if (PathExists(path)) shared.paths.push_back(path);
      }
      pieces.push_back(piece);
    }
  }
  const std::vector<absl::StatusOr<std::string>> results = RunShared(kCheckAgainstReference, work);
  std::vector<CrossCheckVerdict> verdicts;
  for (size_t begin = 0; begin < pieces.size(); begin += ranks.size()) {
    std::vector<CrossCheckVerdict> of_iteration;
    for (size_t i = begin; i < begin + ranks.size(); ++i) {
      const absl::StatusOr<std::string>& result = results[i];
      CrossCheckVerdict& verdict = of_iteration.emplace_back();
      if (!result.ok() || !verdict.ParseFromString(*result))
        verdict = NotCompared(pieces[i], result.status());
      const int rank = pieces[i].rank;
      verdict.set_host(rank < info.hosts_size() ? info.hosts(rank) : "host unknown");
      for (FirstDifference& difference : *verdict.mutable_differences()) {
        difference.set_hosts(0, verdict.host());
      }
    }
    FindFirst(of_iteration);
    for (CrossCheckVerdict& verdict : of_iteration) {
      // Each rank's verdict counts for itself.
      verdict.clear_worst_outcome();
      verdicts.push_back(std::move(verdict));
    }
  }
  return verdicts;
}

std::string FormatErrorTrend(const std::vector<CrossCheckVerdict>& verdicts) {
  std::string text;
  const auto first = std::find_if(verdicts.begin(), verdicts.end(), [](const CrossCheckVerdict& verdict) {
    return verdict.outcome() == DIFFERENT && verdict.rank() == verdict.worst_rank();
  });
  if (first != verdicts.end()) text = absl::StrCat("first divergence: ", FormatVerdict(*first));
  ErrorTrend trend;
  for (const CrossCheckVerdict& verdict : verdicts) trend.Add(verdict);
  return text + trend.ToString();
}

}  // namespace ott::crosscheck
