#include "ott/core/statistics/persistent_excess.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "ott/core/base/check.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/policy.h"

namespace ott {
namespace {

// Variance of a median of normal samples over that of their mean, and what a median absolute deviation is
// worth in degrees of freedom, of those of a standard deviation.
constexpr double kMedianVariance = 1.5707963267948966;
constexpr double kMadEfficiency = 0.37;
// The whole run and its parts. How the whole run is compared is chosen by how much that varies, not by the
// excess, so it counts once.
constexpr double kTestsOfPairs = 2;

// A variance that was estimated, and by how much.
struct Variance {
  double value = 0;
  double degrees_of_freedom = 1;
};

// Satterthwaite (1946).
Estimate EstimateOf(double value, const std::vector<Variance>& parts) {
  double sum = 0;
  double weights = 0;
  for (const Variance& part : parts) {
    sum += part.value;
    weights += part.value * part.value / part.degrees_of_freedom;
  }
  Estimate estimate;
  estimate.value = value;
  estimate.standard_error = std::sqrt(sum);
  estimate.degrees_of_freedom = weights > 0 ? sum * sum / weights : 1e6;
  return estimate;
}

// Blocks in a row.
struct Part {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

double MeanOf(const std::vector<double>& values, const Part& part) {
  double sum = 0;
  for (size_t i = part.begin; i < part.end; ++i) sum += values[i];
  return sum / static_cast<double>(part.size());
}

// The means of a part and of the rest, and how single values vary around them: as they are or in pairs, as
// for SteadyTimeRecorder, whichever is more. The blocks next to the part may be in it in part, and count in
// neither.
struct Fit {
  double inside = 0;
  double outside = 0;
  double num_outside = 0;
  Variance residual;
};

Fit FitPart(const std::vector<double>& values, const Part& part) {
  Fit fit;
  fit.inside = MeanOf(values, part);
  const auto is_inside = [&](size_t i) { return i >= part.begin && i < part.end; };
  const auto is_outside = [&](size_t i) { return i + 1 < part.begin || i > part.end; };
  for (size_t i = 0; i < values.size(); ++i) {
    if (!is_outside(i)) continue;
    fit.outside += values[i];
    ++fit.num_outside;
  }
  fit.outside /= fit.num_outside;  // is read only where there is an outside
  std::vector<double> residuals;
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_inside(i)) residuals.push_back(values[i] - fit.inside);
    if (is_outside(i)) residuals.push_back(values[i] - fit.outside);
  }
  const double num_means = fit.num_outside > 0 ? 2 : 1;
  double squares = 0;
  double squares_of_pairs = 0;
  for (size_t i = 0; i < residuals.size(); ++i) {
    squares += residuals[i] * residuals[i];
    if (i % 2 == 1) squares_of_pairs += std::pow(residuals[i] + residuals[i - 1], 2) / 2;
  }
  const double freedom = static_cast<double>(residuals.size()) - num_means;
  const double freedom_of_pairs = static_cast<double>(residuals.size() / 2) - num_means;
  fit.residual = {squares / freedom, freedom};
  const double of_pairs = squares_of_pairs / freedom_of_pairs;
  if (of_pairs <= fit.residual.value) return fit;
  // Too few pairs of a part are left to learn from how they vary, but not to be warned.
  fit.residual = {of_pairs, fit.num_outside > 0 ? freedom : freedom_of_pairs};
  return fit;
}

// Returns how much longer one of several processes takes than the median of the rest, block by block; empty
// if their blocks are not of the same iterations. as_shares: a block in which the others take longer than in
// the mean counts less, so that a share of the work is the same in all blocks.
std::vector<double> DifferencesOf(const std::vector<const SteadyTime*>& times, size_t which, bool as_shares) {
  int num_blocks = times[which]->num_blocks;
  for (const SteadyTime* const time : times) {
    if (time->block_iterations != times[which]->block_iterations) return {};
    num_blocks = std::min(num_blocks, time->num_blocks);
  }
  if (num_blocks < SteadyTimeRecorder::kMinBlocks) return {};
  std::vector<double> differences;
  std::vector<double> of_others;
  for (int block = 0; block < num_blocks; ++block) {
    std::vector<double> others;
    for (size_t i = 0; i < times.size(); ++i) {
      if (i != which) others.push_back(static_cast<double>(times[i]->blocks[block]));
    }
    of_others.push_back(Median(std::move(others)));
    differences.push_back(static_cast<double>(times[which]->blocks[block]) - of_others.back());
  }
  const double mean = Mean(of_others);
  for (size_t block = 0; as_shares && block < differences.size(); ++block) {
    if (of_others[block] > 0) differences[block] *= mean / of_others[block];
  }
  return differences;
}

// One process and the others.
class Comparison {
 public:
  Comparison(const std::vector<ProcessTime>& others, const ProcessTime& process, bool as_shares = false)
      : others_(others), process_(process) {
    std::vector<const SteadyTime*> times;
    for (const ProcessTime& other : others) times.push_back(&other.time);
    // With few others, the median of the rest of them would move with one.
    if (others.size() > 2) times.push_back(&process.time);
    // A process that is like the others varies as they do; one that happened to stay in one state looks
    // steadier.
    std::vector<double> residuals;
    for (size_t i = 0; others.size() > 1 && i < others.size(); ++i) {
      const std::vector<double> differences = DifferencesOf(times, i, as_shares);
      if (differences.empty()) break;
      residuals.push_back(FitPart(differences, {0, differences.size()}).residual.value);
    }
    // Another one of them may be slow, too, in a part.
    if (residuals.size() > 2) residuals.erase(std::max_element(residuals.begin(), residuals.end()));
    if (!residuals.empty()) residual_of_others_ = Mean(residuals);
    if (others.size() <= 2) times.push_back(&process.time);
    differences_ = DifferencesOf(times, others.size(), as_shares);
    std::vector<double> seconds;
    std::vector<double> cpu_seconds;
    std::vector<double> taken_shares;
    for (const ProcessTime& other : others) {
      seconds.push_back(other.time.seconds);
      cpu_seconds.push_back(other.cpu.cpu_seconds);
      taken_shares.push_back(other.cpu.taken_share);
      within_.value += other.time.standard_error * other.time.standard_error;
      within_.degrees_of_freedom += other.time.degrees_of_freedom;
    }
    within_.value /= static_cast<double>(others.size());
    of_others_ = Median(seconds);
    const double deviation = MedianAbsoluteDeviation(seconds);
    seen_ = std::max(0.0, deviation * deviation - within_.value);
    cpu_ = process.cpu;
    cpu_.cpu_seconds = std::min(Median(cpu_seconds), process.time.seconds);
    cpu_of_spread_ = cpu_;
    cpu_of_spread_.cpu_seconds =
        std::max(cpu_.cpu_seconds, std::min(process.cpu.cpu_seconds, process.time.seconds));
    cpu_of_spread_.taken_share = std::max(Median(taken_shares), cpu_.taken_share);
  }

