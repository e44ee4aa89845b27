// summaries_cost RANKS [COLLECTIVES]: what the first process does with the summaries of so many ranks'
// traces, each with 200 collectives if not told, of which half are of all ranks and half of eight neighbours.
// Prints the ranks, seconds of CPU, megabytes of memory, and bytes of a summary.

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/dist/share/archive.h"
#include "ott/questions/waiting/trace_archive.h"
#include "ott/questions/waiting/traced_job.h"

namespace ott::waiting {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int kNeighbours = 8;

// Clocks are off by up to a second, and rank 5 comes 80 ms late.
std::string SummaryOf(int rank, int num_collectives) {
  const int64_t ahead = rank * 7919LL % 1000 * kMillisecond;
  TraceSummary summary;
  summary.rank = rank;
  summary.path = absl::StrCat("traces/rank", rank, ".json");
  summary.num_steps = num_collectives / 2;
  summary.first_time = ahead;
  summary.last_time = ahead + num_collectives * 100 * kMillisecond;
  summary.split.total = summary.last_time - summary.first_time;
  for (const int first : {0, rank / kNeighbours * kNeighbours}) {
    kernels::Profile::CollectiveKind kind;
    kind.name = "allreduce";
    kind.dtype = "float32";
    kind.group = absl::StrCat(summary.kinds.size(), ":", first);
    kind.group_description = summary.kinds.empty() ? "all" : "neighbours";
    kind.in_elements = kind.out_elements = 1'000'000;
    summary.kinds.push_back(kind);
  }
  for (int i = 0; i < num_collectives; ++i) {
    const int64_t meet = ahead + i * 100 * kMillisecond + 90 * kMillisecond;
    const int64_t start = meet - (rank == 5 ? 1 : 81) * kMillisecond - (rank * 31LL + i * 17LL) % 1000 * 1000;
    summary.collectives.push_back({static_cast<uint32_t>(i % 2), i / 2, i / 2, start, meet + kMillisecond});
  }
  return ToBytes(summary);
}

int Run(int num_ranks, int num_collectives) {
  std::vector<TraceSummary> summaries(num_ranks);
  double seconds = 0;
  int64_t bytes = 0;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::string arrived = SummaryOf(rank, num_collectives);
    bytes += static_cast<int64_t>(arrived.size());
    const std::clock_t begin = std::clock();
    OTT_CHECK(FromBytes(arrived, &summaries[rank]));
    seconds += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  const std::clock_t begin = std::clock();
  const TracedJob job = DescribeJob(summaries);
  seconds += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  OTT_CHECK(!job.hold_ups.found.empty());
  for (const auto& found : job.hold_ups.found) OTT_CHECK(found.rank == 5);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("%d %.3f %.1f %.0f\n", num_ranks, seconds, static_cast<double>(usage.ru_maxrss) / 1024,
              static_cast<double>(bytes) / num_ranks);
  return 0;
}

}  // namespace
}  // namespace ott::waiting

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  return ott::waiting::Run(std::atoi(argv[1]), argc > 2 ? std::atoi(argv[2]) : 200);
}
