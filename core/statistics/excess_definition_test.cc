// Compares the excess of random processes with its definition.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/statistics/steady_time.h"

namespace ott {
namespace {

double MiddleOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// A sum of variances, with Satterthwaite's degrees of freedom.
struct SumOfVariances {
  double sum = 0, weights = 0;
  void Add(double variance, double degrees_of_freedom) {
    sum += variance;
    weights += variance * variance / degrees_of_freedom;
  }
  Estimate AsEstimate(double value) const {
    return {value, std::sqrt(sum), weights > 0 ? sum * sum / weights : 1e6};
  }
};

// Computes what ExcessOver() returns, one part after the other, as it is defined.
class Definition {
 public:
  Definition(std::vector<ProcessTime> others, const ProcessTime& process)
      : others_(std::move(others)), process_(process), count_(static_cast<double>(others_.size())) {
    std::vector<double> seconds, deviations, cpu_seconds, taken;
    for (const ProcessTime& other : others_) {
      seconds.push_back(other.time.seconds);
      cpu_seconds.push_back(other.cpu.cpu_seconds);
      taken.push_back(other.cpu.taken_share);
      within_ += std::pow(other.time.standard_error, 2) / count_;
      freedom_ += other.time.degrees_of_freedom;
    }
    of_others_ = MiddleOf(seconds);
    for (const double each : seconds) deviations.push_back(std::abs(each - of_others_));
    // A median deviation of normal samples tells 37 % of what their standard deviation does.
    seen_ = std::max(0.0, std::pow(1.4826 * MiddleOf(deviations), 2) - within_);
    // The variance of a median is pi / 2 times that of a mean.
    of_median_ = (count_ > 2 ? M_PI / 2 : 1) / count_;
    of_cpu_ = std::min(MiddleOf(cpu_seconds), process.time.seconds);
    most_cpu_ = std::max(of_cpu_, std::min(process.cpu.cpu_seconds, process.time.seconds));
    taken_share_ = std::max(MiddleOf(taken), process.cpu.taken_share);
  }

  Excess OfWholeRun() {
    Pair(false);
    Excess excess;
    excess.seconds = excess.seconds_of_run = process_.time.seconds - of_others_;
    excess.of_others = of_others_;
    SumOfVariances sum;
    sum.Add(std::max(std::pow(process_.time.standard_error, 2), within_), process_.time.degrees_of_freedom);
    sum.Add(of_median_ * within_, freedom_);
    Judge(sum, 0, differences_.size(), 1, excess);
    return excess;
  }

  // Returns nullopt where there are no blocks of the same iterations.
  std::optional<Excess> InPairs(bool as_shares) {
    Pair(as_shares);
    if (differences_.empty()) return std::nullopt;
    return OfPart(0, differences_.size());
  }

  std::optional<Excess> OfAPart() {
    Pair(false);
    const size_t size = differences_.size();
    std::vector<std::pair<size_t, size_t>> to_end, others;
    for (size_t begin = 0; begin < size; ++begin) {
      for (size_t end = begin + 4; end <= size; ++end) {
        size_t outside = 0;
        for (size_t i = 0; i < size; ++i) outside += i + 1 < begin || i > end;
        const bool is_all_but_one = begin == 1 || end + 1 == size;
        if (outside >= 2 && !is_all_but_one) (end == size ? to_end : others).emplace_back(begin, end);
      }
    }
    const auto num_parts = static_cast<double>(to_end.size() + others.size());
    std::optional<Excess> least;
    for (const auto* parts : {&to_end, &others}) {
      for (const auto& [begin, end] : *parts) {
        const Line line = FitTo(differences_, begin, end);
        const double error =
            std::sqrt(line.variance * (1 / static_cast<double>(end - begin) + 1 / line.num_outside));
        const double t = (line.inside - line.outside) / error;
        if (line.inside <= 2 * line.outside || t < StudentTQuantile(1 - kPartError / num_parts, line.freedom))
          continue;
        Excess excess = OfPart(begin, end);
        // Half of the error is for parts that last to the end.
        excess.num_tests = 4 * static_cast<double>(parts->size());
        if (!least || excess.PValue() < least->PValue()) least = excess;
      }
    }
    return least;
  }

