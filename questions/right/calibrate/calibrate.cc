#include "ott/questions/right/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/tensor/tensor_statistics.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/crosscheck/check_reference.h"

namespace ott::calibrate {
namespace {

// Returns true if nothing of the tensor was dumped that has a tolerance. Adds its name.
bool CannotCalibrate(const TensorError& error, std::set<std::string>& not_calibrated) {
  const size_t image = error.tensor().rfind(absl::StrCat(".", kImageName, "."));
  if (!error.is_unknown() && image == std::string::npos) return false;
  not_calibrated.insert(error.tensor().substr(0, image));
  return true;
}

// Returns an error for what is more than noise: what is no difference of numbers.
absl::Status FindProblem(const CrossCheckVerdict& verdict, const std::string& run,
                         std::set<std::string>& not_calibrated) {
  std::string problem;
  // Keeps what the verdict says besides, such as of gradients that one run has alone.
  std::string reason = verdict.reason();
  for (const TensorError& error : verdict.tensor_errors()) {
    if (CannotCalibrate(error, not_calibrated)) {
      const std::string of_tensor = absl::StrCat(error.tensor(), ": ", error.problem());
      if (absl::StartsWith(reason, of_tensor)) reason.erase(0, of_tensor.size() + 2);
    } else if (!error.problem().empty()) {
      problem = absl::StrCat(error.tensor(), ": ", error.problem());
      break;
    } else if (!std::isfinite(error.passing_atol())) {
      problem = absl::StrCat(error.tensor(), ": NaN or infinity in one of them only");
      break;
    }
  }
  if (problem.empty()) problem = reason;
  if (problem.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(run, " and ", verdict.reference(), ", rank ",
                                                    verdict.rank(), ", iteration ", verdict.iteration(),
                                                    ": no repetitions of one training: ", problem));
}

// From one run's dump of an iteration.
absl::Status AddRoundings(const std::string& dump_dir, int64_t iteration, Noise& noise) {
  OTT_ASSIGN_OR_RETURN(const Dump dump, ReadDump(dump_dir));
  for (const NamedTensor& tensor : ListTensorsAndGrads(dump)) {
    if (!noise.Has(tensor.path) || tensor.content != NamedTensor::Content::kElements) continue;
    OTT_ASSIGN_OR_RETURN(const TensorStatistics statistics, ComputeStatistics(tensor.tensor.view));
    const double largest = std::max(-statistics.min.value_or(0), statistics.max.value_or(0));
    noise.AddRounding(tensor.path, iteration, largest * 2 * UnitRoundoff(tensor.tensor.view.dtype()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Noise> MeasureNoise(const std::vector<std::string>& runs,
                                   std::set<std::string>& not_calibrated) {
  Noise noise;
  std::vector<std::pair<int, int64_t>> dumps;  // rank and iteration
  for (int first = 0; first < static_cast<int>(runs.size()); ++first) {
    CrossCheckConfig config;
    config.set_reference_run(runs[first]);
    for (int second = first + 1; second < static_cast<int>(runs.size()); ++second) {
      OTT_ASSIGN_OR_RETURN(const std::vector<CrossCheckVerdict> verdicts,
                           crosscheck::CheckRunAgainstReference(runs[second], config));
      dumps.clear();
      for (const CrossCheckVerdict& verdict : verdicts) {
        OTT_RETURN_IF_ERROR(FindProblem(verdict, runs[second], not_calibrated));
        noise.AddIteration(verdict.iteration());
        dumps.emplace_back(verdict.rank(), verdict.iteration());
        for (const TensorError& error : verdict.tensor_errors()) {
          if (CannotCalibrate(error, not_calibrated)) continue;
          noise.Add(error.tensor(), verdict.iteration(), first, second, error.passing_atol());
        }
      }
    }
  }
  for (const auto& [rank, iteration] : dumps) {
    const std::string dir = DumpPath(runs[0], rank, iteration);
    OTT_RETURN_IF_ERROR(AddRoundings(dir, iteration, noise));
  }
  return noise;
}

absl::Status CheckOutliers(const std::vector<Noise::LeftOut>& left_out,
                           const std::vector<std::string>& runs) {
  std::vector<std::string> outliers;
  for (const Noise::LeftOut& run : left_out) {
    if (!run.outlier.has_value()) continue;
    outliers.push_back(
        absl::StrCat(runs[run.run], " differs from the others by ",
                     std::isfinite(run.outlier->part)
                         ? absl::StrFormat("%.3g times the tolerance that these give", run.outlier->part)
                         : "what they, equal bit for bit, do not allow",
                     ", from iteration ", run.outlier->iteration, " on, in ", run.outlier->tensor));
  }
  if (outliers.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("no repetitions of one training: ", absl::StrJoin(outliers, "; "),
                   ". Find out why, or leave it out; where it is right, take more runs of its kind"));
}

}  // namespace

absl::StatusOr<Calibration> Calibrate(const std::vector<std::string>& runs, std::optional<double> factor) {
  OTT_CHECK(runs.size() >= 2) << runs.size() << " runs";
  OTT_CHECK(factor.value_or(1) >= 1) << "factor " << *factor;
  Calibration result;
  OTT_ASSIGN_OR_RETURN(const Noise noise, MeasureNoise(runs, result.not_calibrated));
  std::vector<int> counted;
  for (int run = 0; run < static_cast<int>(runs.size()); ++run) {
    const bool is_repeated =
        std::any_of(counted.begin(), counted.end(), [&](int other) { return noise.AreEqual(run, other); });
    (is_repeated ? result.repeated : result.runs).push_back(runs[run]);
    if (!is_repeated) counted.push_back(run);
  }
  if (counted.size() < 2 && !result.not_calibrated.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        absl::StrJoin(runs, ", "), ": what differs was dumped as statistics or images alone, which ",
        "calibrates nothing: ", absl::StrJoin(result.not_calibrated, ", "), ". Dump its elements"));
  }
  if (counted.size() < 2) {
    return absl::FailedPreconditionError(absl::StrCat(
        absl::StrJoin(runs, ", "),
        ": all are equal bit for bit, which calibrates nothing. Either any difference is a finding: compare "
        "without tolerances; or take runs that may differ: another build, another order of sums"));
  }
  if (counted.size() == 2 && !factor) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: of two runs%s nobody can tell whether what differs is noise or a fault of one of them, which "
        "the tolerances would hide. Take a third one, or accept it as noise by --factor %.3g",
        absl::StrJoin(result.runs, ", "),
        result.repeated.empty() ? "" : " that are not another one bit for bit", FactorFor(2)));
  }
  const double used = factor.value_or(FactorFor(static_cast<int>(counted.size())));
  if (counted.size() > 2) {
    result.left_out = noise.LeaveOneOut(counted, factor);
    OTT_RETURN_IF_ERROR(CheckOutliers(result.left_out, runs));
    if (!factor) result.raised = Noise::Raised(result.left_out);
    for (Noise::LeftOut& left_out : result.left_out) {
      left_out.run =
          static_cast<int>(std::find(counted.begin(), counted.end(), left_out.run) - counted.begin());
    }
  }
  result.tolerances = noise.Fit(counted, used, result.raised);
  for (const std::string& run : result.runs) result.tolerances.add_runs(run);
  std::tie(result.median_looseness, result.max_looseness) = noise.Looseness(counted, used, result.raised);
  return result;
}