  bool is_paired() const { return !differences_.empty(); }

  Excess OfRunInPairs() const { return OfPart({0, differences_.size()}); }

  Excess OfRun() const {
    Excess excess;
    excess.of_others = of_others_;
    excess.seconds = process_.time.seconds - of_others_;
    excess.seconds_of_run = excess.seconds;
    const double own_variance = process_.time.standard_error * process_.time.standard_error;
    Judge({{std::max(own_variance, within_.value), process_.time.degrees_of_freedom},
           {OfMedian() * within_.value, within_.degrees_of_freedom}},
          Slowdown(cpu_, excess.seconds, {0, differences_.size()}), 1, excess);
    return excess;
  }

  // Returns the most suspicious of the parts that have an excess which the rest has not; nullopt if there are
  // none. A half of their error is for those that last to the end.
  std::optional<Excess> OfMostSuspiciousPart() const {
    const size_t size = differences_.size();
    std::vector<Part> parts;
    for (size_t begin = 0; begin < size; ++begin) {
      for (size_t end = begin + kMinPart; end <= size; ++end) {
        // Beyond an end, some block shows that it is one.
        if (begin == 1 || end + 1 == size) continue;
        const size_t num_outside = (begin > 0 ? begin - 1 : 0) + (end < size ? size - end - 1 : 0);
        if (num_outside >= kMinRest) parts.push_back({begin, end});
      }
    }
    const auto num_to_end = static_cast<double>(
        std::count_if(parts.begin(), parts.end(), [size](const Part& part) { return part.end == size; }));
    const auto num_parts = static_cast<double>(parts.size());
    std::optional<Excess> most;
    for (const Part& part : parts) {
      if (!IsChange(part, num_parts)) continue;
      Excess excess = OfPart(part);
      excess.num_tests = 2 * kTestsOfPairs * (part.end == size ? num_to_end : num_parts - num_to_end);
      if (!most || excess.PValue() < most->PValue()) most = excess;
    }
    return most;
  }

