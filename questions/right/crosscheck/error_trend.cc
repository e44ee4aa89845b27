#include "ott/questions/right/crosscheck/error_trend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"

namespace ott::crosscheck {
namespace {

constexpr size_t kMaxColumns = 6;
constexpr size_t kMaxRows = 20;

}  // namespace

int64_t ErrorTrend::Tensor::first_iteration() const {
  int64_t first = INT64_MAX;
  if (!max_abs_error.empty()) first = max_abs_error.begin()->first;
  return not_compared.empty() ? first : std::min(first, *not_compared.begin());
}

std::vector<int64_t> ErrorTrend::Iterations(size_t limit) const {
  const std::vector<int64_t> all(iterations_.begin(), iterations_.end());
  if (all.size() <= limit) return all;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < limit; ++i) chosen.push_back(all[i * (all.size() - 1) / (limit - 1)]);
  return chosen;
}

std::vector<ErrorTrend::Trend> ErrorTrend::Trends(const std::vector<int64_t>& iterations,
                                                  size_t limit) const {
  std::vector<std::string> names = names_;
  std::stable_sort(names.begin(), names.end(), [this](const std::string& a, const std::string& b) {
    return tensors_.at(a).first_iteration() < tensors_.at(b).first_iteration();
  });
  if (names.size() > limit) names.resize(limit);
  std::vector<Trend> trends;
  for (const std::string& name : names) {
    const Tensor& tensor = tensors_.at(name);
    Trend& trend = trends.emplace_back();
    trend.tensor = name;
    trend.first_iteration = tensor.first_iteration();
    for (const int64_t iteration : iterations) {
      const auto found = tensor.max_abs_error.find(iteration);
      const bool is_known = tensor.not_compared.count(iteration) == 0;
      trend.max_abs_error.push_back(!is_known ? std::numeric_limits<double>::quiet_NaN()
                                    : found == tensor.max_abs_error.end() ? 0
                                                                          : found->second);
    }
  }
  return trends;
}

void ErrorTrend::Add(const CrossCheckVerdict& verdict) {
  iterations_.insert(verdict.iteration());
  for (const TensorError& error : verdict.tensor_errors()) {
    const auto [tensor, is_new] = tensors_.try_emplace(error.tensor());
    if (is_new) names_.push_back(error.tensor());
    if (!error.problem().empty()) {
      tensor->second.not_compared.insert(verdict.iteration());
    } else {
      double& largest = tensor->second.max_abs_error[verdict.iteration()];
      largest = std::max(largest, error.max_abs_error());
    }
  }
}

std::string ErrorTrend::ToString() const {
  if (names_.empty()) return "";
  std::vector<std::string> header = {"max abs error, of all ranks", "from iteration"};
  const std::vector<int64_t> columns = Iterations(kMaxColumns);
  for (const int64_t iteration : columns) header.push_back(absl::StrCat("at ", iteration));
  TextTable table(std::move(header));
  for (const Trend& trend : Trends(columns, kMaxRows)) {
    std::vector<std::string> cells = {trend.tensor, absl::StrCat(trend.first_iteration)};
    for (const double error : trend.max_abs_error) {
      cells.push_back(std::isnan(error) ? "not compared" : absl::StrFormat("%.3g", error));
    }
    table.AddRow(std::move(cells));
  }
  std::string text = table.ToString();
  if (names_.size() > kMaxRows) absl::StrAppend(&text, "and ", names_.size() - kMaxRows, " more tensors\n");
  return text;
}

}  // namespace ott::crosscheck
