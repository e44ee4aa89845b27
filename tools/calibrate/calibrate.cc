#include "tools/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/cross_check.pb.h"
#include "tools/crosscheck/check_reference.h"

namespace ott::calibrate {
namespace {

// More than noise: what is no difference of numbers.
absl::Status FindProblem(const CrossCheckVerdict& verdict, const std::string& run) {
  std::string problem = verdict.outcome() == NOT_COMPARED ? verdict.reason() : "";
  for (const TensorError& error : verdict.tensor_errors()) {
    if (!problem.empty()) break;
    if (!error.problem().empty()) {
      problem = absl::StrCat(error.tensor(), ": ", error.problem());
    } else if (!std::isfinite(error.passing_atol())) {
      problem = absl::StrCat(error.tensor(), ": NaN or infinity in one of them only");
    }
  }
  if (problem.empty() && verdict.outcome() == DIFFERENT) problem = verdict.reason();
  if (problem.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(run, " and ", verdict.reference(), ", rank ",
                                                    verdict.rank(), ", iteration ", verdict.iteration(),
                                                    ": no repetitions of one training: ", problem));
}

}  // namespace

absl::StatusOr<Tolerances> Calibrate(const std::vector<std::string>& runs, double factor) {
  OTT_CHECK(runs.size() >= 2) << runs.size() << " runs";
  OTT_CHECK(factor >= 1) << "factor " << factor;
  std::map<std::string, double> noise;
  for (size_t first = 0; first < runs.size(); ++first) {
    CrossCheckConfig config;
    config.set_reference_run(runs[first]);
    for (size_t second = first + 1; second < runs.size(); ++second) {
      OTT_ASSIGN_OR_RETURN(const std::vector<CrossCheckVerdict> verdicts,
                           crosscheck::CheckRunAgainstReference(runs[second], config));
      for (const CrossCheckVerdict& verdict : verdicts) {
        OTT_RETURN_IF_ERROR(FindProblem(verdict, runs[second]));
        for (const TensorError& error : verdict.tensor_errors()) {
          double& largest = noise[error.tensor()];
          largest = std::max(largest, error.passing_atol());
        }
      }
    }
  }
  Tolerances tolerances;
  for (const std::string& run : runs) tolerances.add_runs(run);
  tolerances.set_factor(factor);
  for (const auto& [path, largest] : noise) {
    TensorTolerance& tensor = *tolerances.add_tensors();
    tensor.set_path(path);
    tensor.set_atol(factor * largest);
    tensor.set_noise(largest);
  }
  return tolerances;
}

std::string TolerancesToText(const Tolerances& tolerances) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(tolerances, &text);
  return absl::StrCat(
      "# ott.Tolerances by `ott calibrate`. Tensors that are not here were the same in all runs, bit "
      "for bit.\n",
      text);
}

}  // namespace ott::calibrate
