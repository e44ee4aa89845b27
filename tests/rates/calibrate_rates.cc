// Measures how often calibrated tolerances are wrong: a network of 16 x 24 x 4 in float32 is trained many
// times, each time with the sums over the batch in another order, as kernels with atomics do. Some
// repetitions calibrate, others of the same are compared by the result, and so are trainings with a fault.
//
//   bazel run //tests/rates:calibrate_rates

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ott/questions/right/calibrate/noise.h"

namespace ott::calibrate {
namespace {

constexpr int kInputs = 16, kHidden = 24, kOutputs = 4, kBatch = 16;
constexpr int kIterations = 300, kEvery = 10, kFaultAt = 150;
constexpr int kSeeds = 20, kFreshRuns = 20;

enum class Fault { kNone, kLearningRate, kSkippedUpdate, kRounding, kOtherData };
constexpr const char* kFaultNames[] = {"", "learning rate 1 % too high", "one update skipped",
                                       "weights rounded to bfloat16 once", "one batch of other data"};

// By tensor and iteration.
using Training = std::map<std::string, std::map<int64_t, std::vector<float>>>;

float Uniform(std::mt19937& random) { return std::uniform_real_distribution<float>(-1, 1)(random); }

float ToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bits = (bits + 0x8000u) & 0xffff0000u;
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

// seed: of the weights and data; order: of the sums.
Training Train(unsigned seed, unsigned order, float rate, Fault fault) {
  std::mt19937 data(seed), orders(order);
  std::vector<float> w1(kInputs * kHidden), w2(kHidden * kOutputs), teacher(kInputs * kOutputs);
  for (std::vector<float>* const w : {&w1, &w2, &teacher}) {
    for (float& x : *w) x = 0.5f * Uniform(data);
  }
  std::vector<float> m1(w1.size()), m2(w2.size());
  Training training;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    std::vector<float> inputs(kBatch * kInputs);
    for (float& x : inputs) x = Uniform(data);
    const bool is_faulty = iteration == kFaultAt;
    if (fault == Fault::kOtherData && is_faulty) std::reverse(inputs.begin(), inputs.end());
    std::array<int, kBatch> samples;
    std::iota(samples.begin(), samples.end(), 0);
    std::shuffle(samples.begin(), samples.end(), orders);
    std::vector<float> g1(w1.size()), g2(w2.size());
    float loss = 0;
    for (const int sample : samples) {
      const float* const x = &inputs[sample * kInputs];
      float hidden[kHidden], error[kOutputs];
      for (int h = 0; h < kHidden; ++h) {
        float sum = 0;
        for (int i = 0; i < kInputs; ++i) sum += x[i] * w1[i * kHidden + h];
        hidden[h] = std::tanh(sum);
      }
      for (int o = 0; o < kOutputs; ++o) {
        float sum = 0, wanted = 0;
        for (int h = 0; h < kHidden; ++h) sum += hidden[h] * w2[h * kOutputs + o];
        for (int i = 0; i < kInputs; ++i) wanted += x[i] * teacher[i * kOutputs + o];
        error[o] = sum - std::sin(3 * wanted);
        loss += error[o] * error[o] / kBatch;
      }
      for (int h = 0; h < kHidden; ++h) {
        float back = 0;
        for (int o = 0; o < kOutputs; ++o) {
          back += error[o] * w2[h * kOutputs + o];
          g2[h * kOutputs + o] += error[o] * hidden[h] / kBatch;
        }
        back *= 1 - hidden[h] * hidden[h];
        for (int i = 0; i < kInputs; ++i) g1[i * kHidden + h] += back * x[i] / kBatch;
      }
    }
    const float step = fault == Fault::kLearningRate ? 1.01f * rate : rate;
    if (fault != Fault::kSkippedUpdate || !is_faulty) {
      for (size_t i = 0; i < w1.size(); ++i) w1[i] -= step * (m1[i] = 0.9f * m1[i] + g1[i]);
      for (size_t i = 0; i < w2.size(); ++i) w2[i] -= step * (m2[i] = 0.9f * m2[i] + g2[i]);
    }
    if (fault == Fault::kRounding && is_faulty) {
      for (float& x : w1) x = ToBFloat16(x);
    }
    if (iteration % kEvery != 0) continue;
    training["loss"][iteration] = {loss};
    training["gradients.w1"][iteration] = g1;
    training["weights.w1"][iteration] = w1;
    training["weights.w2"][iteration] = w2;
  }
  return training;
}

double Difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

Noise MeasureNoise(const std::vector<Training>& runs) {
  Noise noise;
  for (const auto& [tensor, by_iteration] : runs[0]) {
    for (const auto& [iteration, values] : by_iteration) {
      noise.AddIteration(iteration);
      float largest = 0;
      for (const float value : values) largest = std::max(largest, std::abs(value));
      noise.AddRounding(tensor, iteration, std::ldexp(largest, -23));
      for (int a = 0; a < static_cast<int>(runs.size()); ++a) {
        for (int b = a + 1; b < static_cast<int>(runs.size()); ++b) {
          noise.Add(tensor, iteration, a, b,
                    Difference(runs[a].at(tensor).at(iteration), runs[b].at(tensor).at(iteration)));
        }
      }
    }
  }
  return noise;
}

// The first iteration in which a tensor is beyond its tolerance; -1: none.
int64_t FirstFinding(const Tolerances& tolerances, const Training& reference, const Training& current,
                     bool one_for_all) {
  int64_t first = -1;
  for (const TensorTolerance& tensor : tolerances.tensors()) {
    const double largest = *std::max_element(tensor.atol_at().begin(), tensor.atol_at().end());
    for (int i = 0; i < tolerances.iterations_size(); ++i) {
      const int64_t iteration = tolerances.iterations(i);
      const double atol = one_for_all ? largest : tensor.atol_at(i);
      const double difference =
          Difference(reference.at(tensor.path()).at(iteration), current.at(tensor.path()).at(iteration));
      if (difference > atol && (first < 0 || iteration < first)) first = iteration;
    }
  }
  return first;
}

// The counts for one number of calibrating runs.
struct Counts {
  int false_alarms = 0;
  int left_out_alarms = 0;
  int refused = 0;
  int num_left_out = 0;
  double looseness = 0;
  std::array<int, 5> found = {};
};

void Count(unsigned seed, float rate, int num_runs, bool one_for_all, Counts& counts) {
  std::vector<Training> runs;
  std::vector<int> all;
  for (int run = 0; run < num_runs; ++run) {
    runs.push_back(Train(seed, 1000 * seed + run, rate, Fault::kNone));
    all.push_back(run);
  }
  const Noise noise = MeasureNoise(runs);
  double factor = FactorFor(num_runs);
  std::map<std::string, double> raised;
  if (num_runs > 2) {
    const std::vector<Noise::LeftOut> left_out = noise.LeaveOneOut(all, std::nullopt);
    for (const Noise::LeftOut& run : left_out) {
      counts.left_out_alarms += run.part > 1;
      counts.refused += run.outlier.has_value();
      ++counts.num_left_out;
    }
    raised = Noise::Raised(left_out);
  }
  if (one_for_all) {
    factor = 3;
    raised.clear();
  }
  const Tolerances tolerances = noise.Fit(all, factor, raised);
  counts.looseness += noise.Looseness(all, factor, raised).first / kSeeds;
  for (int fresh = 0; fresh < kFreshRuns; ++fresh) {
    const Training run = Train(seed, 1000 * seed + 500 + fresh, rate, Fault::kNone);
    counts.false_alarms += FirstFinding(tolerances, runs[0], run, one_for_all) >= 0;
  }
  for (int fault = 1; fault < 5; ++fault) {
    const Training run = Train(seed, 1000 * seed + 900 + fault, rate, static_cast<Fault>(fault));
    const int64_t found = FirstFinding(tolerances, runs[0], run, one_for_all);
    const int64_t at = static_cast<Fault>(fault) == Fault::kLearningRate ? 0 : kFaultAt;
    counts.found[fault] += found >= at && found <= at + kEvery;
  }
}

void Print(float rate) {
  std::printf("learning rate %g\n%-34s %8s %8s %9s %8s   found within one dump:", rate, "tolerances of",
              "false", "left out", "refused", "times");
  for (int fault = 1; fault < 5; ++fault) std::printf(" %c", 'a' + fault - 1);
  std::printf("\n%-34s %8s %8s %9s %8s\n", "", "alarms", "alarms", "", "seen");
  for (const auto& [num_runs, one_for_all] :
       {std::pair(2, false), {3, false}, {4, false}, {8, false}, {4, true}}) {
    Counts counts;
    for (unsigned seed = 1; seed <= kSeeds; ++seed) Count(seed, rate, num_runs, one_for_all, counts);
    std::printf("%d runs%-28s %4d/%d %5d/%-3d %5d/%-3d %8.1f                         ", num_runs,
                one_for_all ? ", one for all iterations, x 3" : "", counts.false_alarms, kSeeds * kFreshRuns,
                counts.left_out_alarms, counts.num_left_out, counts.refused, counts.num_left_out,
                counts.looseness);
    for (int fault = 1; fault < 5; ++fault) std::printf(" %d", counts.found[fault]);
    std::printf(" of %d\n", kSeeds);
  }
}

}  // namespace
}  // namespace ott::calibrate

int main() {
  for (int fault = 1; fault < 5; ++fault) {
    std::printf("%c: %s%s\n", 'a' + fault - 1, ott::calibrate::kFaultNames[fault],
                fault == 1 ? "" : ", in iteration 150");
  }
  for (const float rate : {0.02f, 0.1f, 0.16f}) ott::calibrate::Print(rate);
  return 0;
}
