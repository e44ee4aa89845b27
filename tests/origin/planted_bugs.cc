// bazel run //tests/origin:planted_bugs -- [N [FIRST_SEED [DTYPE]...]]: how often `ott origin` names the
// operation that has a fault, and how often one that has none, in simulated trainings (simulated_training.h)
// of 2 and 4 ranks.
//
// Every verdict rests on one reference run and one perturbed run. Clean: N (100) runs of each dtype whose
// sums are made in another order, of layers of three sizes, and N / 5 with some operations not logged.
// Planted: each of 15 faults in N / 10 runs of each dtype, with the reference's order and with another one,
// and faults of five sizes with another order. Ends with 1 where a clean run has a finding, or a fault is not
// found where it is in nine of ten runs of a column.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/tensor/dtype.h"
#include "ott/questions/origin/origin.h"
#include "ott/tests/origin/planted_case.h"
#include "ott/tests/origin/simulated_training.h"

namespace ott::origin {
namespace {

struct CleanKind {
  std::string description;
  std::vector<std::string> not_logged = {};
  int num_hidden = 64;
};

// Returns true if nothing was found.
bool RunClean(const std::string& dir, const CleanKind& kind, int num_runs, uint64_t first_seed,
              const std::vector<DType>& dtypes) {
  bool holds = true;
  std::printf("%-48s %14s %14s  %s\n", ("clean: " + kind.description).c_str(), "findings", "cannot tell",
              "not judged, of outputs");
  for (const DType dtype : dtypes) {
    int findings = 0;
    int untold = 0;
    int64_t not_judged = 0;
    int64_t compared = 0;
    for (int i = 0; i < num_runs; ++i) {
      const PlantedResult result =
          RunPlanted(dir, {dtype, Fault::kNone, first_seed + i, /*other_order=*/true,
                           /*perturbed=*/true, kind.not_logged, /*size=*/1, kind.num_hidden});
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

struct SizedFault {
  Fault fault;
  // The tensor, for faults of one tensor.
  std::string tensor = {};
  int num_elements = 0;
  int num_hidden = 64;
};

// Prints, for docs/origin.md, what was said of faults of a size where sums are in another order. Returns the
// number of cells of which fewer than nine of ten faults were found or called doubtful.
int PrintSizedFaults(const std::string& dir, int num_runs, uint64_t first_seed,
                     const std::vector<DType>& dtypes) {
  std::vector<SizedFault> rows = {{Fault::kLearningRate}};
  for (const Fault fault : {Fault::kLearningRateOfOneTensor, Fault::kMomentumOfOneTensor}) {
    for (const auto& [tensor, hidden, elements] :
         {std::tuple("fc1.bias", 64, 64), {"fc1.bias", 128, 128}, {"fc1.weight", 32, 1024}}) {
      rows.push_back({fault, tensor, elements, hidden});
    }
  }
  for (const Fault fault : {Fault::kMomentum, Fault::kGradientScale, Fault::kLossScale})
    rows.push_back({fault});
  std::printf("\nof %zu runs, %d of each dtype: found where it is, cannot tell, none, another one named\n\n",
              num_runs * dtypes.size(), num_runs);
  const double sizes[] = {1.02, 1.05, 1.15, 1.5, 2};
  std::printf("| times too large |");
  for (const double size : sizes) std::printf(" %g |", size);
  std::printf("\n| --- | --- | --- | --- | --- | --- |\n");
  int num_missed = 0;
  std::string others;
  for (const SizedFault& row : rows) {
    std::printf("| %s%s |", TruthOf(row.fault).description.c_str(),
                row.num_elements > 0 ? absl::StrCat(", of ", row.num_elements, " elements").c_str() : "");
    for (const double size : sizes) {
      int found = 0;
      int untold = 0;
      int none = 0;
      for (const DType dtype : dtypes) {
        for (int i = 0; i < num_runs; ++i) {
          const PlantedResult result = RunPlanted(dir, {dtype,
                                                        row.fault,
                                                        first_seed + i,
                                                        /*other_order=*/true,
                                                        /*perturbed=*/true,
                                                        {},
                                                        size,
                                                        row.num_hidden,
                                                        row.tensor});
          OTT_CHECK(result.verdict.ok()) << result.verdict.status();
          found += result.found ? 1 : 0;
          untold += result.verdict->kind() == OriginVerdict::UNKNOWN ? 1 : 0;
          none += result.verdict->kind() == OriginVerdict::NONE ? 1 : 0;
          if (result.found) continue;
          absl::StrAppend(&others, TruthOf(row.fault).description, " (", row.tensor, "), ", size, " times, ",
                          std::string(Name(dtype)), ", seed ", first_seed + i, ": ",
                          result.verdict->verdict(), "\n");
        }
      }
      const int runs = num_runs * static_cast<int>(dtypes.size());
      std::printf(" %d, %d, %d, %d |", found, untold, none, runs - found - untold - none);
      num_missed += 10 * (found + untold) < 9 * runs ? 1 : 0;
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf("\n%s", others.c_str());
  return num_missed;
}

int Run(int num_runs, uint64_t first_seed, const std::vector<DType>& dtypes) {
  const std::string dir =
      std::filesystem::temp_directory_path() / ("ott_planted_bugs." + std::to_string(getpid()));
  bool holds = true;
  for (const CleanKind& kind :
       {CleanKind{"sums in another order"}, CleanKind{"layers of 32", {}, 32},
        CleanKind{"layers of 128", {}, 128}, CleanKind{"updates are not logged", {"adam"}},
        CleanKind{"only products and updates are logged",
                  {"data", "padding_mask", "random_state", "dropout_mask", "layernorm", "gelu", "dropout",
                   "add", "cross_entropy", "CrossEntropyBackward", "GeluDropoutBackward", "LayerNormBackward",
                   "accumulate", "allreduce", "average"}}}) {
    const int num_of_kind = kind.not_logged.empty() ? num_runs : std::max(num_runs / 5, 1);
    holds = RunClean(dir, kind, num_of_kind, first_seed, dtypes) && holds;
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
  num_missed += PrintSizedFaults(dir, num_planted, first_seed + 1000, dtypes);
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
