#include "ott/questions/saved/scenario.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/statistics/rare_excess.h"

namespace ott::saved {
namespace {

// Returns the mean, and its variance.
std::pair<double, double> MeanWithVariance(const std::vector<double>& values) {
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  const double mean = sum / count;
  return {mean, std::max(squares / count - mean * mean, 0.0) / (count - 1)};
}

}  // namespace

std::vector<char> Select(const ReplayJob& job, absl::FunctionRef<bool(int rank, int kind)> selects) {
  std::vector<char> selection;
  selection.reserve(job.ranks.size() * job.kinds.size());
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    for (size_t kind = 0; kind < job.kinds.size(); ++kind) {
      selection.push_back(selects(static_cast<int>(rank), static_cast<int>(kind)));
    }
  }
  return selection;
}

ScenarioReplayer::ScenarioReplayer(const ReplayJob& job) : job_(job) {
  FindPlaces();
  FindExcess();
  if (compares_ranks()) AddUpSteps();
}

void ScenarioReplayer::FindPlaces() {
  const int num_steps = job_.graph.num_steps();
  for (int step = 0; step < num_steps; ++step) {
    const auto [first, last] = job_.graph.OperationsOf(step);
    for (int32_t i = first; i < last; ++i) {
      const ReplayJob::Operation& operation = job_.operations[i];
      if (operation.place < 0) continue;
      const auto index = static_cast<size_t>(2 * operation.place + (2 * step >= num_steps));
      if (index >= places_.size()) places_.resize(index + 1);
      Place& place = places_[index];
      place.kind = operation.kind;
      const auto found = std::find_if(place.by_rank.begin(), place.by_rank.end(),
                                      [&](const Series& series) { return series.rank == operation.rank; });
      Series& series =
          found != place.by_rank.end() ? *found : place.by_rank.emplace_back(Series{operation.rank, {}});
      series.operations.push_back(i);
    }
  }
  for (Place& place : places_) {
    for (Series& series : place.by_rank) {
      std::stable_sort(series.operations.begin(), series.operations.end(), [this](int32_t a, int32_t b) {
        return job_.operations[a].own < job_.operations[b].own;
      });
    }
  }
}

void ScenarioReplayer::FindExcess() {
  const size_t num_kinds = job_.kinds.size();
  std::vector<double> mean(job_.ranks.size() * num_kinds);
  std::vector<double> ideal(mean.size());
  for (const ReplayJob::Operation& operation : job_.operations) {
    mean[operation.rank * num_kinds + operation.kind] += operation.own;
    ideal[operation.rank * num_kinds + operation.kind] += operation.ideal;
  }
  const auto num_steps = static_cast<double>(std::max<size_t>(job_.steps.size(), 1));
  excess_.resize(mean.size());
  for (size_t kind = 0; kind < num_kinds; ++kind) {
    for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      const size_t i = rank * num_kinds + kind;
      // If ranks have different operations, each is compared with what is ideal for it.
      if (places_.empty()) {
        excess_[i] = (mean[i] - ideal[i]) / num_steps;
        continue;
      }
      std::vector<double> peers, others;
      for (size_t other = 0; other < job_.ranks.size(); ++other) {
        if (other == rank) continue;
        others.push_back(mean[other * num_kinds + kind]);
        if (job_.ranks[other].stage == job_.ranks[rank].stage) peers.push_back(others.back());
      }
      if (!peers.empty()) others = std::move(peers);
      if (!others.empty()) excess_[i] = (mean[i] - Median(others)) / num_steps;
    }
  }
}

void ScenarioReplayer::AddUpSteps() {
  const size_t size = job_.ranks.size() * job_.kinds.size();
  has_kind_.resize(size);
  for (int step = 0; step < job_.graph.num_steps(); ++step) {
    if (step == 0 || job_.steps[step].batch != job_.steps[step - 1].batch) {
      batches_.emplace_back(size);
      steps_of_batch_.push_back(0);
    }
    ++steps_of_batch_.back();
    std::vector<float>& of_step = steps_.emplace_back(size);
    const auto [first, last] = job_.graph.OperationsOf(step);
    for (int32_t i = first; i < last; ++i) {
      const ReplayJob::Operation& operation = job_.operations[i];
      if (operation.place < 0) continue;
      const size_t index = operation.rank * job_.kinds.size() + operation.kind;
      batches_.back()[index] += operation.own;
      of_step[index] += static_cast<float>(operation.own);
      has_kind_[index] = 1;
    }
  }
}