 private:
  // In blocks.
  static constexpr size_t kMinPart = 4;
  static constexpr size_t kMinRest = 2;

  // Variance of a median of normal samples over that of one. Of two the median is the mean.
  double OfMedian() const {
    return (others_.size() > 2 ? kMedianVariance : 1) / static_cast<double>(others_.size());
  }

  bool IsChange(const Part& part, double num_parts) const {
    const Fit fit = FitPart(differences_, part);
    if (fit.inside <= 2 * fit.outside) return false;
    const double variance = fit.residual.value * (1 / static_cast<double>(part.size()) + 1 / fit.num_outside);
    return fit.inside - fit.outside >=
           StudentTQuantile(1 - kPartError / num_parts, fit.residual.degrees_of_freedom) *
               std::sqrt(variance);
  }

  Excess OfPart(const Part& part) const {
    const Fit fit = FitPart(differences_, part);
    const auto size = static_cast<double>(part.size());
    const double share = size / static_cast<double>(differences_.size());
    Excess excess;
    excess.seconds = fit.inside;
    excess.seconds_of_run = MeanOf(differences_, {0, differences_.size()});
    excess.of_others = of_others_;
    CpuShare cpu = cpu_;
    if (share < 1) {
      cpu.watched_seconds *= share;
      excess.of_others = OthersIn(part);
      std::tie(excess.begin, excess.end) = EndsOf(part, fit);
    }
    Judge({{std::max(fit.residual.value, residual_of_others_) / size, fit.residual.degrees_of_freedom}},
          Slowdown(cpu, fit.inside, part), share, excess);
    return excess;
  }

  // Returns what one slowdown makes of the excess of a part: no more than the blocks that it can be in.
  double Slowdown(const CpuShare& cpu, double excess, const Part& part) const {
    const double most = SecondsOfOneSlowdown(cpu);
    const double seconds_of_block = process_.cpu.watched_seconds *
                                    static_cast<double>(process_.time.block_iterations) /
                                    static_cast<double>(std::max<int64_t>(process_.time.count, 1));
    const double num_blocks = 1 + std::ceil(kDisturbanceSeconds / seconds_of_block);
    if (4 * num_blocks > static_cast<double>(part.size())) return most;
    std::vector<double> left(differences_.begin() + static_cast<int64_t>(part.begin),
                             differences_.begin() + static_cast<int64_t>(part.end));
    std::sort(left.begin(), left.end());
    left.resize(left.size() - static_cast<size_t>(num_blocks));
    return std::min(most, std::max(0.0, excess - Mean(left)));
  }

  double OthersIn(const Part& part) const {
    std::vector<double> seconds;
    for (const ProcessTime& other : others_) {
      const float* const blocks = other.time.blocks.data();
      seconds.push_back(Mean(std::vector<double>(blocks + part.begin, blocks + part.end)));
    }
    return Median(std::move(seconds));
  }

  // Returns the ends as shares of the run. The block before the part belongs to it as far as it is like it.
  std::pair<double, double> EndsOf(const Part& part, const Fit& fit) const {
    const auto share_in = [&](size_t block) {
      return std::clamp((differences_[block] - fit.outside) / (fit.inside - fit.outside), 0.0, 1.0);
    };
    const double block =
        static_cast<double>(process_.time.block_iterations) / static_cast<double>(process_.time.count);
    const auto begin = static_cast<double>(part.begin);
    const auto end = static_cast<double>(part.end);
    return {part.begin > 0 ? (begin - share_in(part.begin - 1)) * block : 0,
            part.end < differences_.size() ? (end + share_in(part.end)) * block : 1};
  }

