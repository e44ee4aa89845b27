#include "ott/tests/shapes/told.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/saved/what_if_text.h"
#include "ott/questions/slow/cluster_table.h"
#include "ott/questions/slow/slow_answer.h"
#include "ott/questions/waiting/waiting_answer.h"

namespace ott::shapes {
namespace {

// More than a tenth off, where a hundredth of an iteration says nothing.
constexpr double kWrongShare = 0.1;
constexpr double kWrongOfIteration = 0.01;
// A share of an iteration: by so much all wait longer than mending saves, as the next to last rank is late by
// noise.
constexpr double kMaxNoise = 0.04;

void FindNamed(Told& told) {
  std::set<int> named;
  if (told.stats.has_straggler()) named.insert(told.stats.straggler().rank());
  for (const SlowMeasurement& slow : told.stats.slow_measurements()) named.insert(slow.rank());
  for (const ArrivalStats& arrivals : told.stats.arrivals()) {
    if (arrivals.has_hold_up()) named.insert(arrivals.hold_up().rank());
    for (const Hiccups& hiccups : arrivals.hiccups()) {
      if (!hiccups.is_pause()) named.insert(hiccups.rank());
    }
  }
  told.named_by_table.assign(named.begin(), named.end());
  named.insert(told.what_if.blamed_ranks().begin(), told.what_if.blamed_ranks().end());
  told.named.assign(named.begin(), named.end());
}

// For how long all wait for a rank, as a share of an iteration, by the table; 0 if it names none.
double LongestWait(const ClusterStats& stats) {
  double most = 0;
  const double seconds = stats.iteration().mean() * static_cast<double>(stats.max_measured_iters());
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    most = std::max(most, arrivals.hold_up().share_of_iteration());
    for (const Hiccups& hiccups : arrivals.hiccups()) {
      if (!hiccups.is_pause()) most = std::max(most, hiccups.seconds() / seconds);
    }
  }
  return most;
}

bool IsOff(double said, double truth, double iteration) {
  const double off = std::abs(said - truth);
  return off > kWrongShare * std::abs(truth) && off > kWrongOfIteration * iteration;
}

// Returns the seconds of a mean iteration of the run.
double TruthOf(const Told& told) { return MeanIteration(told.ends, 0, told.ends.size() - 1); }

bool IsFalse(const Shape& shape, int num_ranks, int planted, const Told& told) {
  if (shape.cannot_be_told) return told.what_if.verdict() == WHAT_IF_EVEN || !told.named.empty();
  if (planted < 0 && told.what_if.verdict() == WHAT_IF_UNEVEN && shape.noise < 0.1 && !shape.is_uneven) {
    return true;
  }
  return std::any_of(told.named.begin(), told.named.end(),
                     [&](int named) { return !shape.IsPlanted(named, num_ranks, planted); });
}

bool IsMissed(const Shape& shape, double loss, const Told& told) {
  return told.named.empty() || (told.what_if.verdict() == WHAT_IF_EVEN && loss > 0.05 * TruthOf(told)) ||
         (told.named_by_table.empty() && !shape.is_of_replay_alone);
}

bool IsWrong(const Shape& shape, int planted, const Loss& all_loss, const Told& told) {
  const double loss = all_loss.of_run;
  const double iteration = told.what_if.measured_seconds();
  const double truth = TruthOf(told);
  if (iteration > 0) {
    // Of those that were kept.
    const double of_kept = MeanIteration(told.ends, static_cast<size_t>(told.what_if.first_step()),
                                         static_cast<size_t>(told.what_if.last_step()));
    if (IsOff(iteration, of_kept, of_kept)) return true;
  }
  for (const ArrivalStats& arrivals : told.stats.arrivals()) {
    // There are four gathers.
    const double at_most = arrivals.hold_up().recent() ? all_loss.of_last_quarter : loss;
    if (arrivals.hold_up().seconds_per_iteration() > at_most + kMaxNoise * truth) {
      return true;
    }
  }
  if (planted < 0) return false;
  const Straggler& straggler = told.stats.straggler();
  const double since = static_cast<double>(straggler.since_iteration()) / shape.num_iterations;
  if (told.stats.has_straggler() && std::abs(since - shape.late) > kWrongShare &&
      !(shape.moves > 0 && std::abs(since - shape.moves) <= kWrongShare)) {
    return true;
  }
  if (told.what_if.repairs().empty()) return false;
  const WhatIfPart& best = told.what_if.has_best_repairs_together() ? told.what_if.best_repairs_together()
                                                                    : told.what_if.repairs(0);
  // The answer says that it is a bound.
  const bool is_bound =
      std::any_of(told.what_if.notes().begin(), told.what_if.notes().end(),
                  [](const auto& note) { return note.find("saves more than is predicted") != note.npos; });
  const bool is_within = best.saved_low() * iteration <= loss && loss <= best.saved_high() * iteration;
  return IsOff(best.saved() * iteration, loss, truth) && !is_within &&
         !(is_bound && best.saved() * iteration < loss);
}

bool IsContradicted(const Told& told) {
  return (told.what_if.verdict() == WHAT_IF_EVEN || told.what_if.verdict() == WHAT_IF_UNEVEN) &&
         LongestWait(told.stats) > 1.2 * told.what_if.not_excluded() + kWrongOfIteration;
}

}  // namespace

double MeanIteration(const std::vector<double>& ends, size_t first, size_t last) {
  const double begin = first > 0 ? ends.at(first - 1) : 0;
  return (ends.at(last) - begin) / static_cast<double>(last - first + 1);
}

Told Ask(ClusterStats stats, const saved::ReplayJob* job, std::vector<double> ends) {
  Told told;
  told.stats = std::move(stats);
  told.ends = std::move(ends);
  if (job != nullptr) told.what_if = saved::AnswerWhatIf(*job);
  FindNamed(told);
  told.text = absl::StrCat(
      FormatClusterTable(told.stats),
      FormatSentences({slow::AnswerSlow(told.stats), waiting::AnswerWaiting(told.stats, true, true)}),
      job != nullptr ? saved::FormatWhatIf(told.what_if) : "no iterations\n");
  return told;
}

void Rates::Add(const Shape& shape, int num_ranks, int planted, const Loss& loss, const Told& told,
                const std::string& name) {
  std::string why;
  const auto count = [&](bool is_so, const char* word, int& number) {
    if (!is_so) return;
    ++number;
    absl::StrAppend(&why, word, " ");
  };
  const bool is_false = IsFalse(shape, num_ranks, planted, told);
  count(is_false, "false", num_false);
  count(planted >= 0 && !is_false && IsMissed(shape, loss.of_run, told), "missed", num_missed);
  count(!shape.cannot_be_told && IsWrong(shape, planted, loss, told), "wrong", num_wrong);
  count(IsContradicted(told), "contradicted", num_contradicted);
  ++num_runs;
  const bool is_worse = is_false && first.find(": false") == std::string::npos;
  if (why.empty() || (!first.empty() && !is_worse)) return;
  first = absl::StrCat(shape.name, ", ", num_ranks, " ranks, ", name, ", planted on ", planted, ": ", why,
                       "\na mean iteration takes ", TruthOf(told) * 1e3, " ms, of which ", loss.of_run * 1e3,
                       " are planted; named: ", absl::StrJoin(told.named, ", "), "\n", told.text);
}

}  // namespace ott::shapes
