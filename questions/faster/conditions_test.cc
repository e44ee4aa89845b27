// Compares what is said about the conditions of runs with its definition.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/modes.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/report.h"
#include "ott/questions/faster/samples_for_test.h"

namespace ott::faster {
namespace {

// A condition that more than a quarter of one side's runs do not share with those of the other voids the
// answer, of runs in turn one that none share; one that differs is noted.
TEST(Conditions, ThatDifferAreVoidOrNotedByTheValuesOfBothSides) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Chance chance(seed);
    const bool in_turn = chance.Coin();
    Samples samples = MakeSamples(chance, 6, 0.5, 2);
    if (in_turn) RunInBlocks(&samples);
    if (!in_turn) samples.a.resize(4 + chance.Below(3));
    if (!in_turn) samples.b.resize(4 + chance.Below(3));
    const double num_runs[] = {static_cast<double>(samples.a.size()), static_cast<double>(samples.b.size())};
    std::map<std::string, std::map<std::string, int>> values[2];
    FasterOptions options;
    if (chance.Coin()) options.accepted = {"CPU"};
    for (const char* name : {"CPU", "machine"}) {
      for (const int side : {0, 1}) {
        if (chance.Below(5) == 0) continue;
        const size_t first = chance.Below(2), size = 1 + chance.Below(5);
        for (Process& process : side == 0 ? samples.a : samples.b) {
          const std::string value = absl::StrCat("v", first + chance.Below(size));
          process.conditions[name] = value;
          ++values[side][name][value];
        }
      }
    }
    std::vector<std::string> voids, notes;
    for (const auto& [name, a] : values[0]) {
      if (values[1].count(name) == 0) continue;
      const std::map<std::string, int>& b = values[1][name];
      if (a.size() == 1 && b.size() == 1 && a.begin()->first == b.begin()->first) continue;
      double apart = 0;
      for (const auto& [value, runs] : a)
        apart += std::max(0.0, runs / num_runs[0] - (b.count(value) ? b.at(value) / num_runs[1] : 0));
      // The counts tell the sides apart if both have some value.
      const bool is_disjoint = apart > 1 - 1e-9, is_apart = in_turn ? is_disjoint : apart > 0.25 + 1e-9;
      const auto list = [with_counts = is_apart && !is_disjoint](const std::map<std::string, int>& of) {
        std::vector<std::string> listed;
        for (const auto& [value, runs] : of)
          listed.push_back(with_counts ? absl::StrCat(value, " (", runs, runs == 1 ? " run)" : " runs)")
                                       : value);
        if (listed.size() > 3)
          listed = {listed[0], listed[1], listed[2], absl::StrCat(listed.size() - 3, " more")};
        return absl::StrJoin(listed, ", ");
      };
      const std::string text = absl::StrCat(name, " of A: ", list(a), "; of B: ", list(b));
      const bool is_void = is_apart && options.accepted.count(name) == 0;
      (is_void ? voids : notes)
          .push_back(is_void ? absl::StrCat(text, ": that may be the difference; --accept ", name,
                                            " compares them nevertheless")
                             : text);
    }
    const Comparison comparison = MustCompare(samples, options);
    EXPECT_EQ(comparison.voids, voids) << seed;
    EXPECT_EQ(comparison.notes, notes) << seed;
    const auto verdict = voids.empty() ? AbResult::FASTER : AbResult::CANNOT_TELL;
    EXPECT_EQ(comparison.answer.verdict, verdict) << seed;
    EXPECT_EQ(comparison.measurements.at(0).verdict, verdict) << seed;
  }
}