  // within_run: the variances of the excess. share: of the run.
  void Judge(std::vector<Variance> within_run, double slowdown, double share, Excess& excess) const {
    excess.within_run = EstimateOf(excess.seconds, within_run);
    CpuShare cpu = cpu_of_spread_;
    cpu.watched_seconds *= share;
    const double expected = ExpectedSpread(cpu);
    const double seen_weight = kMadEfficiency * static_cast<double>(others_.size() - 1);
    const double weight = kSpreadDegreesOfFreedom + seen_weight;
    // Processes that are seen to differ by more than that do so, few as they are.
    const double spread =
        std::max(seen_, (kSpreadDegreesOfFreedom * expected * expected + seen_weight * seen_) / weight);
    within_run.push_back({(1 + OfMedian()) * spread, weight});
    excess.among_processes = EstimateOf(excess.seconds - slowdown, within_run);
  }

  const std::vector<ProcessTime>& others_;
  const ProcessTime& process_;
  // By block.
  std::vector<double> differences_;
  double residual_of_others_ = 0;
  double of_others_ = 0;
  // The variance of the mean of one of the others.
  Variance within_ = {0, 0};
  // The variance of the others' times that is not within their runs.
  double seen_ = 0;
  CpuShare cpu_;
  CpuShare cpu_of_spread_;
};

}  // namespace

CpuShare LeastCertain(const CpuShare& a, const CpuShare& b) {
  return {std::max(a.cpu_seconds, b.cpu_seconds), std::max(a.taken_share, b.taken_share),
          std::min(a.watched_seconds, b.watched_seconds), std::max(a.taken_seconds, b.taken_seconds)};
}

double ExpectedSpread(const CpuShare& cpu) {
  const double lasts = std::sqrt(kDisturbanceSeconds / std::max(kDisturbanceSeconds, cpu.watched_seconds));
  const double disturbance = std::hypot(kDisturbance, kDisturbanceOfTaken * cpu.taken_share) * lasts;
  const double share = std::hypot(kExpectedSpread, disturbance);
  return std::hypot(share * cpu.cpu_seconds, kExpectedSpreadSeconds);
}

double SecondsOfOneSlowdown(const CpuShare& cpu) {
  return kSlowdown * cpu.cpu_seconds * kDisturbanceSeconds /
         std::max(kDisturbanceSeconds, cpu.watched_seconds);
}

double SpreadOfTaken(const CpuShare& cpu) { return kLatenessOfTaken * cpu.taken_seconds; }

Estimate WithExpectedSpread(const Estimate& within_run, double spread) {
  return EstimateOf(within_run.value,
                    {{within_run.standard_error * within_run.standard_error, within_run.degrees_of_freedom},
                     {spread * spread, kSpreadDegreesOfFreedom}});
}

Excess ExcessOver(const std::vector<ProcessTime>& others, const ProcessTime& process) {
  OTT_CHECK(!others.empty()) << "nothing to exceed";
  const Comparison comparison(others, process);
  Excess whole = comparison.OfRun();
  if (!comparison.is_paired()) return whole;
  // The one that would have shown least; shares only where the work clearly grows or shrinks.
  constexpr double kLevel = 1e-3;
  constexpr double kClearly = 0.9;
  const Excess paired = comparison.OfRunInPairs();
  if (paired.Detectable(kLevel) < whole.Detectable(kLevel)) whole = paired;
  const Excess as_shares = Comparison(others, process, true).OfRunInPairs();
  if (as_shares.Detectable(kLevel) < kClearly * whole.Detectable(kLevel)) whole = as_shares;
  whole.num_tests = kTestsOfPairs;
  const std::optional<Excess> part = comparison.OfMostSuspiciousPart();
  return part && part->PValue() < whole.PValue() ? *part : whole;
}

double Excess::PValue() const {
  const double t = among_processes.value / among_processes.standard_error;
  const double two_sided = StudentTTwoSidedPValue(t, among_processes.degrees_of_freedom);
  return std::min(1.0, num_tests * (t > 0 ? two_sided / 2 : 1 - two_sided / 2));
}

double Excess::Detectable(double level) const {
  return seconds - among_processes.value +
         (StudentTQuantile(1 - level / num_tests, among_processes.degrees_of_freedom) + kPowerQuantile) *
             among_processes.standard_error;
}

}  // namespace ott
