// bazel run //questions/origin:planted_bugs -- [N [FIRST_SEED [DTYPE]...]]: how often `ott origin` names the
// operation that has a fault, and how often one that has none, in simulated trainings (simulated_training.h)
// of 2 and 4 ranks.
//
// Every verdict rests on one reference run and one perturbed run. Clean: N (100) runs of each dtype whose
// sums are made in another order, and N / 5 with some operations not logged. Planted: each of 15
// faults in N / 10 runs of each dtype, with the reference's order and with another one. Ends with 1 where a
// clean run has a finding, or a fault is not found where it is in nine of ten runs of a column.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/tensor/dtype.h"
#include "ott/questions/origin/origin.h"
#include "ott/questions/origin/planted_case.h"
#include "ott/questions/origin/simulated_training.h"

namespace ott::origin {
namespace {

struct LogKind {
  std::string description;
  std::vector<std::string> not_logged;
};

// Whether nothing was found.
bool RunClean(const std::string& dir, const LogKind& log, int num_runs, uint64_t first_seed,
              const std::vector<DType>& dtypes) {
  bool holds = true;
  std::printf("%-48s %14s %14s  %s\n", ("clean: " + log.description).c_str(), "findings", "cannot tell",
              "not judged, of outputs");
  for (const DType dtype : dtypes) {
    int findings = 0;
    int untold = 0;
    int64_t not_judged = 0;
    int64_t compared = 0;
    for (int i = 0; i < num_runs; ++i) {
      const PlantedResult result = RunPlanted(dir, {dtype, Fault::kNone, first_seed + i, /*other_order=*/true,
                                                    /*perturbed=*/true, log.not_logged});
      OTT_CHECK(result.verdict.ok()) << result.verdict.status();
      std::filesystem::remove_all(dir);
      not_judged += result.verdict->num_not_judged();
      compared += result.verdict->num_compared();
      untold += result.verdict->kind() == OriginVerdict::UNKNOWN ? 1 : 0;
      if (result.verdict->kind() == OriginVerdict::NONE || result.verdict->kind() == OriginVerdict::UNKNOWN)
        continue;
      ++findings;
      std::printf("  %s\n", result.verdict->verdict().c_str());
    }
    holds = holds && findings == 0;
    std::printf("%-48s %7d of %3d %7d of %3d  %lld of %lld\n", std::string(Name(dtype)).c_str(), findings,
                num_runs, untold, num_runs, static_cast<long long>(not_judged),
                static_cast<long long>(compared));
    std::fflush(stdout);
  }
  return holds;
}

int Run(int num_runs, uint64_t first_seed, const std::vector<DType>& dtypes) {
  const std::string dir =
      std::filesystem::temp_directory_path() / ("ott_planted_bugs." + std::to_string(getpid()));
  bool holds = true;
  for (const LogKind& log :
       {LogKind{"sums in another order", {}}, LogKind{"updates are not logged", {"adam"}},
        LogKind{"only products and updates are logged",
                {"data", "padding_mask", "random_state", "dropout_mask", "layernorm", "gelu", "dropout",
                 "add", "cross_entropy", "CrossEntropyBackward", "GeluDropoutBackward", "LayerNormBackward",
                 "accumulate", "allreduce", "average"}}}) {
    const int num_of_kind = log.not_logged.empty() ? num_runs : std::max(num_runs / 5, 1);
    holds = RunClean(dir, log, num_of_kind, first_seed, dtypes) && holds;
  }
  const int num_planted = std::max(num_runs / 10, 1);
  std::printf("\nplanted: found where it is, of %d runs\n%-48s", num_planted, "");
  for (const DType dtype : dtypes) std::printf(" %22s", std::string(Name(dtype)).c_str());
  std::printf("\n%-48s", "order of sums");
  for (size_t i = 0; i < dtypes.size(); ++i) std::printf(" %10s %11s", "same", "another");
  std::printf("\n");
  int num_missed = 0;
  for (int f = 1; f <= kNumFaults; ++f) {
    const auto fault = static_cast<Fault>(f);
    std::printf("%-48s", TruthOf(fault).description.c_str());
    std::string misses;
    for (const DType dtype : dtypes) {
      for (const bool other_order : {false, true}) {
        int found = 0;
        for (int i = 0; i < num_planted; ++i) {
          const PlantedResult result =
              RunPlanted(dir, {dtype, fault, first_seed + 1000 + i, other_order, /*perturbed=*/true, {}});
          OTT_CHECK(result.verdict.ok()) << result.verdict.status();
          found += result.found ? 1 : 0;
          if (!result.found && misses.size() < 1000) {
            misses += "  " + std::string(Name(dtype)) + (other_order ? ", another order: " : ": ") +
                      result.verdict->verdict() + "\n";
          }
        }
        std::printf(" %10d", found);
        if (other_order) std::printf(" ");
        num_missed += 10 * found < 9 * num_planted ? 1 : 0;
      }
    }
    std::printf("\n%s", misses.c_str());
    std::fflush(stdout);
  }
  const auto first_sized = static_cast<Fault>(kNumFaults + 1);
  std::printf(
      "\nplanted, of a size, sums in another order: found where it is / cannot tell, of %d runs\n%-48s",
      num_planted, "times too large");
  const double sizes[] = {1.02, 1.05, 1.15, 1.5, 2};
  for (const double size : sizes) std::printf(" %8.4g", size);
  std::printf("\n");
  for (const DType dtype : dtypes) {
    for (int f = 0; f < kNumSizedFaults; ++f) {
      const auto fault = static_cast<Fault>(static_cast<int>(first_sized) + f);
      std::printf("%-48s", absl::StrCat(std::string(Name(dtype)), ": ", TruthOf(fault).description).c_str());
      std::string misses;
      for (const double size : sizes) {
        int found = 0;
        int untold = 0;
        for (int i = 0; i < num_planted; ++i) {
          const PlantedResult result =
              RunPlanted(dir, {dtype, fault, first_seed + 1000 + i, /*other_order=*/true, true, {}, size});
          OTT_CHECK(result.verdict.ok()) << result.verdict.status();
          found += result.found ? 1 : 0;
          // Another one that is named is worse than none.
          untold += result.verdict->kind() == OriginVerdict::UNKNOWN ? 1 : 0;
          const bool is_wrong = !result.found && result.verdict->kind() != OriginVerdict::NONE &&
                                result.verdict->kind() != OriginVerdict::UNKNOWN;
          if (is_wrong && misses.size() < 1000) misses += "  " + result.verdict->verdict() + "\n";
        }
        std::printf(" %5d/%2d", found, untold);
        num_missed += dtype == DType::kFloat32 && 10 * found < 9 * num_planted ? 1 : 0;
      }
      std::printf("\n%s", misses.c_str());
      std::fflush(stdout);
    }
  }
  holds = holds && num_missed == 0;
  std::printf("%s\n", holds ? "holds" : "MISSED");
  std::filesystem::remove_all(dir);
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace ott::origin

int main(int argc, char** argv) {
  const int num_runs = argc > 1 ? std::atoi(argv[1]) : 100;
  const uint64_t first_seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  OTT_CHECK(num_runs > 0) << "usage: planted_bugs [N [FIRST_SEED [DTYPE]...]]";
  std::vector<ott::DType> dtypes;
  for (int i = 3; i < argc; ++i) {
    const absl::StatusOr<ott::DType> dtype = ott::ParseDType(argv[i]);
    OTT_CHECK(dtype.ok()) << dtype.status();
    dtypes.push_back(*dtype);
  }
  if (dtypes.empty()) dtypes = {ott::DType::kFloat32, ott::DType::kBFloat16, ott::DType::kFloat8E4M3};
  return ott::origin::Run(num_runs, first_seed, dtypes);
}
