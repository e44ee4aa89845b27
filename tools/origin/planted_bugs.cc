// bazel run //tools/origin:planted_bugs -- [N]: how often `ott origin` names the operation that has a fault,
// and how often one that has none, in simulated trainings (simulated_training.h) of 2 and 4 ranks.
//
// Every verdict rests on one reference run and one perturbed run. Clean: N (100) runs of each dtype whose
// sums are made in another order. Planted: each of 14 faults in N / 10 runs of each dtype, with the
// reference's order and with another one. Ends with 1 where a clean run has a finding, or a fault of float32
// is not found where it is in nine of ten runs.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/check.h"
#include "ott/core/tensor/dtype.h"
#include "ott/dist/origin/origin.h"
#include "tools/origin/planted_case.h"
#include "tools/origin/simulated_training.h"

namespace ott::origin {
namespace {

constexpr DType kDTypesOfRuns[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat8E4M3};

int Run(int num_runs) {
  const std::string dir = std::filesystem::temp_directory_path() / "ott_planted_bugs";
  std::filesystem::remove_all(dir);
  bool holds = true;
  std::printf("%-48s %14s  %s\n", "clean: sums in another order", "findings", "not judged, of outputs");
  for (const DType dtype : kDTypesOfRuns) {
    int findings = 0;
    int64_t not_judged = 0;
    int64_t compared = 0;
    for (int i = 0; i < num_runs; ++i) {
      const PlantedResult result = RunPlanted(dir, dtype, Fault::kNone, 1 + i, /*other_order=*/true);
      OTT_CHECK(result.verdict.ok()) << result.verdict.status();
      std::filesystem::remove_all(dir);
      not_judged += result.verdict->num_not_judged();
      compared += result.verdict->num_compared();
      if (result.verdict->kind() == "none") continue;
      ++findings;
      std::printf("  %s\n", result.verdict->verdict().c_str());
    }
    holds = holds && findings == 0;
    std::printf("%-48s %7d of %3d  %lld of %lld\n", std::string(Name(dtype)).c_str(), findings, num_runs,
                static_cast<long long>(not_judged), static_cast<long long>(compared));
    std::fflush(stdout);
  }
  const int num_planted = std::max(num_runs / 10, 1);
  std::printf("\nplanted: found where it is, of %d runs\n%-48s", num_planted, "");
  for (const DType dtype : kDTypesOfRuns) std::printf(" %22s", std::string(Name(dtype)).c_str());
  std::printf("\n%-48s", "order of sums");
  for (size_t i = 0; i < std::size(kDTypesOfRuns); ++i) std::printf(" %10s %11s", "same", "another");
  std::printf("\n");
  int found_in_float32 = 0;
  for (int f = 1; f <= kNumFaults; ++f) {
    const auto fault = static_cast<Fault>(f);
    std::printf("%-48s", TruthOf(fault).description.c_str());
    std::string misses;
    for (const DType dtype : kDTypesOfRuns) {
      for (const bool other_order : {false, true}) {
        int found = 0;
        for (int i = 0; i < num_planted; ++i) {
          const PlantedResult result = RunPlanted(dir, dtype, fault, 1001 + i, other_order);
          OTT_CHECK(result.verdict.ok()) << result.verdict.status();
          found += result.found ? 1 : 0;
          if (!result.found && misses.size() < 1000) {
            misses += "  " + std::string(Name(dtype)) + (other_order ? ", another order: " : ": ") +
                      result.verdict->verdict() + "\n";
          }
        }
        std::printf(" %10d", found);
        if (other_order) std::printf(" ");
        if (dtype == DType::kFloat32 && other_order && 10 * found >= 9 * num_planted) ++found_in_float32;
      }
    }
    std::printf("\n%s", misses.c_str());
    std::fflush(stdout);
  }
  holds = holds && found_in_float32 == kNumFaults;
  std::printf("%d of %d faults are found in float32 with sums in another order; %s\n", found_in_float32,
              kNumFaults, holds ? "holds" : "MISSED");
  std::filesystem::remove_all(dir);
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace ott::origin

int main(int argc, char** argv) {
  const int num_runs = argc > 1 ? std::atoi(argv[1]) : 100;
  OTT_CHECK(num_runs > 0) << "usage: planted_bugs [N]";
  return ott::origin::Run(num_runs);
}
