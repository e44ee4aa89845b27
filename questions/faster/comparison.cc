#include "ott/questions/faster/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/block_shift.h"
#include "ott/core/statistics/group_sequential.h"
#include "ott/core/statistics/interval.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/modes.h"
#include "ott/core/statistics/warm_up.h"
#include "questions/faster/conditions.h"

namespace ott::faster {
namespace {

// Beyond it nobody runs a program.
constexpr size_t kMostRuns = 100'000;
// A block has so many runs of each side.
constexpr size_t kRunsOfBlock = 2;

const MeasurementSamples* Find(const Process& process, const std::string& name) {
  for (const MeasurementSamples& measurement : process.measurements) {
    if (measurement.name == name) return &measurement;
  }
  return nullptr;
}

bool AllHave(const Samples& samples, const std::string& name) {
  const auto has = [&](const Process& process) { return Find(process, name) != nullptr; };
  return std::all_of(samples.a.begin(), samples.a.end(), has) &&
         std::all_of(samples.b.begin(), samples.b.end(), has);
}

// The measurements that all processes have, in the order of the first; notes tell of the others.
std::vector<std::string> CommonMeasurements(const Samples& samples, std::vector<std::string>* notes) {
  std::vector<std::string> common;
  std::set<std::string> others;
  for (const auto* side : {&samples.a, &samples.b}) {
    for (const Process& process : *side) {
      for (const MeasurementSamples& measurement : process.measurements) others.insert(measurement.name);
    }
  }
  for (const MeasurementSamples& measurement : samples.a.front().measurements) {
    if (!AllHave(samples, measurement.name)) continue;
    common.push_back(measurement.name);
    others.erase(measurement.name);
  }
  for (const std::string& name : others) {
    notes->push_back(
        absl::StrCat("\"", EscapeControlCharacters(name), "\" is not in all runs, and left out"));
  }
  return common;
}

absl::Status CheckIterations(const Samples& samples, const std::string& measurement) {
  const auto count_of = [&measurement](const Process& process) {
    const MeasurementSamples& of_process = *Find(process, measurement);
    return of_process.num_iterations.value_or(of_process.seconds.size());
  };
  const Process& first = samples.a.front();
  const size_t expected = count_of(first);
  for (const auto* side : {&samples.a, &samples.b}) {
    for (const Process& process : *side) {
      const size_t count = count_of(process);
      if (count == expected) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(first.name, " has ", expected, " iterations of \"",
                       EscapeControlCharacters(measurement), "\" and ", process.name, " has ", count,
                       ": was one cut short? --accept iterations compares them nevertheless"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ProcessLocation> Locate(const Process& process, const MeasurementSamples& measurement,
                                       const FasterOptions& options) {
  ProcessLocation location;
  location.num_warm_up = options.warm_up.value_or(WarmUpLength(measurement.seconds));
  if (location.num_warm_up >= measurement.seconds.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        process.name, ": only ", measurement.seconds.size(), " iterations of \"",
        EscapeControlCharacters(measurement.name), "\", and --warmup leaves ", location.num_warm_up, " out"));
  }
  const std::vector<double> settled(
      measurement.seconds.begin() + static_cast<std::ptrdiff_t>(location.num_warm_up),
      measurement.seconds.end());
  location.seconds = options.location == Location::kMedian ? Median(settled) : Mean(settled);
  if (!std::isfinite(location.seconds)) {
    return absl::InvalidArgumentError(absl::StrCat(
        process.name, ": the mean of \"", EscapeControlCharacters(measurement.name), "\" is too large"));
  }
  return location;
}

struct LocatedSides {
  std::vector<ProcessLocation> a;
  std::vector<ProcessLocation> b;
};

absl::StatusOr<std::vector<ProcessLocation>> LocateSide(const std::vector<Process>& side,
                                                        const std::string& name,
                                                        const FasterOptions& options) {
  std::vector<ProcessLocation> located;
  for (const Process& process : side) {
    OTT_ASSIGN_OR_RETURN(const ProcessLocation location, Locate(process, *Find(process, name), options));
    located.push_back(location);
  }
  return located;
}

absl::StatusOr<LocatedSides> LocateAll(const Samples& samples, const std::string& name,
                                       const FasterOptions& options) {
  LocatedSides located;
  OTT_ASSIGN_OR_RETURN(located.a, LocateSide(samples.a, name, options));
  OTT_ASSIGN_OR_RETURN(located.b, LocateSide(samples.b, name, options));
  return located;
}

std::vector<double> Logarithms(const std::vector<ProcessLocation>& locations) {
  std::vector<double> logarithms;
  for (const ProcessLocation& location : locations) logarithms.push_back(std::log(location.seconds));
  return logarithms;
}

double MeanShare(const std::vector<Process>& side, const std::string& name) {
  double sum = 0;
  for (const Process& process : side) sum += Find(process, name)->share_of_iterations;
  return sum / static_cast<double>(side.size());
}

bool InBlocks(const Samples& samples) {
  const auto has_block = [](const Process& process) { return process.block.has_value(); };
  return std::all_of(samples.a.begin(), samples.a.end(), has_block) &&
         std::all_of(samples.b.begin(), samples.b.end(), has_block);
}

// ln(B / A).
struct Difference {
  double value = 0;
  // nullopt: there are too few processes for an answer of so small an error.
  std::optional<Interval> interval;
  // For the number of runs that would be needed.
  Estimate spread;
};

// Processes of which nothing else is known. The fewest are those that two modes of one program rarely
// separate.
Difference DifferenceOfGroups(const std::vector<double>& a, const std::vector<double>& b, double error) {
  Difference difference;
  difference.spread = CautiousDifference(a, b);
  difference.value = difference.spread.value;
  if (std::min(a.size(), b.size()) >= FewestRuns(error))
    difference.interval = difference.spread.IntervalAt(error);
  return difference;
}

// The error that the interval of each look, after each block, is to be made at; nullopt: so few blocks cannot
// tell.
using Looks = std::vector<std::optional<double>>;

Looks PlanLooks(size_t max_blocks, double error) {
  Looks looks(max_blocks);
  std::vector<double> information;
  for (size_t i = 0; i < max_blocks; ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(max_blocks);
    // Once it is true, it stays so.
    if (SmallestErrorOfBlocks(i + 1, kRunsOfBlock) <= error * SpentError(share)) information.push_back(share);
  }
  const std::vector<double> levels = GroupSequentialLevels(information, error);
  std::copy(levels.begin(), levels.end(), looks.end() - static_cast<std::ptrdiff_t>(levels.size()));
  return looks;
}

// The same, planned once in a process.
const Looks& LooksOf(size_t max_blocks, double error) {
  static std::mutex mutex;
  static std::map<std::pair<size_t, double>, Looks>& known = *new std::map<std::pair<size_t, double>, Looks>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [found, is_new] = known.try_emplace({max_blocks, error});
  if (is_new) found->second = PlanLooks(max_blocks, error);
  return found->second;
}

// Processes that were run in turn.
Difference DifferenceInTurn(const Samples& samples, const std::vector<double>& a,
                            const std::vector<double>& b, double error, size_t max_runs) {
  std::vector<Block> blocks;
  const auto add = [&](const std::vector<Process>& side, const std::vector<double>& values, auto group) {
    for (size_t i = 0; i < side.size(); ++i) {
      blocks.resize(std::max(blocks.size(), *side[i].block + 1));
      (blocks[*side[i].block].*group).push_back(values[i]);
    }
  };
  add(samples.a, a, &Block::a);
  add(samples.b, b, &Block::b);
  const BlockShift shift(blocks);
  Difference difference;
  difference.value = shift.value();
  const std::optional<double> level =
      LooksOf(std::max(max_runs / kRunsOfBlock, blocks.size()), error)[blocks.size() - 1];
  if (level.has_value()) difference.interval = shift.IntervalAt(*level);
  // The spread is that of a normal variable: one standard error is half the interval of 68 %, which is
  // infinite after a single block.
  const Interval middle = shift.IntervalAt(0.32);
  difference.spread = {difference.value, (middle.high - middle.low) / 2, 1e6};
  return difference;
}

// So that the half width of the interval is the margin, if the samples go on varying as they do.
std::optional<size_t> RunsNeeded(const Difference& difference, size_t runs, size_t fewest, double error,
                                 double margin) {
  const double wanted = std::log1p(margin);
  if (!(wanted > 0)) return std::nullopt;
  if (!std::isfinite(difference.spread.standard_error)) return fewest;
  // The interval may be wider than that of the spread: who looks several times spends of the error each time.
  const Interval normal = difference.spread.IntervalAt(error);
  const double normal_width = normal.high - normal.low;
  const double wider =
      difference.interval.has_value() && normal_width > 0
          ? std::max(1.0, (difference.interval->high - difference.interval->low) / normal_width)
          : 1;
  const auto wide = [&](size_t needed) {
    Estimate grown = difference.spread;
    const double growth = static_cast<double>(needed) / static_cast<double>(runs);
    grown.standard_error /= std::sqrt(growth);
    grown.degrees_of_freedom *= growth;
    return wider * (grown.IntervalAt(error).high - grown.value) > wanted;
  };
  // So many could not.
  size_t low = std::max(runs + 1, fewest), high = low;
  while (wide(high)) {
    if (high > kMostRuns) return std::nullopt;
    low = high;
    high *= 2;
  }
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (wide(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return high;
}

AbResult::Verdict VerdictOf(const Interval& interval, double margin) {
  const double same = std::log1p(margin);
  if (interval.low > -same && interval.high < same) return AbResult::SAME;
  if (interval.high < 0) return AbResult::FASTER;
  if (interval.low > 0) return AbResult::SLOWER;
  return AbResult::CANNOT_TELL;
}

// error: of this measurement alone.
Result CompareMeasurement(const Samples& samples, const std::string& name, const LocatedSides& located,
                          const FasterOptions& options, double error) {
  const std::vector<double> a = Logarithms(located.a), b = Logarithms(located.b);
  Result result;
  result.name = name;
  result.error = options.error;
  const bool in_turn = InBlocks(samples);
  // The ratio below is taken from these, as nearly as one number of each side can say it.
  result.seconds_a = std::exp(in_turn ? Median(a) : Mean(a));
  result.seconds_b = std::exp(in_turn ? Median(b) : Mean(b));
  result.ratio = result.seconds_b / result.seconds_a;
  const double share_a = MeanShare(samples.a, name), share_b = MeanShare(samples.b, name);
  result.seconds_added = result.seconds_b * share_b - result.seconds_a * share_a;
  if (a.size() < 2 || b.size() < 2) {
    result.runs_needed = FewestRuns(error);
    return result;
  }
  const Difference difference =
      in_turn ? DifferenceInTurn(samples, a, b, error, options.max_runs) : DifferenceOfGroups(a, b, error);
  result.ratio = std::exp(difference.value);
  // Medians of sides and of their differences are not quite the same; the change is what is judged, so both
  // sides give way.
  const double middle = std::sqrt(result.seconds_a * result.seconds_b);
  result.seconds_a = middle / std::sqrt(*result.ratio);
  result.seconds_b = middle * std::sqrt(*result.ratio);
  result.seconds_added = result.seconds_b * share_b - result.seconds_a * share_a;
  if (difference.interval.has_value()) {
    result.low = std::exp(difference.interval->low);
    result.high = std::exp(difference.interval->high);
    result.verdict = VerdictOf(*difference.interval, options.margin);
  }
  if (result.verdict == AbResult::CANNOT_TELL) {
    const size_t fewest = in_turn ? FewestRunsInTurn(error) : FewestRuns(error);
    result.runs_needed = RunsNeeded(difference, std::min(a.size(), b.size()), fewest, error, options.margin);
    // They come in blocks.
    if (in_turn && result.runs_needed.has_value()) *result.runs_needed += *result.runs_needed % kRunsOfBlock;
  }
  return result;
}

// Returns the answer if all measurements count alike.
Result Worst(const std::vector<Result>& results) {
  Result worst;
  worst.error = results.front().error;
  for (const AbResult::Verdict verdict :
       {AbResult::SAME, AbResult::FASTER, AbResult::CANNOT_TELL, AbResult::SLOWER}) {
    for (const Result& result : results) {
      if (result.verdict == verdict) worst.verdict = verdict;
      if (result.runs_needed.has_value()) {
        worst.runs_needed = std::max(worst.runs_needed.value_or(0), *result.runs_needed);
      }
    }
  }
  if (worst.verdict != AbResult::CANNOT_TELL) worst.runs_needed.reset();
  return worst;
}

// Medians leave out what happens in less than half of the iterations; means do not.
std::optional<std::string> NoteOnMeans(const Samples& samples, const std::string& name,
                                       const FasterOptions& options, const Result& by_median, double error) {
  FasterOptions of_means = options;
  of_means.location = Location::kMean;
  const absl::StatusOr<LocatedSides> located = LocateAll(samples, name, of_means);
  if (!located.ok()) return std::nullopt;
  const Result by_mean = CompareMeasurement(samples, name, *located, of_means, error);
  if (by_mean.verdict != AbResult::FASTER && by_mean.verdict != AbResult::SLOWER) return std::nullopt;
  if (*by_mean.low <= *by_median.high && *by_mean.high >= *by_median.low) return std::nullopt;
  return absl::StrFormat(
      "the mean of the iterations changed by %+.1f %%, another amount than their median: some iterations "
      "changed more than most; --location mean judges that",
      (*by_mean.ratio - 1) * 100);
}

void NoteWarmUp(const Samples& samples, const std::string& name, const FasterOptions& options,
                const LocatedSides& located, std::vector<std::string>* notes) {
  if (options.warm_up.has_value()) return;
  size_t unsettled = 0, all = 0;
  const auto count = [&](const std::vector<Process>& side, const std::vector<ProcessLocation>& locations) {
    for (size_t i = 0; i < side.size(); ++i) {
      const size_t iterations = Find(side[i], name)->seconds.size();
      ++all;
      unsettled += iterations >= 4 && 10 * locations[i].num_warm_up >= 4 * iterations;
    }
  };
  count(samples.a, located.a);
  count(samples.b, located.b);
  if (2 * unsettled > all) {
    notes->push_back(absl::StrCat("\"", EscapeControlCharacters(name), "\" had not settled half-way in ",
                                  unsettled, " of ", all, " runs: longer runs would say more"));
  }
}

}  // namespace

const char* Name(AbResult::Verdict verdict) {
  switch (verdict) {
    case AbResult::FASTER:
      return "faster";
    case AbResult::SLOWER:
      return "slower";
    case AbResult::SAME:
      return "same";
    default:
      break;
  }
  return "cannot tell";
}

size_t FewestRuns(double error) {
  size_t runs = 2;
  while (SeparationProbability(runs) > error) ++runs;
  return runs;
}

size_t FewestRunsInTurn(double error) {
  size_t blocks = 1;
  while (SmallestErrorOfBlocks(blocks, kRunsOfBlock) > error) ++blocks;
  return blocks * kRunsOfBlock;
}

absl::StatusOr<Comparison> Compare(const Samples& samples, const FasterOptions& options) {
  if (samples.a.empty() || samples.b.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no runs of ", samples.a.empty() ? "A" : "B", ": there is nothing to compare with"));
  }
  Comparison comparison;
  comparison.num_a = samples.a.size();
  comparison.num_b = samples.b.size();
  comparison.margin = options.margin;
  comparison.notes = samples.notes;
  std::vector<std::string> names = CommonMeasurements(samples, &comparison.notes);
  if (names.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no measurement is in all runs of A and B: ", samples.a[0].name, " and ",
                     samples.b[0].name, " have none in common"));
  }
  std::string primary = names.size() == 1 ? names.front() : samples.primary;
  if (const auto found = std::find(names.begin(), names.end(), primary); found == names.end()) {
    primary.clear();
  } else {
    names.erase(found);
  }
  comparison.plotted = primary.empty() ? names.front() : primary;
  if (samples.iterations_must_match && options.accepted.count("iterations") == 0) {
    OTT_RETURN_IF_ERROR(CheckIterations(samples, comparison.plotted));
  }
  if (!primary.empty()) {
    OTT_ASSIGN_OR_RETURN(const LocatedSides located, LocateAll(samples, primary, options));
    comparison.answer = CompareMeasurement(samples, primary, located, options, options.error);
    if (auto note = NoteOnMeans(samples, primary, options, comparison.answer, options.error)) {
      comparison.notes.push_back(*std::move(note));
    }
  }
  // The others are one family: none of them is judged wrongly with more than the error of one.
  for (const std::string& name : names) {
    OTT_ASSIGN_OR_RETURN(const LocatedSides located, LocateAll(samples, name, options));
    comparison.measurements.push_back(CompareMeasurement(samples, name, located, options,
                                                         options.error / static_cast<double>(names.size())));
  }
  if (primary.empty()) comparison.answer = Worst(comparison.measurements);
  OTT_ASSIGN_OR_RETURN(const LocatedSides plotted, LocateAll(samples, comparison.plotted, options));
  comparison.locations_a = plotted.a;
  comparison.locations_b = plotted.b;
  NoteWarmUp(samples, comparison.plotted, options, plotted, &comparison.notes);
  CheckConditions(samples, Logarithms(plotted.a), Logarithms(plotted.b), options, &comparison);
  if (!comparison.voids.empty()) {
    comparison.answer.verdict = AbResult::CANNOT_TELL;
    for (Result& result : comparison.measurements) result.verdict = AbResult::CANNOT_TELL;
  }
  return comparison;
}

}  // namespace ott::faster
