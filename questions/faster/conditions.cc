#include "questions/faster/conditions.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/modes.h"

namespace ott::faster {
namespace {

// A note on the session may appear so often without a reason.
constexpr double kNoteError = 0.001;
// A share of a CPU: if others use less of it, that is not worth a word.
constexpr double kLoadWorthALine = 0.1;
// The difference may be that of the machines if more of a side's runs than this share are on other ones. Runs
// in turn are ordered by chance, so that only sides without a machine in common are in doubt.
constexpr double kMostApart = 0.25;
constexpr double kRounding = 1e-9;

// How many runs had a value.
using Values = std::map<std::string, int>;

std::string List(const Values& values, bool with_counts) {
  constexpr size_t kListed = 3;
  std::vector<std::string> listed;
  for (const auto& [value, num_runs] : values) {
    if (listed.size() == kListed) {
      listed.push_back(absl::StrCat(values.size() - kListed, " more"));
      break;
    }
    listed.push_back(EscapeControlCharacters(value));
    if (with_counts) absl::StrAppend(&listed.back(), " (", num_runs, num_runs == 1 ? " run)" : " runs)");
  }
  return absl::StrJoin(listed, ", ");
}

std::map<std::string, Values> ConditionsOf(const std::vector<Process>& side) {
  std::map<std::string, Values> conditions;
  for (const Process& process : side) {
    for (const auto& [name, value] : process.conditions) ++conditions[name][value];
  }
  return conditions;
}

// The share of a side's runs that would need another value for both sides to have the same.
double ShareApart(const Values& a, const Values& b) {
  const auto sum = [](const Values& values) {
    int all = 0;
    for (const auto& [value, num_runs] : values) all += num_runs;
    return static_cast<double>(all);
  };
  double together = 0;
  for (const auto& [value, num_runs] : a) {
    const auto found = b.find(value);
    if (found != b.end()) together += std::min(num_runs / sum(a), found->second / sum(b));
  }
  return 1 - together;
}

void CheckSameConditions(const Samples& samples, const FasterOptions& options, Comparison* comparison) {
  const auto of_a = ConditionsOf(samples.a), of_b = ConditionsOf(samples.b);
  const bool in_turn = samples.a.front().block.has_value();
  for (const auto& [name, a] : of_a) {
    const auto found = of_b.find(name);
    if (found == of_b.end()) continue;
    const Values& b = found->second;
    if (a.size() == 1 && b.size() == 1 && a.begin()->first == b.begin()->first) continue;
    const double apart = ShareApart(a, b);
    const bool is_disjoint = apart >= 1 - kRounding;
    const bool is_void = in_turn ? is_disjoint : apart > kMostApart + kRounding;
    const bool with_counts = is_void && !is_disjoint;
    const std::string values =
        absl::StrCat(name, " of A: ", List(a, with_counts), "; of B: ", List(b, with_counts));
    if (is_void && options.accepted.count(name) == 0) {
      comparison->voids.push_back(absl::StrCat(values, ": that may be the difference; --accept ", name,
                                               " compares them nevertheless"));
    } else {
      comparison->notes.push_back(values);
    }
  }
}

// Checks whether one side's runs all came before the other's.
void CheckTurns(const Samples& samples, Comparison* comparison) {
  const auto range = [](const std::vector<Process>& side) -> std::optional<std::pair<double, double>> {
    std::pair<double, double> range = {std::numeric_limits<double>::infinity(),
                                       -std::numeric_limits<double>::infinity()};
    for (const Process& process : side) {
      if (!process.started.has_value()) return std::nullopt;
      range = {std::min(range.first, *process.started), std::max(range.second, *process.started)};
    }
    return range;
  };
  const auto a = range(samples.a), b = range(samples.b);
  if (!a.has_value() || !b.has_value()) return;
  if (a->second < b->first || b->second < a->first) {
    comparison->notes.push_back(absl::StrCat(
        "all runs of ", a->second < b->first ? "A came before those of B" : "B came before those of A",
        ": what the machine did meanwhile looks like a difference; `ott ab -- A --- B` runs them in turn"));
  }
}

// Checks whether runs in the second half of the session take longer than in the first, whichever side they
// are of.
void CheckDrift(const Samples& samples, const std::vector<double>& a, const std::vector<double>& b,
                const FasterOptions& options, Comparison* comparison) {
  std::vector<std::pair<double, double>> when_and_what;
  const auto add = [&](const std::vector<Process>& side, const std::vector<double>& values) {
    const double mean = Mean(values);
    for (size_t i = 0; i < side.size(); ++i) {
      if (side[i].started.has_value()) when_and_what.emplace_back(*side[i].started, values[i] - mean);
    }
  };
  add(samples.a, a);
  add(samples.b, b);
  constexpr size_t kFewest = 8;
  if (when_and_what.size() < kFewest || when_and_what.size() != a.size() + b.size()) return;
  std::sort(when_and_what.begin(), when_and_what.end());
  std::vector<double> first, second;
  for (size_t i = 0; i < when_and_what.size(); ++i) {
    (i < when_and_what.size() / 2 ? first : second).push_back(when_and_what[i].second);
  }
  const Estimate drift = WelchDifference(first, second);
  if (drift.PValue() >= kNoteError || std::abs(drift.value) <= std::log1p(options.margin)) return;
  comparison->notes.push_back(absl::StrFormat(
      "the machine drifted: runs of either side took %+.1f %% in the second half of the session%s",
      std::expm1(drift.value) * 100,
      samples.a.front().block.has_value() ? "; as A and B were run in turn, that is taken out" : ""));
}

void CheckModes(const char* side, const std::vector<double>& values, const FasterOptions& options,
                Comparison* comparison) {
  const std::optional<TwoModes> modes = FindTwoModes(values);
  if (!modes.has_value() || modes->high - modes->low <= std::log1p(options.margin)) return;
  comparison->notes.push_back(absl::StrFormat(
      "the runs of %s are of two kinds: %d near %s and %d near %s; what makes them so may weigh more than "
      "the change",
      side, modes->num_low, FormatSeconds(std::exp(modes->low)), modes->num_high,
      FormatSeconds(std::exp(modes->high))));
}

void CheckLoad(const Samples& samples, Comparison* comparison) {
  const auto loads = [](const std::vector<Process>& side) {
    std::vector<double> cpus;
    for (const Process& process : side) {
      if (process.cpus_of_others.has_value()) cpus.push_back(*process.cpus_of_others);
    }
    return cpus;
  };
  const std::vector<double> a = loads(samples.a), b = loads(samples.b);
  if (a.empty() || b.empty() || std::max(Mean(a), Mean(b)) < kLoadWorthALine) return;
  std::string note = absl::StrFormat("other programs kept %.1f CPUs busy while A ran, and %.1f while B ran",
                                     Mean(a), Mean(b));
  if (a.size() > 1 && b.size() > 1 && WelchDifference(a, b).PValue() < kNoteError &&
      std::abs(Mean(a) - Mean(b)) > kLoadWorthALine) {
    note += ": unequal load may be the difference";
  }
  comparison->notes.push_back(std::move(note));
}

void CheckSpread(const std::vector<double>& a, const std::vector<double>& b, Comparison* comparison) {
  const auto constant = [](const std::vector<double>& values) {
    return values.size() > 1 &&
           std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
  };
  if (constant(a) && constant(b)) {
    comparison->notes.push_back(
        "the runs of each side took the same time to the last digit: was it measured?");
  }
}

}  // namespace

void CheckConditions(const Samples& samples, const std::vector<double>& logarithms_a,
                     const std::vector<double>& logarithms_b, const FasterOptions& options,
                     Comparison* comparison) {
  CheckSameConditions(samples, options, comparison);
  CheckTurns(samples, comparison);
  CheckDrift(samples, logarithms_a, logarithms_b, options, comparison);
  CheckModes("A", logarithms_a, options, comparison);
  CheckModes("B", logarithms_b, options, comparison);
  CheckLoad(samples, comparison);
  CheckSpread(logarithms_a, logarithms_b, comparison);
}

}  // namespace ott::faster