 private:
  struct Line {
    double inside = 0, outside = 0, num_outside = 0, variance = 0, freedom = 0;
  };

  // Finds the means inside and outside of a part, but for the blocks beside it, and how single blocks vary.
  static Line FitTo(const std::vector<double>& values, size_t begin, size_t end) {
    Line line;
    std::vector<double> rest;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool is_inside = i >= begin && i < end;
      if (is_inside) line.inside += values[i] / static_cast<double>(end - begin);
      if (!is_inside && i + 1 != begin && i != end) rest.push_back(values[i]);
    }
    line.num_outside = static_cast<double>(rest.size());
    for (const double value : rest) line.outside += value / line.num_outside;
    std::vector<double> residuals;
    for (size_t i = 0; i < values.size(); ++i) {
      const bool is_inside = i >= begin && i < end;
      if (is_inside || (i + 1 != begin && i != end))
        residuals.push_back(values[i] - (is_inside ? line.inside : line.outside));
    }
    const double num_means = rest.empty() ? 1 : 2;
    line.freedom = static_cast<double>(residuals.size()) - num_means;
    const double freedom_of_pairs = static_cast<double>(residuals.size() / 2) - num_means;
    double of_pairs = 0;
    for (size_t i = 0; i < residuals.size(); ++i) {
      line.variance += std::pow(residuals[i], 2) / line.freedom;
      if (i % 2 == 1) of_pairs += std::pow(residuals[i] + residuals[i - 1], 2) / 2 / freedom_of_pairs;
    }
    if (of_pairs <= line.variance) return line;
    line.variance = of_pairs;
    if (rest.empty()) line.freedom = freedom_of_pairs;
    return line;
  }

  static std::vector<double> Differences(const std::vector<ProcessTime>& all, size_t which, bool as_shares) {
    int size = SteadyTime::kMaxBlocks;
    for (const ProcessTime& each : all) {
      if (each.time.block_iterations != all[which].time.block_iterations) return {};
      size = std::min(size, each.time.num_blocks);
    }
    if (size < SteadyTimeRecorder::kMinBlocks) return {};
    std::vector<double> differences, middles;
    double mean = 0;
    for (int block = 0; block < size; ++block) {
      std::vector<double> others;
      for (size_t i = 0; i < all.size(); ++i) {
        if (i != which) others.push_back(static_cast<double>(all[i].time.blocks[block]));
      }
      middles.push_back(MiddleOf(others));
      mean += middles.back() / size;
      differences.push_back(static_cast<double>(all[which].time.blocks[block]) - middles.back());
    }
    for (size_t i = 0; as_shares && i < differences.size(); ++i) {
      if (middles[i] > 0) differences[i] *= mean / middles[i];
    }
    return differences;
  }

  void Pair(bool as_shares) {
    std::vector<ProcessTime> all = others_;
    all.push_back(process_);
    differences_ = Differences(all, others_.size(), as_shares);
    // With few others each of them is compared with the rest of them alone.
    if (others_.size() <= 2) all.pop_back();
    std::vector<double> variances;
    for (size_t i = 0; i < others_.size() && others_.size() > 1 && !differences_.empty(); ++i) {
      const std::vector<double> differences = Differences(all, i, as_shares);
      variances.push_back(FitTo(differences, 0, differences.size()).variance);
    }
    // Another one of them may be slow in a part.
    std::sort(variances.begin(), variances.end());
    if (variances.size() > 2) variances.pop_back();
    variance_of_others_ = 0;
    for (const double variance : variances)
      variance_of_others_ += variance / static_cast<double>(variances.size());
  }

