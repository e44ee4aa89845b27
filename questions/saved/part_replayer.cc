#include "questions/saved/part_replayer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/policy.h"

namespace ott::saved {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

// Returns the share of the time that goes from `before` to `after`, with its 95 % interval over batches.
Saving Compare(const std::vector<double>& before, const std::vector<double>& after) {
  const double total = Sum(before);
  if (total <= 0) return {};
  const double ratio = Sum(after) / total;
  if (before.size() < 2) return {1 - ratio, -kUnknown, kUnknown};
  // The variance of a ratio of sums, by its linear part.
  double squares = 0;
  for (size_t i = 0; i < before.size(); ++i) squares += std::pow(after[i] - ratio * before[i], 2);
  const auto n = static_cast<double>(before.size());
  const double margin =
      StudentTQuantile(1 - kIntervalError / 2, n - 1) * std::sqrt(squares * n / (n - 1)) / total;
  return {1 - ratio, 1 - ratio - margin, 1 - ratio + margin};
}

// error: the standard error of what is mended, as a share of that.
void Widen(double error, Saving& saving) {
  const double margin = (saving.high - saving.low) / 2;
  const double wider = std::hypot(margin, NormalQuantile(1 - kIntervalError / 2) * error * saving.share);
  saving.low = saving.share - wider;
  saving.high = saving.share + wider;
}

Scenario AllOf(Scenario::Times times) { return {times, times, 1, {}}; }

}  // namespace

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

PartReplayer::PartReplayer(const ReplayJob& job) : job_(job), replayer_(job) {
  std::vector<std::vector<double>> replayed =
      replayer_.Replay({AllOf(Scenario::kMeasured), AllOf(Scenario::kIdeal)});
  measured_ = std::move(replayed[0]);
  ideal_ = std::move(replayed[1]);
}

void PartReplayer::FindSlowdowns(std::vector<JobPart>& parts) const {
  std::vector<Scenario> scenarios;
  for (const JobPart& part : parts)
    scenarios.push_back({Scenario::kIdeal, Scenario::kMeasured, 1, part.selection});
  const std::vector<std::vector<double>> replayed = replayer_.Replay(scenarios);
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].slowdown = Sum(ideal_) > 0 ? Sum(replayed[i]) / Sum(ideal_) : 1;
    for (size_t step = 0; step < ideal_.size(); ++step) {
      parts[i].slowdown_of_step.push_back(ideal_[step] > 0 ? replayed[i][step] / ideal_[step] : 1);
    }
  }
}

// Returns the sum of the steps of each batch.
std::vector<double> PartReplayer::ByBatch(const std::vector<double>& steps) const {
  std::vector<double> sums;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i == 0 || job_.steps[i].batch != job_.steps[i - 1].batch) sums.push_back(0);
    sums.back() += steps[i];
  }
  return sums;
}

Saving PartReplayer::SavingOf(const std::vector<double>& replayed) const {
  return Compare(ByBatch(measured_), ByBatch(replayed));
}

Saving PartReplayer::SavingBeyond(const JobPart& less, const JobPart& more) const {
  return Compare(ByBatch(less.mended), ByBatch(more.mended));
}

void PartReplayer::FindSavings(std::vector<JobPart>& parts, bool only_if_sure) const {
  std::vector<Scenario> scenarios;
  for (const JobPart& part : parts)
    scenarios.push_back({Scenario::kMeasured, Scenario::kMended, 1, part.selection, only_if_sure});
  std::vector<std::vector<double>> replayed = replayer_.Replay(scenarios);
  for (size_t i = 0; i < parts.size(); ++i) {
    Saving& saving = parts[i].saving;
    parts[i].mended = std::move(replayed[i]);
    saving = SavingOf(parts[i].mended);
    if (only_if_sure) Widen(replayer_.ErrorOfMended(scenarios[i]), saving);
    if (!job_.may_overlap) continue;
    std::vector<double> shortest = replayer_.Shortened(scenarios[i]);
    for (size_t step = 0; step < shortest.size(); ++step) shortest[step] = measured_[step] - shortest[step];
    saving.high = std::max(saving.high, SavingOf(shortest).high);
  }
}

std::optional<double> PartReplayer::ShareOf(absl::FunctionRef<bool(int rank)> is_mended) const {
  const double excess = Sum(measured_) - Sum(ideal_);
  if (excess <= 0) return std::nullopt;
  const auto replayed = replayer_.Replay({{Scenario::kMeasured, Scenario::kIdeal, 1,
                                           Select(job_, [&](int rank, int) { return is_mended(rank); })}});
  return (Sum(measured_) - Sum(replayed[0])) / excess;
}

void PartReplayer::SortByExcess(std::vector<size_t>& ranks) const {
  std::vector<double> excess(job_.ranks.size());
  for (size_t rank = 0; rank < excess.size(); ++rank) {
    for (size_t kind = 0; kind < job_.kinds.size(); ++kind) {
      excess[rank] += std::max(replayer_.MeanExcess(rank, kind), 0.0);
    }
  }
  std::stable_sort(ranks.begin(), ranks.end(), [&](size_t a, size_t b) { return excess[a] > excess[b]; });
}

}  // namespace ott::saved