std::vector<char> ScenarioReplayer::OthersOf(const Scenario& scenario, int kind) const {
  const auto is_selected = [&](size_t rank) {
    return scenario.selection[rank * job_.kinds.size() + static_cast<size_t>(kind)] != 0;
  };
  std::set<int> stages;
  for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
    if (is_selected(rank)) stages.insert(job_.ranks[rank].stage);
  }
  std::vector<char> peers, others;
  for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
    others.push_back(!is_selected(rank));
    peers.push_back(!is_selected(rank) && stages.count(job_.ranks[rank].stage) > 0);
  }
  return std::count(peers.begin(), peers.end(), 1) > 0 ? peers : others;
}

bool ScenarioReplayer::IsAlone(const Scenario& scenario, int kind) const {
  const size_t num_kinds = job_.kinds.size();
  const auto is_selected = [&](size_t rank) { return scenario.selection[rank * num_kinds + kind] != 0; };
  std::set<int> stages;
  std::set<int> stages_of_others;
  for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
    (is_selected(rank) ? stages : stages_of_others).insert(job_.ranks[rank].stage);
    if (!is_selected(rank) && has_kind_[rank * num_kinds + kind] != 0) return false;
  }
  return std::includes(stages_of_others.begin(), stages_of_others.end(), stages.begin(), stages.end());
}

bool ScenarioReplayer::IsHabit(int kind) const {
  const size_t num_kinds = job_.kinds.size();
  int64_t num_with = 0;
  int64_t num_events = 0;
  bool had = false;
  for (const std::vector<float>& step : steps_) {
    bool has = false;
    for (size_t i = static_cast<size_t>(kind); i < step.size(); i += num_kinds) has |= step[i] > 0;
    num_with += has;
    num_events += has && !had;
    had = has;
  }
  return num_events >= kMinHiccups ||
         static_cast<double>(num_with) > kRareShare * static_cast<double>(steps_.size());
}

bool ScenarioReplayer::IsRarelySlow(const Scenario& scenario, int kind) const {
  const size_t num_kinds = job_.kinds.size();
  const size_t num_ranks = job_.ranks.size();
  std::optional<size_t> selected;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    if (scenario.selection[rank * num_kinds + kind] == 0) continue;
    if (selected) return false;
    selected = rank;
  }
  if (!selected || job_.kinds[kind].communicates) return false;
  const std::vector<char> is_other = OthersOf(scenario, kind);
  std::vector<size_t> compared;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    if (is_other[rank] != 0 || rank == *selected) compared.push_back(rank);
  }
  if (compared.size() < 2) return false;
  double time = 0;
  int64_t num_iterations = 0;
  for (const ReplayJob::Step& step : job_.steps) {
    time += step.measured_seconds;
    num_iterations += step.num_iterations;
  }
  const double iteration = time / static_cast<double>(num_iterations);
  std::vector<double> hiccups;
  double all_late = 0;
  // Those in a row are one event.
  std::vector<double> events;
  std::vector<int64_t> iterations;
  std::vector<double> events_of_others;
  std::set<size_t> before;
  for (size_t number = 0; number < steps_.size(); ++number) {
    const std::vector<float>& step = steps_[number];
    std::set<size_t> late_ranks;
    std::vector<double> times;
    for (const size_t rank : compared) times.push_back(static_cast<double>(step[rank * num_kinds + kind]));
    const double middle = Median(times);
    // The middle of two is half of the way to the other one.
    const double factor = compared.size() == 2 ? 2 : 1;
    for (const size_t rank : compared) {
      const double late = factor * (static_cast<double>(step[rank * num_kinds + kind]) - middle);
      all_late += std::max(late, 0.0);
      if (!IsHiccup(late, iteration)) continue;
      late_ranks.insert(rank);
      if (rank == *selected) hiccups.push_back(late);
      if (before.count(rank) > 0) continue;
      (rank == *selected ? events : events_of_others).push_back(late);
      if (rank == *selected) iterations.push_back(job_.steps[number].number);
    }
    before = std::move(late_ranks);
  }
  return IsRepeated(hiccups, all_late, num_iterations, iteration) &&
         (IsRegular(iterations) ||
          IsMoreThanChance(events, events_of_others, static_cast<int64_t>(compared.size())));
}

ScenarioReplayer::Compared ScenarioReplayer::Compare(const Scenario& scenario, int kind) const {
  const size_t num_kinds = job_.kinds.size();
  const std::vector<char> is_other = OthersOf(scenario, kind);
  Compared compared;
  for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
    compared.num_selected += scenario.selection[rank * num_kinds + kind] != 0;
    compared.num_others += is_other[rank] != 0;
  }
  if (compared.num_selected == 0 || compared.num_others == 0) return compared;
  for (const std::vector<double>& batch : batches_) {
    double of_selected = 0;
    double of_others = 0;
    for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      const size_t i = rank * num_kinds + kind;
      if (scenario.selection[i] != 0) of_selected += batch[i];
      if (is_other[rank] != 0) of_others += batch[i];
    }
    compared.selected.push_back(of_selected / static_cast<double>(compared.num_selected));
    compared.others.push_back(of_others / static_cast<double>(compared.num_others));
  }
  return compared;
}

