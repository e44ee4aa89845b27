#include "ott/dist/whatif/scenario.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ott/core/statistics/location.h"

namespace ott::whatif {
std::vector<char> Select(const Job& job, absl::FunctionRef<bool(int rank, int kind)> selects) {
  std::vector<char> selection;
  selection.reserve(job.ranks.size() * job.kinds.size());
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    for (size_t kind = 0; kind < job.kinds.size(); ++kind) {
      selection.push_back(selects(static_cast<int>(rank), static_cast<int>(kind)));
    }
  }
  return selection;
}

ScenarioReplayer::ScenarioReplayer(const Job& job) : job_(job) {
  FindPlaces();
  FindExcess();
}

void ScenarioReplayer::FindPlaces() {
  for (size_t i = 0; i < job_.operations.size(); ++i) {
    const Job::Operation& operation = job_.operations[i];
    if (operation.place < 0) continue;
    if (static_cast<size_t>(operation.place) >= places_.size()) places_.resize(operation.place + 1);
    Place& place = places_[operation.place];
    place.kind = operation.kind;
    const auto found = std::find_if(place.by_rank.begin(), place.by_rank.end(),
                                    [&](const Series& series) { return series.rank == operation.rank; });
    Series& series =
        found != place.by_rank.end() ? *found : place.by_rank.emplace_back(Series{operation.rank, {}});
    series.operations.push_back(static_cast<int32_t>(i));
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
  for (const Job::Operation& operation : job_.operations) {
    mean[operation.rank * num_kinds + operation.kind] += operation.own;
    ideal[operation.rank * num_kinds + operation.kind] += operation.ideal;
  }
  const auto num_steps = static_cast<double>(std::max<size_t>(job_.steps.size(), 1));
  excess_.resize(mean.size());
  for (size_t kind = 0; kind < num_kinds; ++kind) {
    for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      const size_t i = rank * num_kinds + kind;
      // Where ranks have different operations, each is compared with what is ideal for it.
      if (places_.empty()) {
        excess_[i] = (mean[i] - ideal[i]) / num_steps;
        continue;
      }
      std::vector<double> others;
      for (size_t other = 0; other < job_.ranks.size(); ++other) {
        if (other != rank) others.push_back(mean[other * num_kinds + kind]);
      }
      if (!others.empty()) excess_[i] = (mean[i] - Median(others)) / num_steps;
    }
  }
}

std::vector<float> ScenarioReplayer::Mend(const Scenario& scenario) const {
  if (scenario.selected != Scenario::kMended || places_.empty()) return {};
  const size_t num_kinds = job_.kinds.size();
  std::vector<float> mended(job_.operations.size(), std::numeric_limits<float>::quiet_NaN());
  std::vector<double> values;
  for (const Place& place : places_) {
    std::vector<const Series*> others;
    for (const Series& series : place.by_rank) {
      if (!scenario.selection[series.rank * num_kinds + place.kind]) others.push_back(&series);
    }
    if (others.empty() || others.size() == place.by_rank.size()) continue;
    for (const Series& series : place.by_rank) {
      if (!scenario.selection[series.rank * num_kinds + place.kind]) continue;
      // The i-th shortest of the rank's becomes the i-th shortest of the others'.
      std::vector<float> own(series.operations.size());
      double gained = 0;
      for (size_t i = 0; i < own.size(); ++i) {
        values.clear();
        for (const Series* const other : others) {
          const size_t same = i * other->operations.size() / own.size();
          values.push_back(job_.operations[other->operations[same]].own);
        }
        own[i] = static_cast<float>(Median(values));
        gained += job_.operations[series.operations[i]].own - own[i];
      }
      if (gained <= 0) continue;
      for (size_t i = 0; i < own.size(); ++i) mended[series.operations[i]] = own[i];
    }
  }
  return mended;
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
            const Job::Operation& operation = job_.operations[i];
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

}  // namespace ott::whatif