std::string ToText(const Calibration& calibration) {
  const Tolerances& tolerances = calibration.tolerances;
  const auto noisiest = std::max_element(tolerances.tensors().begin(), tolerances.tensors().end(),
                                         [](const auto& a, const auto& b) { return a.noise() < b.noise(); });
  std::string text = absl::StrFormat(
      "tolerances of %d tensors in %d iterations, %.3g times what differs between %d runs; most, %.3g, in "
      "%s\n"
      "they are %.3g times the largest difference that was seen (median), %.3g at most\n",
      tolerances.tensors_size(), tolerances.iterations_size(), tolerances.factor(), calibration.runs.size(),
      noisiest->noise(), noisiest->path(), calibration.median_looseness, calibration.max_looseness);
  for (const std::string& run : calibration.repeated) {
    absl::StrAppend(&text, run, " is another run bit for bit, and says nothing\n");
  }
  if (!calibration.not_calibrated.empty()) {
    absl::StrAppend(&text, "without a tolerance, as only statistics or images of them were dumped: ",
                    absl::StrJoin(calibration.not_calibrated, ", "), "\n");
  }
  if (calibration.left_out.empty()) {
    return absl::StrCat(text,
                        "two runs cannot show how often that is a false alarm; a third makes tolerances ",
                        absl::StrFormat("%.2g", FactorFor(2) / FactorFor(3)), " times tighter\n");
  }
  const auto nearest = std::max_element(calibration.left_out.begin(), calibration.left_out.end(),
                                        [](const auto& a, const auto& b) { return a.part < b.part; });
  const auto num_alarms = std::count_if(calibration.left_out.begin(), calibration.left_out.end(),
                                        [](const auto& run) { return run.part > 1; });
  const std::string place = absl::StrCat(calibration.runs[nearest->run], " in iteration ", nearest->iteration,
                                         ", ", nearest->tensor);
  absl::StrAppendFormat(&text,
                        "each run against the tolerances of the others: %d of %d would be a false alarm",
                        num_alarms, calibration.left_out.size());
  absl::StrAppendFormat(&text, "; nearest: %s, %.2g times its tolerance\n", place, nearest->part);
  if (!calibration.raised.empty()) {
    const auto most = std::max_element(calibration.raised.begin(), calibration.raised.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    absl::StrAppendFormat(&text, "so the factor of %d tensors is raised, by %.2g times at most, in %s\n",
                          calibration.raised.size(), most->second, most->first);
  }
  return text;
}

}  // namespace ott::calibrate