bool ScenarioReplayer::IsSurelySlow(const Scenario& scenario, int kind) const {
  if (batches_.size() < 3) return false;
  const Compared compared = Compare(scenario, kind);
  if (compared.selected.empty()) return compared.num_selected > 0;
  // By Student's t, over what the mean of the selected takes longer than the mean of the others in each
  // batch.
  int64_t num_twice = 0;
  std::vector<double> excess;
  for (size_t batch = 0; batch < batches_.size(); ++batch) {
    excess.push_back(compared.selected[batch] - compared.others[batch]);
    num_twice += excess.back() >= compared.others[batch];
  }
  const auto count = static_cast<double>(excess.size());
  const auto [mean, variance] = MeanWithVariance(excess);
  // Single ranks and the sets that are made of the worst of them.
  const double num_tests = static_cast<double>(job_.ranks.size() * job_.ranks.size() * job_.kinds.size());
  // When a rank leaves a collective is also a matter of its place in it, and of who has its CPU; but not
  // nearly always by as much as that takes.
  if (job_.kinds[kind].communicates &&
      (job_.kinds[kind].holds_work || job_.taken_share > kMaxTakenOfLateLeaver ||
       static_cast<double>(num_twice) < kNearlyAlways * count)) {
    return false;
  }
  if (mean > 0 && IsAlone(scenario, kind) && IsHabit(kind)) return true;
  if (IsRarelySlow(scenario, kind)) return true;
  return mean > 0 && mean >= StudentTQuantile(1 - kBlameError / num_tests, count - 1) * std::sqrt(variance);
}

double ScenarioReplayer::ErrorOfMended(const Scenario& scenario) const {
  if (batches_.size() < 3) return 0;
  std::vector<double> excess(batches_.size());
  std::vector<double> others(batches_.size());
  double ranks_of_others = 0;
  for (size_t kind = 0; kind < job_.kinds.size(); ++kind) {
    const Compared compared = Compare(scenario, static_cast<int>(kind));
    if (compared.selected.empty() || !IsSurelySlow(scenario, static_cast<int>(kind))) continue;
    ranks_of_others =
        static_cast<double>(compared.num_others) / static_cast<double>(compared.num_selected) + 1;
    for (size_t batch = 0; batch < batches_.size(); ++batch) {
      excess[batch] += (compared.selected[batch] - compared.others[batch]) / steps_of_batch_[batch];
      others[batch] += compared.others[batch] / steps_of_batch_[batch];
    }
  }
  const auto [mean, variance] = MeanWithVariance(excess);
  if (mean <= 0) return 0;
  // The others' times hold what varies for all ranks alike. The excess holds what is mended.
  return std::sqrt(std::min(variance, ranks_of_others * MeanWithVariance(others).second)) / mean;
}

double ScenarioReplayer::SureExcess(size_t rank) const {
  const Scenario scenario = {Scenario::kMeasured, Scenario::kMended, 1,
                             Select(job_, [&](int of, int) { return static_cast<size_t>(of) == rank; })};
  double excess = 0;
  for (size_t kind = 0; kind < job_.kinds.size(); ++kind) {
    if (IsSurelySlow(scenario, static_cast<int>(kind))) excess += std::max(MeanExcess(rank, kind), 0.0);
  }
  return excess;
}

std::vector<double> ScenarioReplayer::Shortened(const Scenario& scenario) const {
  const std::vector<float> mended = Mend(scenario);
  std::vector<double> seconds(job_.steps.size());
  for (size_t step = 0; step < seconds.size() && !mended.empty(); ++step) {
    const auto [first, last] = job_.graph.OperationsOf(static_cast<int>(step));
    for (int32_t i = first; i < last; ++i) {
      const ReplayJob::Operation& operation = job_.operations[i];
      if (std::isnan(mended[i]) || job_.kinds[operation.kind].communicates) continue;
      seconds[step] += operation.own - static_cast<double>(mended[i]);
    }
  }
  return seconds;
}

std::vector<float> ScenarioReplayer::Mend(const Scenario& scenario) const {
  if (scenario.selected != Scenario::kMended || places_.empty()) return {};
  const size_t num_kinds = job_.kinds.size();
  std::vector<char> is_slow(num_kinds);
  for (size_t kind = 0; kind < num_kinds; ++kind)
    is_slow[kind] = !scenario.only_if_sure || IsSurelySlow(scenario, static_cast<int>(kind));
  std::vector<float> mended(job_.operations.size(), std::numeric_limits<float>::quiet_NaN());
  for (const Place& place : places_) {
    if (is_slow[place.kind]) MendPlace(scenario, place, mended);
  }
  return mended;
}