// Compares the notes on a session, such as load and drift, with their definitions.
TEST(Conditions, OfTheSessionAreNoted) {
  constexpr char kTurns[] = "all runs of ", kDrift[] = "the machine drifted", kModes[] = "are of two kinds",
                 kLoad[] = "other programs kept", kUnequal[] = "unequal load",
                 kSame[] = "took the same time to the last digit";
  std::map<std::string, int> seen;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    Chance chance(seed);
    const size_t runs = chance.Coin() ? 4 : 1 + chance.Below(8);  // drifts take four
    Samples samples = MakeSamples(chance, runs, 1);
    const bool in_turn = chance.Below(4) == 0 && runs % 2 == 0;
    if (in_turn) RunInBlocks(&samples);
    const bool all_started = chance.Below(4) > 0, apart = chance.Below(3) == 0;
    const bool all_constant = chance.Below(6) == 0;
    FasterOptions options;
    options.margin = std::vector<double>{0, 0.01, 0.01, 0.5}[chance.Below(4)];
    const bool constant[] = {all_constant || chance.Below(15) == 0, all_constant || chance.Below(15) == 0};
    const double growth = std::vector<double>{0.02, -0.02, 0}[chance.Below(3)];
    const double step = chance.Below(4) == 0 ? 1.2 : 1;  // of the second half
    const double load[] = {chance.Coin() ? 0.02 : 1, std::vector<double>{0.05, 1.05, 1.5}[chance.Below(3)]};
    std::vector<double> logarithms[2], loads[2], starts[2];
    for (const size_t side : {0, 1}) {
      for (size_t i = 0; i < runs; ++i) {
        Process& process = (side == 0 ? samples.a : samples.b)[i];
        const size_t turn = (i + runs / 2) % runs;
        const double start = static_cast<double>(2 * turn + side) + (apart && side == seed % 2 ? 100 : 0);
        if (all_started || chance.Below(8) > 0) process.started = start;
        if (process.started.has_value()) starts[side].push_back(start);
        double& seconds = process.measurements[0].seconds[0];
        seconds *= (1 + growth * static_cast<double>(turn)) * (turn < runs / 2 ? 1 : step);
        if (chance.Below(9) == 0) seconds *= 1.3;
        if (constant[side]) seconds = 0.1;
        logarithms[side].push_back(std::log(seconds));
        if (chance.Below(5) == 0) continue;
        process.cpus_of_others = load[side] + 0.01 * chance.Number();
        loads[side].push_back(*process.cpus_of_others);
      }
    }
    std::vector<std::string> expected;
    const bool know_starts = starts[0].size() == runs && starts[1].size() == runs;
    if (know_starts) {
      for (const size_t side : {0, 1}) {
        const bool is_before = *std::max_element(starts[side].begin(), starts[side].end()) <
                               *std::min_element(starts[1 - side].begin(), starts[1 - side].end());
        if (is_before)
          expected.push_back(absl::StrCat(
              kTurns, side == 0 ? "A came before those of B" : "B came before those of A",
              ": what the machine did meanwhile looks like a difference; `ott ab -- A --- B` runs "
              "them in turn"));
      }
    }
    if (know_starts && runs >= 4) {
      std::vector<std::pair<double, double>> residuals;
      for (const size_t side : {0, 1}) {
        for (size_t i = 0; i < runs; ++i)
          residuals.emplace_back(starts[side][i], logarithms[side][i] - Mean(logarithms[side]));
      }
      std::sort(residuals.begin(), residuals.end());
      std::vector<double> halves[2];
      for (size_t i = 0; i < residuals.size(); ++i) halves[i < runs ? 0 : 1].push_back(residuals[i].second);
      const Estimate drift = WelchDifference(halves[0], halves[1]);
      if (drift.PValue() < 0.001 && std::abs(drift.value) > std::log1p(options.margin)) {
        expected.push_back(
            absl::StrFormat("%s: runs of either side took %+.1f %% in the second half of the session%s",
                            kDrift, std::expm1(drift.value) * 100,
                            in_turn ? "; as A and B were run in turn, that is taken out" : ""));
      }
    }
    for (const size_t side : {0, 1}) {
      const auto modes = FindTwoModes(logarithms[side]);
      EXPECT_FALSE(constant[side] && modes.has_value());
      if (!modes.has_value() || modes->high - modes->low <= std::log1p(options.margin)) continue;
      expected.push_back(absl::StrFormat(
          "the runs of %s %s: %d near %s and %d near %s; what makes them so may weigh more than the change",
          side == 0 ? "A" : "B", kModes, modes->num_low, FormatSeconds(std::exp(modes->low)), modes->num_high,
          FormatSeconds(std::exp(modes->high))));
    }
    const bool know_loads = !loads[0].empty() && !loads[1].empty();
    if (know_loads && (Mean(loads[0]) >= 0.1 || Mean(loads[1]) >= 0.1)) {
      const bool unequal = loads[0].size() > 1 && loads[1].size() > 1 &&
                           WelchDifference(loads[0], loads[1]).PValue() < 0.001 &&
                           std::abs(Mean(loads[0]) - Mean(loads[1])) > 0.1;
      expected.push_back(absl::StrFormat("%s %.1f CPUs busy while A ran, and %.1f while B ran%s", kLoad,
                                         Mean(loads[0]), Mean(loads[1]),
                                         unequal ? ": unequal load may be the difference" : ""));
    }
    if (constant[0] && constant[1] && runs > 1)
      expected.push_back(absl::StrCat("the runs of each side ", kSame, ": was it measured?"));
    const std::vector<std::string> notes = MustCompare(samples, options).notes;
    EXPECT_EQ(notes, expected) << seed;
    for (const std::string& note : notes) {
      for (const char* kind : {kTurns, kDrift, kModes, kLoad, kUnequal, kSame})
        seen[kind] += note.find(kind) != std::string::npos;
    }
  }
  for (const auto& [kind, count] : seen) EXPECT_GT(count, 5) << kind;
  EXPECT_EQ(seen.size(), 6u);
}

}  // namespace
}  // namespace ott::faster
