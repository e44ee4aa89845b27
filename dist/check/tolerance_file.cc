#include "ott/dist/check/tolerance_file.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/text_format.h"
#include "ott/core/base/config.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

absl::Status Check(const Tolerances& tolerances, const std::string& path) {
  const auto& iterations = tolerances.iterations();
  const auto descent = std::adjacent_find(iterations.begin(), iterations.end(), std::greater_equal<>());
  if (descent != iterations.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": iterations: ", *std::next(descent), " follows ", *descent, "; they ascend"));
  }
  for (const TensorTolerance& tensor : tolerances.tensors()) {
    if (tensor.atol_at_size() != 0 && tensor.atol_at_size() != iterations.size()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", tensor.path(), ": atol_at has ",
                                                     tensor.atol_at_size(), " entries for ",
                                                     iterations.size(), " iterations"));
    }
    std::vector<double> atols(tensor.atol_at().begin(), tensor.atol_at().end());
    atols.push_back(tensor.atol());
    for (const double atol : atols) {
      if (IsTolerance(atol)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", tensor.path(), ": atol ", atol, " is not a finite number of at least 0"));
    }
  }
  return absl::OkStatus();
}

// To three digits, so that people can read it.
double RoundUp(double value) {
  if (value <= 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  double rounded = 0;
  const bool is_number = absl::SimpleAtod(absl::StrFormat("%.3g", std::ceil(value / unit) * unit), &rounded);
  return is_number ? std::max(value, rounded) : value;
}

}  // namespace

ToleranceFile::ToleranceFile(std::string path, Tolerances tolerances)
    : path_(std::move(path)), tolerances_(std::move(tolerances)) {}

absl::StatusOr<ToleranceFile> ToleranceFile::Read(const std::string& path) {
  Tolerances tolerances;
  OTT_RETURN_IF_ERROR(ReadTextProto(path, &tolerances));
  OTT_RETURN_IF_ERROR(Check(tolerances, path));
  return ToleranceFile(path, std::move(tolerances));
}

std::vector<PathTolerance> ToleranceFile::At(int64_t iteration, bool nan_equal) const {
  const auto& iterations = tolerances_.iterations();
  const auto size = static_cast<int>(iterations.size());
  const auto next = static_cast<int>(std::lower_bound(iterations.begin(), iterations.end(), iteration) -
                                     iterations.begin());
  const bool is_there = next < size && iterations[next] == iteration;
  const int begin = std::max(is_there ? next : next - 1, 0);
  const int end = std::min(next + 1, size);
  std::vector<PathTolerance> by_path;
  for (const TensorTolerance& tensor : tolerances_.tensors()) {
    PathTolerance& tolerance = by_path.emplace_back();
    tolerance.glob = tensor.path();
    tolerance.tolerance.nan_equal = nan_equal;
    tolerance.tolerance.atol = tensor.atol();
    if (tensor.atol_at().empty()) continue;
    tolerance.tolerance.atol =
        *std::max_element(tensor.atol_at().begin() + begin, tensor.atol_at().begin() + end);
  }
  return by_path;
}

std::string TolerancesToText(const Tolerances& tolerances) {
  Tolerances rounded = tolerances;
  rounded.set_factor(RoundUp(tolerances.factor()));
  for (TensorTolerance& tensor : *rounded.mutable_tensors()) {
    tensor.set_atol(RoundUp(tensor.atol()));
    tensor.set_noise(RoundUp(tensor.noise()));
    for (double& atol : *tensor.mutable_atol_at()) atol = RoundUp(atol);
  }
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  std::string text;
  printer.PrintToString(rounded, &text);
  return absl::StrCat(
      "# ott.Tolerances by `ott calibrate`: atol_at are a tensor's tolerances in these iterations. Tensors "
      "that are\n# not here were the same in all runs, bit for bit.\n",
      text);
}

}  // namespace ott