void ScenarioReplayer::MendPlace(const Scenario& scenario, const Place& place,
                                 std::vector<float>& mended) const {
  const auto is_selected = [&](const Series& series) {
    return scenario.selection[series.rank * job_.kinds.size() + place.kind] != 0;
  };
  const std::vector<const Series*> healthy = FindHealthy(place, is_selected);
  // Others take no time for what only these ranks do.
  const bool is_alone = healthy.empty() && IsAlone(scenario, place.kind);
  for (const Series& series : place.by_rank) {
    if (!is_selected(series)) continue;
    // The i-th shortest of the rank's becomes the i-th shortest of the others'; where all are mended, all
    // become alike.
    for (size_t i = 0; i < series.operations.size(); ++i) {
      const int32_t operation = series.operations[i];
      double own = 0;
      for (const Series* const other : healthy) {
        const size_t same = i * other->operations.size() / series.operations.size();
        own += job_.operations[other->operations[same]].own / static_cast<double>(healthy.size());
      }
      if (healthy.empty() && !is_alone) own = job_.operations[operation].ideal;
      mended[operation] = static_cast<float>(own);
    }
  }
}

std::vector<const ScenarioReplayer::Series*> ScenarioReplayer::FindHealthy(
    const Place& place, absl::FunctionRef<bool(const Series&)> is_selected) const {
  std::vector<const Series*> others;
  std::vector<double> means;
  for (const Series& series : place.by_rank) {
    if (is_selected(series)) continue;
    double sum = 0;
    for (const int32_t operation : series.operations) sum += job_.operations[operation].own;
    others.push_back(&series);
    means.push_back(sum / static_cast<double>(series.operations.size()));
  }
  if (others.empty()) return others;
  const double limit = kHealthy * Median(means);
  std::vector<const Series*> healthy;
  for (size_t i = 0; i < others.size(); ++i) {
    if (means[i] <= limit) healthy.push_back(others[i]);
  }
  return healthy;
}

ScenarioReplayer::Mix ScenarioReplayer::MixOf(const Scenario& scenario, size_t rank_and_kind) const {
  const bool is_selected = !scenario.selection.empty() && scenario.selection[rank_and_kind] != 0;
  switch (is_selected ? scenario.selected : scenario.base) {
    case Scenario::kIdeal:
      return {0, 1};
    case Scenario::kScaled:
      return {scenario.factor, 0};
    case Scenario::kMended:
      // Without other ranks of the same place there is only the ideal.
      return places_.empty() ? Mix{0, 1} : Mix{1, 0};
    case Scenario::kMeasured:
      break;
  }
  return {1, 0};
}

std::vector<std::vector<double>> ScenarioReplayer::Replay(const std::vector<Scenario>& scenarios) const {
  constexpr size_t kLanes = DependencyGraph::kLanes;
  const size_t num_kinds = job_.kinds.size();
  std::vector<std::vector<double>> all;
  // Some at a time, as each may have own times of its own in memory.
  for (size_t first = 0; first < scenarios.size(); first += kLanes) {
    const size_t count = std::min(kLanes, scenarios.size() - first);
    std::vector<std::vector<float>> mended(kLanes);
    std::vector<double> of_measured(job_.ranks.size() * num_kinds * kLanes);
    std::vector<double> of_ideal(of_measured.size());
    for (size_t lane = 0; lane < count; ++lane) {
      mended[lane] = Mend(scenarios[first + lane]);
      for (size_t i = 0; i < job_.ranks.size() * num_kinds; ++i) {
        const Mix mix = MixOf(scenarios[first + lane], i);
        of_measured[i * kLanes + lane] = mix.measured;
        of_ideal[i * kLanes + lane] = mix.ideal;
      }
    }
    std::vector<std::vector<double>> some =
        job_.graph.Replay(static_cast<int>(count), [&](int, int32_t begin, int32_t end, double* out) {
          for (int32_t i = begin; i < end; ++i, out += kLanes) {
            const ReplayJob::Operation& operation = job_.operations[i];
            const size_t mix = (operation.rank * num_kinds + operation.kind) * kLanes;
            for (size_t lane = 0; lane < kLanes; ++lane) {
              out[lane] = of_measured[mix + lane] * operation.own + of_ideal[mix + lane] * operation.ideal;
            }
          }
          out -= static_cast<size_t>(end - begin) * kLanes;
          for (size_t lane = 0; lane < count; ++lane) {
            if (mended[lane].empty()) continue;
            for (int32_t i = begin; i < end; ++i) {
              if (!std::isnan(mended[lane][i])) out[(i - begin) * kLanes + lane] = mended[lane][i];
            }
          }
        });
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace ott::saved