  Excess OfPart(size_t begin, size_t end) const {
    const Line line = FitTo(differences_, begin, end);
    const auto size = static_cast<double>(end - begin), all = static_cast<double>(differences_.size());
    Excess excess;
    excess.seconds = line.inside;
    for (const double difference : differences_) excess.seconds_of_run += difference / all;
    excess.of_others = of_others_;
    if (size < all) {
      std::vector<double> seconds;
      for (const ProcessTime& other : others_) {
        double sum = 0;
        for (size_t i = begin; i < end; ++i) sum += static_cast<double>(other.time.blocks[i]);
        seconds.push_back(sum / size);
      }
      excess.of_others = MiddleOf(seconds);
      // The block before it, and after it, belongs to it as far as it is like it.
      const auto share_of = [&](size_t i) {
        return std::min(1.0, std::max(0.0, (differences_[i] - line.outside) / (line.inside - line.outside)));
      };
      const double block =
          static_cast<double>(process_.time.block_iterations) / static_cast<double>(process_.time.count);
      excess.begin = begin == 0 ? 0 : (static_cast<double>(begin) - share_of(begin - 1)) * block;
      excess.end = end == differences_.size() ? 1 : (static_cast<double>(end) + share_of(end)) * block;
    }
    SumOfVariances sum;
    sum.Add(std::max(line.variance, variance_of_others_) / size, line.freedom);
    Judge(sum, begin, end, size / all, excess);
    return excess;
  }

  void Judge(SumOfVariances sum, size_t begin, size_t end, double share, Excess& excess) const {
    excess.within_run = sum.AsEstimate(excess.seconds);
    const double watched = std::max(kDisturbanceSeconds, share * process_.cpu.watched_seconds);
    const double lasts = kDisturbanceSeconds / watched;
    const double disturbance =
        (std::pow(kDisturbance, 2) + std::pow(kDisturbanceOfTaken * taken_share_, 2)) * lasts;
    const double expected = std::pow(most_cpu_, 2) * (std::pow(kExpectedSpread, 2) + disturbance) +
                            std::pow(kExpectedSpreadSeconds, 2);
    const double seen_weight = 0.37 * (count_ - 1), weight = kSpreadDegreesOfFreedom + seen_weight;
    const double mixed = (kSpreadDegreesOfFreedom * expected + seen_weight * seen_) / weight;
    sum.Add((1 + of_median_) * std::max(seen_, mixed), weight);
    // One slowdown lasts for no more than some blocks.
    double slowdown = kSlowdown * of_cpu_ * lasts;
    const double of_block = process_.cpu.watched_seconds *
                            static_cast<double>(process_.time.block_iterations) /
                            static_cast<double>(std::max<int64_t>(1, process_.time.count));
    const double num_blocks = of_block > 0 ? 1 + std::ceil(kDisturbanceSeconds / of_block) : 1e9;
    if (4 * num_blocks <= static_cast<double>(end - begin)) {
      std::vector<double> left(differences_.begin() + static_cast<int64_t>(begin),
                               differences_.begin() + static_cast<int64_t>(end));
      std::sort(left.begin(), left.end());
      left.resize(left.size() - static_cast<size_t>(num_blocks));
      double mean = 0;
      for (const double each : left) mean += each / static_cast<double>(left.size());
      slowdown = std::min(slowdown, std::max(0.0, excess.seconds - mean));
    }
    excess.among_processes = sum.AsEstimate(excess.seconds - slowdown);
  }

