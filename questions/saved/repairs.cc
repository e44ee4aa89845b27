#include "questions/saved/repairs.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/statistics/policy.h"

namespace ott::saved {
namespace {

// Repairs that are worth more words than their sum, and ranks whose operations are looked at one by one.
constexpr size_t kMaxRepairs = 8;
constexpr size_t kMaxRanksInDetail = 8;
constexpr size_t kMaxTogether = 3;

// Adds the excess of these ranks in each operation in which they have any.
void AppendRepairsOf(const NamedJob& named, const std::vector<size_t>& ranks, std::vector<JobPart>& repairs) {
  const ReplayJob& job = named.job;
  const std::set<size_t> members(ranks.begin(), ranks.end());
  const size_t num_before = repairs.size();
  const double least =
      kMinSaved / 2 * Sum(named.replay.measured()) / static_cast<double>(named.num_iterations);
  for (const std::string& operation : named.operations) {
    double excess = 0;
    for (size_t kind = 0; kind < job.kinds.size(); ++kind) {
      if (job.kinds[kind].operation != operation) continue;
      for (const size_t rank : ranks) excess += named.replay.scenarios().MeanExcess(rank, kind);
    }
    if (excess < least) continue;
    repairs.push_back({absl::StrCat(named.NameOf(ranks), "'s excess in \"", operation, "\""),
                       Select(job, [&](int rank, int kind) {
                         return members.count(static_cast<size_t>(rank)) > 0 &&
                                job.kinds[kind].operation == operation;
                       })});
  }
  if (!named.compares_ranks() || repairs.size() < num_before + 2) return;
  repairs.push_back(
      {absl::StrCat(named.NameOf(ranks), "'s excess in everything"),
       Select(job, [&](int rank, int) { return members.count(static_cast<size_t>(rank)) > 0; })});
  repairs.back().weight = kWeightOfWhole;
}

// Returns what could be mended, small things too.
std::vector<JobPart> ListRepairs(const NamedJob& named, const std::vector<JobPart>& ranks,
                                 const std::vector<size_t>& blamed) {
  const ReplayJob& job = named.job;
  std::vector<JobPart> repairs;
  if (named.compares_ranks()) {
    if (blamed.size() > 1) AppendRepairsOf(named, blamed, repairs);
    for (const size_t rank : blamed) AppendRepairsOf(named, {rank}, repairs);
  } else {
    std::vector<size_t> order = Indices(ranks.size());
    std::stable_sort(order.begin(), order.end(),
                     [&ranks](size_t a, size_t b) { return ranks[a].saving.share > ranks[b].saving.share; });
    order.resize(std::min(order.size(), kMaxRanksInDetail));
    for (const size_t rank : order) AppendRepairsOf(named, {rank}, repairs);
  }
  for (const int stage : named.stages) {
    if (named.stages.size() < 2) break;
    repairs.push_back({absl::StrCat("stage ", stage, "'s excess"),
                       Select(job, [&](int rank, int) { return job.ranks[rank].stage == stage; })});
    repairs.back().weight = kWeightOfWhole;
  }
  named.replay.FindSavings(repairs);
  return repairs;
}

}  // namespace

std::vector<JobPart> FindRepairs(const NamedJob& job, const std::vector<JobPart>& ranks,
                                 const std::vector<size_t>& blamed) {
  std::vector<JobPart> repairs = ListRepairs(job, ranks, blamed);
  const auto is_small = [](const JobPart& part) {
    return part.saving.share < kMinSaved || part.saving.low <= 0;
  };
  repairs.erase(std::remove_if(repairs.begin(), repairs.end(), is_small), repairs.end());
  std::stable_sort(repairs.begin(), repairs.end(), [](const JobPart& a, const JobPart& b) {
    return a.weight * a.saving.share > b.weight * b.saving.share;
  });
  if (repairs.size() > kMaxRepairs) repairs.erase(repairs.begin() + kMaxRepairs, repairs.end());
  return repairs;
}

std::optional<JobPart> FindRepairsTogether(const NamedJob& job, const std::vector<JobPart>& repairs) {
  std::optional<JobPart> found;
  if (repairs.size() < 2) return found;
  JobPart best = repairs[0];
  for (size_t count = 1; count < kMaxTogether; ++count) {
    std::vector<JobPart> unions;
    for (const JobPart& repair : repairs) {
      unions.push_back({absl::StrCat(best.name, ", ", repair.name), best.selection});
      for (size_t i = 0; i < repair.selection.size(); ++i) unions.back().selection[i] |= repair.selection[i];
    }
    job.replay.FindSavings(unions);
    const auto most = std::max_element(unions.begin(), unions.end(), [](const JobPart& a, const JobPart& b) {
      return a.saving.share < b.saving.share;
    });
    if (most->saving.share < best.saving.share + kMinSaved) break;
    best = *most;
    found = best;
  }
  return found;
}

}  // namespace ott::saved
