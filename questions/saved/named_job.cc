#include "questions/saved/named_job.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/check.h"

namespace ott::saved {

std::vector<size_t> Indices(size_t size) {
  std::vector<size_t> indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

NamedJob::NamedJob(const ReplayJob& job) : job(job), replay(job) {
  OTT_CHECK(!job.operations.empty()) << "a job without operations";
  for (const ReplayJob::Rank& rank : job.ranks) {
    if (rank.stage >= 0) stages.insert(rank.stage);
    if (rank.replica >= 0) replicas.insert(rank.replica);
    if (!rank.host.empty()) ++ranks_of_host[rank.host];
  }
  for (const ReplayJob::Step& step : job.steps) num_iterations += step.num_iterations;
  std::vector<bool> is_used(job.kinds.size());
  for (const ReplayJob::Operation& operation : job.operations) is_used[operation.kind] = true;
  for (size_t i = 0; i < job.kinds.size(); ++i) {
    const ReplayJob::Kind& kind = job.kinds[i];
    if (is_used[i] && std::find(operations.begin(), operations.end(), kind.operation) == operations.end()) {
      operations.push_back(kind.operation);
    }
  }
}

std::string NamedJob::AStep() const {
  return absl::StrCat(job.step_word == "iteration" ? "an " : "a ", job.step_word);
}

std::string NamedJob::NameOf(size_t rank) const {
  const ReplayJob::Rank& of = job.ranks[rank];
  return of.host.empty() ? absl::StrCat("rank ", of.rank)
                         : absl::StrCat("rank ", of.rank, " (", of.host, ")");
}

std::string NamedJob::NameOf(const std::vector<size_t>& ranks) const {
  if (ranks.size() == 1) return NameOf(ranks[0]);
  const auto of_host = ranks_of_host.find(job.ranks[ranks[0]].host);
  const bool is_host =
      ranks_of_host.size() > 1 && of_host != ranks_of_host.end() &&
      of_host->second == static_cast<int>(ranks.size()) &&
      std::all_of(ranks.begin(), ranks.end(), [&](size_t i) { return job.ranks[i].host == of_host->first; });
  if (is_host) return absl::StrCat("host ", of_host->first);
  std::vector<int> numbers;
  for (const size_t rank : ranks) numbers.push_back(job.ranks[rank].rank);
  std::sort(numbers.begin(), numbers.end());
  return absl::StrCat("ranks ", absl::StrJoin(numbers, ", "));
}

}  // namespace ott::saved