  const std::vector<ProcessTime> others_;
  const ProcessTime process_;
  const double count_;
  double within_ = 0, freedom_ = 0, of_others_ = 0, seen_ = 0, of_median_ = 0;
  double of_cpu_ = 0, most_cpu_ = 0, taken_share_ = 0;
  std::vector<double> differences_;
  double variance_of_others_ = 0;
};

void ExpectNear(const Estimate& a, const Estimate& b) {
  EXPECT_NEAR(a.value, b.value, 1e-12);
  EXPECT_NEAR(a.standard_error, b.standard_error, 1e-12);
  EXPECT_NEAR(a.degrees_of_freedom, b.degrees_of_freedom, 1e-6 * b.degrees_of_freedom);
}

// The whole run, in pairs where that would show less, as shares where that would show clearly less, or the
// part that is more suspicious.
TEST(PersistentExcess, IsThatOfItsDefinition) {
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::normal_distribution<double> normal;
  int num_whole = 0, num_paired = 0, num_shares = 0, num_parts = 0, num_to_end = 0;
  for (int trial = 0; trial < 700; ++trial) {
    const size_t num_others = 1 + random() % 6, size = random() % 8 == 0 ? 7 : 8 + random() % 9;
    const double noise = random() % 2 == 0 ? 2e-5 : 5e-4, growth = random() % 3 == 0 ? 0.3 : 0;
    const double level = random() % 2 == 0 ? 0.1 : 0;
    const bool is_computing = random() % 2 == 0, is_exact = random() % 20 == 0;
    const size_t idle = random() % (10 * size);  // a block without work, in few trials
    const double all_over = random() % 6 == 0 ? 2e-3 : 0;
    const auto draw = [&](bool has_blocks, double more, double excess, size_t begin, size_t end) {
      SteadyTime time;
      double walk = 0;
      const double own = 0.01 * (1 + level * 0.1 * normal(random)) + more;
      // Some are one block behind.
      time.num_blocks = static_cast<int>(size - (random() % 6 == 0 ? 1 : 0));
      for (size_t i = 0; i < static_cast<size_t>(time.num_blocks); ++i) {
        walk = 0.5 * walk + noise * normal(random);
        const double phase = 1 + growth * static_cast<double>(i);
        const double seconds = phase * (own + (i >= begin && i < end ? excess : 0)) + walk;
        time.blocks[i] = static_cast<float>(i == idle ? 0 : seconds);
        time.seconds += static_cast<double>(time.blocks[i]) / time.num_blocks;
      }
      time.block_iterations = has_blocks ? 5 : 10;
      time.count = time.block_iterations * time.num_blocks + static_cast<int64_t>(random() % 3);
      time.standard_error = (is_exact ? 0 : random() % 3 == 0 ? 1e-5 : 1e-3) * (0.5 + uniform(random));
      time.degrees_of_freedom = 3 + 5 * uniform(random);
      const double cpu = is_computing ? 0.02 * uniform(random) : 0;
      return ProcessTime{time, {cpu, 0.3 * uniform(random), 10 * std::pow(uniform(random), 3)}};
    };
    std::vector<ProcessTime> others;
    // One is slow in the second half, and one in the first.
    for (size_t i = 0; i < num_others; ++i)
      others.push_back(draw(random() % 30 > 0, 0, i == 1 || i == 2 ? 1e-3 : 0, i == 1 ? size / 2 : 0,
                            i == 1 ? size : size / 2));
    const size_t begin = random() % 3 == 0 ? 0 : random() % (size - 3);
    const size_t end = random() % 2 == 0 ? size : begin + 3 + random() % (size - begin - 2);
    const ProcessTime process = draw(true, all_over, 1e-3 * static_cast<double>(random() % 3), begin, end);

    Definition definition(others, process);
    Excess expected = definition.OfWholeRun();
    const auto paired = definition.InPairs(false), shares = definition.InPairs(true),
               part = definition.OfAPart();
    int* kind = &num_whole;
    if (paired) {
      if (paired->Detectable(1e-3) < expected.Detectable(1e-3)) {
        expected = *paired;
        kind = &num_paired;
      }
      if (shares->Detectable(1e-3) < 0.9 * expected.Detectable(1e-3)) {
        expected = *shares;
        kind = &num_shares;
      }
      expected.num_tests = 2;
      if (part && part->PValue() < expected.PValue()) {
        expected = *part;
        kind = part->end == 1 ? &num_to_end : &num_parts;
      }
    }
    ++*kind;
    const Excess excess = ExcessOver(others, process);
    SCOPED_TRACE(trial);
    EXPECT_NEAR(excess.seconds, expected.seconds, 1e-12);
    EXPECT_NEAR(excess.seconds_of_run, expected.seconds_of_run, 1e-12);
    EXPECT_NEAR(excess.of_others, expected.of_others, 1e-12);
    EXPECT_NEAR(excess.begin, expected.begin, 1e-9);
    EXPECT_NEAR(excess.end, expected.end, 1e-9);
    EXPECT_EQ(excess.num_tests, expected.num_tests);
    ExpectNear(excess.within_run, expected.within_run);
    ExpectNear(excess.among_processes, expected.among_processes);
  }
  for (const int count : {num_whole, num_paired, num_shares, num_parts, num_to_end}) EXPECT_GT(count, 5);
}

}  // namespace
}  // namespace ott
