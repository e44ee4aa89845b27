#include "ott/questions/right/calibrate/noise.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ott/core/base/check.h"
#include "ott/core/statistics/distributions.h"

namespace ott::calibrate {

namespace {

double TimesOf(const std::string& path, const std::map<std::string, double>& raised) {
  const auto found = raised.find(path);
  return found == raised.end() ? 1 : found->second;
}

}  // namespace

double FactorFor(int num_runs) {
  OTT_CHECK(num_runs >= 2) << num_runs << " runs";
  return std::max(kMinFactor, StudentTQuantile(1 - kFalseAlarmProbability / 2, num_runs - 1));
}

void Noise::Add(const std::string& tensor, int64_t iteration, int run, int other, double difference) {
  double& largest = tensors_[tensor][iteration].differences[std::minmax(run, other)];
  largest = std::max(largest, difference);
}

void Noise::AddRounding(const std::string& tensor, int64_t iteration, double rounding) {
  double& largest = tensors_[tensor][iteration].rounding;
  largest = std::max(largest, rounding);
}

bool Noise::AreEqual(int run, int other) const {
  for (const auto& [unused_tensor, samples] : tensors_) {
    for (const auto& [unused_iteration, sample] : samples) {
      if (Between(sample, run, other) > 0) return false;
    }
  }
  return true;
}

double Noise::Between(const Sample& sample, int run, int other) {
  const auto found = sample.differences.find(std::minmax(run, other));
  return found == sample.differences.end() ? 0 : found->second;
}

double Noise::Largest(const Sample& sample, const std::vector<int>& runs) {
  double largest = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t j = i + 1; j < runs.size(); ++j)
      largest = std::max(largest, Between(sample, runs[i], runs[j]));
  }
  return largest;
}

double Noise::RootMeanSquare(const Sample& sample, const std::vector<int>& runs) {
  double sum = 0;
  int num_pairs = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t j = i + 1; j < runs.size(); ++j, ++num_pairs) {
      sum += std::pow(Between(sample, runs[i], runs[j]), 2);
    }
  }
  return std::sqrt(sum / num_pairs);
}

std::map<int64_t, double> Noise::AtolOf(const Samples& samples, const std::vector<int>& runs, double factor) {
  const bool is_noisy = std::any_of(samples.begin(), samples.end(),
                                    [&](const auto& sample) { return Largest(sample.second, runs) > 0; });
  std::map<int64_t, double> atol;
  if (!is_noisy) return atol;
  for (auto sample = samples.begin(); sample != samples.end(); ++sample) {
    double noise = std::max(RootMeanSquare(sample->second, runs), sample->second.rounding);
    if (sample != samples.begin()) noise = std::max(noise, RootMeanSquare(std::prev(sample)->second, runs));
    if (std::next(sample) != samples.end()) {
      noise = std::max(noise, RootMeanSquare(std::next(sample)->second, runs));
    }
    atol[sample->first] = factor * noise;
  }
  return atol;
}

Tolerances Noise::Fit(const std::vector<int>& runs, double factor,
                      const std::map<std::string, double>& raised) const {
  Tolerances tolerances;
  tolerances.set_factor(factor);
  for (const int64_t iteration : iterations_) tolerances.add_iterations(iteration);
  for (const auto& [path, samples] : tensors_) {
    const double times = TimesOf(path, raised);
    const std::map<int64_t, double> atol = AtolOf(samples, runs, factor * times);
    if (atol.empty()) continue;
    TensorTolerance& tensor = *tolerances.add_tensors();
    tensor.set_path(path);
    if (times > 1) tensor.set_factor(factor * times);
    double noise = 0;
    for (const auto& [unused, sample] : samples) noise = std::max(noise, RootMeanSquare(sample, runs));
    tensor.set_noise(noise);
    for (const int64_t iteration : iterations_) {
      const auto found = atol.find(iteration);
      tensor.add_atol_at(found == atol.end() ? 0 : found->second);
    }
  }
  return tolerances;
}

std::vector<Noise::LeftOut> Noise::LeaveOneOut(const std::vector<int>& runs,
                                               std::optional<double> factor) const {
  OTT_CHECK(runs.size() >= 3) << runs.size() << " runs";
  std::vector<LeftOut> all;
  for (const int run : runs) {
    std::vector<int> others;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(others), [run](int r) { return r != run; });
    LeftOut& left_out = all.emplace_back();
    left_out.run = run;
    for (const auto& [path, samples] : tensors_) {
      const std::map<int64_t, double> atol =
          AtolOf(samples, others, factor.value_or(FactorFor(static_cast<int>(others.size()))));
      for (const auto& [iteration, sample] : samples) {
        double difference = 0;
        for (const int other : others) difference = std::max(difference, Between(sample, run, other));
        if (difference == 0) continue;
        const double part =
            atol.empty() ? std::numeric_limits<double>::infinity() : difference / atol.at(iteration);
        double& of_tensor = left_out.of_tensors[path];
        of_tensor = std::max(of_tensor, part);
        const Part here = {part, path, iteration};
        if (part > left_out.part) static_cast<Part&>(left_out) = here;
        if (part <= kOutlier) continue;
        std::optional<Part>& first = left_out.outlier;
        if (!first.has_value() || iteration < first->iteration ||
            (iteration == first->iteration && part > first->part)) {
          first = here;
        }
      }
    }
  }
  return all;
}

std::map<std::string, double> Noise::Raised(const std::vector<LeftOut>& left_out) {
  std::map<std::string, double> raised;
  for (const LeftOut& run : left_out) {
    for (const auto& [path, part] : run.of_tensors) {
      if (part <= 1) continue;
      double& times = raised[path];
      times = std::max(times, part);
    }
  }
  return raised;
}

std::pair<double, double> Noise::Looseness(const std::vector<int>& runs, double factor,
                                           const std::map<std::string, double>& raised) const {
  std::vector<double> ratios;
  for (const auto& [path, samples] : tensors_) {
    const std::map<int64_t, double> atol = AtolOf(samples, runs, factor * TimesOf(path, raised));
    for (const auto& [iteration, sample] : samples) {
      const double largest = Largest(sample, runs);
      if (largest > 0) ratios.push_back(atol.at(iteration) / largest);
    }
  }
  if (ratios.empty()) return {0, 0};
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  const double median = *middle;
  return {median, *std::max_element(ratios.begin(), ratios.end())};
}

}  // namespace ott::calibrate
