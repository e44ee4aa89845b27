// Judges random runs beside a perturbed one, as docs/origin.md says that it is done.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/statistics/location.h"
#include "ott/questions/origin/differences.h"
#include "ott/questions/origin/gains.h"
#include "ott/questions/origin/origin_for_test.h"
#include "ott/questions/origin/origin_text.h"
#include "ott/questions/origin/rounding.h"
#include "ott/questions/origin/updates.h"

namespace ott::origin {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Matcher;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Elements = std::vector<float>;
using Random = std::mt19937_64;

// A program, and by how much its runs differ. Numbers are drawn, not computed.
struct Scene {
  struct Spec {
    const char* name;
    const char* module;
    DType dtype;
    OpRole role;
    size_t count;
    std::vector<int> reads;  // an operation before it; -1: a parameter that nobody logs
  };
  int num_ranks, num_iterations, perturbed_iterations;
  std::vector<Spec> program;
  double noise, chance_of_excess;
  unsigned one_equal_of;  // of the perturbed run
  unsigned one_stale_of;
  // The operation that is wrong each time, and by how many times what others are off.
  size_t lifted;
  double lift;

  explicit Scene(Random& random)
      : num_ranks(1 + static_cast<int>(random() % 3)),
        num_iterations(1 + static_cast<int>(random() % 4)),
        perturbed_iterations(num_iterations - static_cast<int>(num_iterations > 1 && random() % 5 == 0)),
        noise(std::pow(10.0, -1 - static_cast<double>(random() % 6))),
        chance_of_excess(random() % 2 == 0 ? 0 : 0.02),
        one_equal_of(random() % 4 == 0 ? 1 + static_cast<unsigned>(random() % 2) : 20),
        one_stale_of(random() % 3 == 0 ? 30 : 1000),
        lifted(random() % 10),
        lift(std::pow(10.0, 0.5 + static_cast<double>(random() % 100) / 100)) {
    const DType dtype = random() % 2 == 0 ? DType::kFloat32 : DType::kBFloat16;
    const std::vector<Spec> kinds = {{"linear", "fc1", dtype, OpRole::kOperation, 40, {}},
                                     {"linear", "fc2", dtype, OpRole::kOperation, 40, {}},
                                     {"gelu", "", DType::kFloat32, OpRole::kOperation, 40, {}},
                                     {"batch", "", dtype, OpRole::kLoad, 40, {}},
                                     {"reduce", "", dtype, OpRole::kCollective, 40, {}},
                                     {"broadcast", "", dtype, OpRole::kCollective, 40, {}},
                                     {"adam", "fc1", DType::kFloat32, OpRole::kUpdate, 100, {}},
                                     {"embed", "", dtype, OpRole::kOperation, 40, {}},  // not perturbed
                                     {"argmax", "", DType::kInt64, OpRole::kOperation, 8, {}}};
    for (int i = 0; i < 7; ++i) {
      Spec spec = kinds[random() % (random() % 2 == 0 ? kinds.size() : 3)];
      for (size_t j = random() % 2; j < 2; ++j) {
        spec.reads.push_back(random() % 6 == 0 ? -1
                                               : static_cast<int>(random() % static_cast<size_t>(i + 1)) - 1);
      }
      if (spec.role == OpRole::kUpdate) spec.reads = {spec.reads[0], -1};
      if (std::string(spec.name) == "embed") spec.reads = {-1};
      program.push_back(spec);
    }
    // The gradients of this update differ by so much that many elements may jump.
    if (random() % 8 == 0) {
      program[lifted = 2] = kinds[6];
      program[2].reads = {1, -1};
      noise = 0.01;
      lift = 50;
      one_equal_of = 1000;
    } else if (random() % 8 == 0) {
      // An input that nobody logs differs about as little as what is made without inputs.
      program[0] = kinds[3];
      program[1] = kinds[7];
      program[1].reads = {-1};
      noise = 1.2e-6;
    }
    if (lifted < 7 && program[lifted].role == OpRole::kUpdate) program[lifted].module = "kept";
    // Runs once more, and rightly.
    if (lifted < 6 && random() % 3 == 0) program[6] = program[lifted];
  }

  // Writes a run that is `off` by so many times the noise; wrong: and more in places.
  void Write(const std::string& run_dir, double off, bool wrong, uint64_t seed) const {
    Random numbers(1), random(seed);
    std::normal_distribution<float> normal;
    const auto draw = [&](size_t count, int iteration, bool is_lifted, bool is_still = false) -> Elements {
      double share = off * noise * (0.5 + static_cast<double>(random() % 8) / 8);
      if (random() % (wrong ? 20 : one_equal_of) == 0 || (is_still && !wrong)) share = 0;
      const bool exceeds = wrong && static_cast<double>(random() % 1000) < 1000 * chance_of_excess;
      if (exceeds) share = noise * std::pow(10.0, static_cast<double>(random() % 100) / 25);
      if (wrong && is_lifted) share *= lift;
      Elements elements(count);
      const bool has_peak = numbers() % 4 == 0;
      // Parameters and results are about the same in all iterations.
      for (float& element : elements) {
        element = normal(numbers) + static_cast<float>(iteration);
        element += static_cast<float>(share) * normal(random);
      }
      if (has_peak) elements[0] *= 30;
      return elements;
    };
    std::vector<HandWritten> logs;
    logs.reserve(num_ranks);
    for (int rank = 0; rank < num_ranks; ++rank) logs.emplace_back(run_dir, rank, num_ranks);
    const int iterations = off == 1 && !wrong ? perturbed_iterations : num_iterations;
    for (int iteration = 0; iteration < iterations; ++iteration) {
      for (HandWritten& log : logs) log.BeginIteration(iteration);
      std::vector<std::vector<WrittenTensor>> results;  // by operation and rank
      for (const Spec& spec : program) {
        const bool is_lifted = results.size() == lifted, is_still = std::string(spec.name) == "embed",
                   is_update = spec.role == OpRole::kUpdate, has_two = std::string(spec.name) == "gelu";
        std::vector<WrittenTensor>& result = results.emplace_back();
        WrittenTensor first_input;
        for (int rank = 0; rank < num_ranks; ++rank) {
          WrittenOp op = {spec.name, {}, {}, spec.role, spec.module};
          for (const int read : spec.reads) {
            WrittenTensor input = {{}, is_update ? "w" : "", spec.dtype};
            if (read < 0) {
              input.elements = draw(is_update ? spec.count : 40, 0, false, is_still);
            } else {
              input = results[read][rank];
            }
            // A value that changes between two operations.
            if (read >= 0 && wrong && random() % one_stale_of == 0) input.elements[0] += 0.1f;
            op.inputs.push_back(input);
          }
          if (rank == 0 && !op.inputs.empty()) first_input = op.inputs[0];
          // Every other rank has its error in the second output, if there are two.
          WrittenTensor output = {draw(spec.count, iteration, is_lifted && !(has_two && rank % 2 == 1)), "",
                                  spec.dtype};
          if (spec.dtype == DType::kInt64)
            for (float& element : output.elements) element = std::round(4 * element);
          if (is_update) {
            // What it adds differs by a share.
            const Elements step = draw(spec.count, 0, is_lifted);
            output = op.inputs.back();
            for (size_t i = 0; i < step.size(); ++i) output.elements[i] += 0.1f * step[i];
          }
          if (std::string(spec.name) == "broadcast") output = first_input;
          op.outputs = {output};
          if (has_two)
            op.outputs.push_back({draw(spec.count, iteration, is_lifted && rank % 2 == 1), "", spec.dtype});
          result.push_back(output);
          if (!is_update) result.back().name.clear();
          logs[rank].Op(op);
        }
      }
    }
    for (HandWritten& log : logs) log.Finish();
  }
};

// What is said of a rank.
struct Found {
  std::optional<OriginVerdict> named;  // with what is of the operation alone
  std::pair<size_t, bool> tensor;      // of the operation; true if it is an output
  size_t place = 0;
  int64_t num_not_judged = 0;
  std::vector<std::pair<double, std::string>> unseen;
  std::string note, doubt;  // after "rank 0"
};

class Oracle {
 public:
  Oracle(const RunLogs& a, const RunLogs& b, const RunLogs& perturbed) : a_(a), b_(b), p_(perturbed) {
    for (const auto& [rank, ops] : a_.ranks) {
      for (size_t i = 0; i < p_.ranks.at(rank)->ops.size(); ++i) {
        const LoggedOp& op = ops->ops[i];
        const double before = OfInputs(p_, rank, i);
        for (int t = 0; t < op.num_tensors(); ++t) {
          const OpDefinition& of = op.definition();
          if (!of.tensors[t].is_output || UnitRoundoff(of.tensors[t].dtype) == 0 || before == 0) continue;
          const double gain = BeforeRounding(OutputOf(rank, i, t), Difference(p_, rank, i, t)) / before;
          gains_[{of.name, of.module, t}].push_back(static_cast<float>(gain));
          gains_[{of.name, "of all", t}].push_back(static_cast<float>(gain));
        }
      }
    }
  }

  Found Judge(int rank) const {
    Found found;
    std::map<std::string, std::pair<int, std::string>> counts;  // how many, and the first
    const LoggedOps& ops = *a_.ranks.at(rank);
    std::set<std::pair<size_t, int>> seen;
    for (const LoggedOps::Iteration& iteration : ops.iterations) {
      for (size_t i = iteration.begin; i < iteration.end && !found.named; ++i) {
        const LoggedOp& op = ops.ops[i];
        const OpDefinition& of = op.definition();
        const auto count = [&](const char* what, const std::string& input) {
          auto& [num, first] = counts[what];
          if (num++ == 0)
            first = absl::StrCat(input, DescribeOperation(of), " in iteration ", iteration.number);
        };
        const auto name = [&](OriginVerdict::Kind kind, int t, double difference, double explained) {
          OriginVerdict& named = found.named.emplace();
          named.set_kind(kind);
          named.set_iteration(iteration.number);
          named.set_operation(of.name);
          named.set_module(of.module);
          named.set_tensor(of.tensors[t].name);
          named.set_relative_difference(difference);
          named.set_explained(explained);
          found.tensor = {t, of.tensors[t].is_output};
          found.place = i;
        };
        for (int t = 0; t < op.num_tensors() && !found.named; ++t) {
          if (of.tensors[t].is_output) continue;
          const double difference = Difference(b_, rank, i, t);
          const auto [writer_a, output_a] = WriterOf(a_, rank, i, op.digest(t));
          const auto [writer_b, output_b] = WriterOf(b_, rank, i, b_.ranks.at(rank)->ops[i].digest(t));
          if (difference == 0) continue;
          if (writer_a >= 0 &&
              b_.ranks.at(rank)->ops[writer_a].digest(output_a) == b_.ranks.at(rank)->ops[i].digest(t)) {
            continue;
          }
          if (difference <= InputTolerance(rank, i, t, writer_a, output_a)) continue;
          const bool is_reached = i < p_.ranks.at(rank)->ops.size();
          if (writer_a < 0 && writer_b < 0 && (!is_reached || difference <= UnloggedTolerance(rank, i))) {
            count("inputs that no operation made", absl::StrCat("the ", of.tensors[t].name, " of "));
          } else {
            name(OriginVerdict::INPUT, t, difference, 0);
          }
        }
        for (int t = 0; t < op.num_tensors() && !found.named; ++t) {
          if (!of.tensors[t].is_output) continue;
          const double difference = Difference(b_, rank, i, t);
          if (difference == 0 || IsMoved(iteration.number, rank, i, t)) continue;
          const double inputs = OfInputs(b_, rank, i);
          const double explained = Tolerance(rank, i, t, difference);
          if (std::isinf(explained)) ++found.num_not_judged;
          const auto excess = ExcessOf(rank, i, t);
          if (difference <= explained && (!excess || excess->times() <= 1)) {
            if (excess && excess->is_doubtful) count("updates that are wrong or jumped", "");
            if (inputs == 0 || UnitRoundoff(of.tensors[t].dtype) == 0) continue;
            const double all = Tolerance(rank, i, t, kInfinity);
            const double unseen = excess ? excess->unseen : all;
            if (seen.insert({of.index, t}).second && std::isfinite(unseen))
              found.unseen.emplace_back(unseen, DescribeOperation(of));
            if (difference > all / 2 && RunsThatAllDiffer(rank, iteration.begin, i, t, difference) >= 2)
              count("outputs that differ by most of what is explained", "of ");
            continue;
          }
          if (inputs > 0 && InputUpdated(op, t) < 0 &&
              difference <= GainOf(rank, i, t).value_or(1) * LargestJump(LargestShare(op))) {
            const int runs = RunsThatAllDiffer(rank, iteration.begin, i, t, difference);
            const bool is_narrow = std::any_of(of.tensors.begin(), of.tensors.end(), [](const auto& tensor) {
              return tensor.dtype == DType::kBFloat16;
            });
            if (runs == 0) {
              count("outputs that differ more than is explained, but", "of ");
              continue;
            }
            if (is_narrow && runs < 6 && difference < 2 * explained) {
              count("outputs that differ more than is explained in the few runs", "of ");
              continue;
            }
          }
          name(of.role == OpRole::kUpdate ? OriginVerdict::UPDATE
               : of.role == OpRole::kLoad ? OriginVerdict::INPUT
                                          : OriginVerdict::OPERATION,
               t, difference, explained);
          found.named->set_input_difference(inputs);
          if (difference > explained) continue;
          found.named->set_of_increment(true);
          found.named->set_relative_difference(excess->difference);
          found.named->set_explained(excess->explained);
        }
      }
    }
    // The last that there is.
    for (const char* what :
         {"updates that are wrong or jumped", "outputs that differ by most of what is explained",
          "outputs that differ more than is explained in the few runs", "inputs that no operation made",
          "outputs that differ more than is explained, but"}) {
      if (counts.count(what) == 0) continue;
      const auto& [num, first] = counts[what];
      const bool is_jump = std::string(what).find(", but") != std::string::npos;
      (is_jump ? found.note : found.doubt) =
          absl::StrCat("rank ", rank, ": ", what, "|: ", num, ", the first ", first);
    }
    return found;
  }

  // By how many times what is explained the operation differs on another rank.
  double TimesExplained(int rank, const Found& found) const {
    const LoggedOps& ops = *a_.ranks.at(rank);
    double most = 0;
    for (const LoggedOps::Iteration& iteration : ops.iterations) {
      for (size_t i = iteration.begin; i < iteration.end; ++i) {
        const OpDefinition& of = ops.ops[i].definition();
        if (iteration.number != found.named->iteration() || of.name != found.named->operation() ||
            of.module != found.named->module())
          continue;
        for (int t = 0; t < static_cast<int>(of.tensors.size()); ++t) {
          if (!of.tensors[t].is_output || of.tensors[t].name != found.named->tensor()) continue;
          const auto excess = ExcessOf(rank, i, t);
          const double difference = Difference(b_, rank, i, t);
          if (found.named->of_increment()) {
            if (excess) most = std::max(most, excess->times());
          } else if (difference > 0) {
            most = std::max(most, difference / Tolerance(rank, i, t, kInfinity));
          }
        }
      }
    }
    return most;
  }

 private:
  static double Difference(const LoggedOps& a, const LoggedOps& b, size_t i, int t) {
    return i < b.ops.size() ? RelativeDifference(a.ops[i], t, b.ops[i], t) : 0;
  }
  double Difference(const RunLogs& other, int rank, size_t i, int t) const {
    return Difference(*a_.ranks.at(rank), *other.ranks.at(rank), i, t);
  }

  // The largest; of a collective on any rank.
  double OfInputs(const RunLogs& other, int rank, size_t i) const {
    double largest = 0;
    for (const auto& [any, ops] : a_.ranks) {
      const OpDefinition& of = ops->ops[i].definition();
      if (any != rank && of.role != OpRole::kCollective) continue;
      for (int t = 0; t < static_cast<int>(of.tensors.size()); ++t) {
        if (!of.tensors[t].is_output) largest = std::max(largest, Difference(other, any, i, t));
      }
    }
    return largest;
  }

  RoundedOutput OutputOf(int rank, size_t i, int t) const {
    return RoundedOutputOf(a_.ranks.at(rank)->ops[i], t, a_.world_size);
  }

  std::pair<int64_t, int> WriterOf(const RunLogs& run, int rank, size_t before, const Digest& digest) const {
    const std::vector<LoggedOp>& ops = run.ranks.at(rank)->ops;
    for (size_t i = before; i-- > 0;) {
      for (int t = 0; t < ops[i].num_tensors(); ++t) {
        if (ops[i].definition().tensors[t].is_output && ops[i].digest(t) == digest) return {i, t};
      }
    }
    return {-1, -1};
  }

  double InputTolerance(int rank, size_t i, int t, int64_t writer, int output) const {
    RoundedOutput value = OutputOf(rank, i, t);
    value.reduction_length = 1;
    if (writer >= 0) value = OutputOf(rank, static_cast<size_t>(writer), output);
    if (UnitRoundoff(value.dtype) == 0) return 0;
    return 8 * Difference(p_, rank, i, t) + AfterRounding(value, SummationBound(value, 1)) + 1e-6;
  }

  double UnloggedTolerance(int rank, size_t before) const {
    double largest = 0;
    double coarsest = 0;
    const LoggedOps& ops = *a_.ranks.at(rank);
    for (size_t i = 0; i < ops.ops.size(); ++i) {
      for (int t = 0; t < ops.ops[i].num_tensors(); ++t) {
        const OpTensorDefinition& tensor = ops.ops[i].definition().tensors[t];
        coarsest = std::max(coarsest, UnitRoundoff(tensor.dtype));
        if (i < before && tensor.is_output) largest = std::max(largest, Difference(b_, rank, i, t));
      }
    }
    return 8 * (largest + 2 * coarsest);
  }

  bool IsMoved(int64_t iteration, int rank, size_t i, int t) const {
    if (a_.ranks.at(rank)->ops[i].definition().role != OpRole::kCollective) return false;
    for (const auto& [any, ops] : a_.ranks) {
      for (size_t j = 0; j < ops->ops.size(); ++j) {
        const LoggedOp& op = ops->ops[j];
        if (op.definition().role != OpRole::kCollective || IterationOf(*ops, j) != iteration) continue;
        for (int k = 0; k < op.num_tensors(); ++k) {
          if (!op.definition().tensors[k].is_output && op.digest(k) == a_.ranks.at(rank)->ops[i].digest(t) &&
              b_.ranks.at(any)->ops[j].digest(k) == b_.ranks.at(rank)->ops[i].digest(t))
            return true;
        }
      }
    }
    return false;
  }

  static double Median(std::vector<float> gains) {
    std::sort(gains.begin(), gains.end());
    return gains[gains.size() / 2];
  }

  std::optional<double> GainOf(int rank, size_t i, int t) const {
    const OpDefinition& of = a_.ranks.at(rank)->ops[i].definition();
    std::optional<double> gain;
    auto of_module = gains_.find({of.name, of.module, t});
    if (of_module == gains_.end() || of_module->second.size() < 4)
      of_module = gains_.find({of.name, "of all", t});
    if (of_module != gains_.end()) gain = Median(of_module->second);
    const double before = OfInputs(p_, rank, i);
    if (before > 0 && i < p_.ranks.at(rank)->ops.size()) {
      gain = std::max(gain.value_or(0),
                      BeforeRounding(OutputOf(rank, i, t), Difference(p_, rank, i, t)) / before);
    }
    return gain ? std::optional<double>(std::max(*gain, 1.0)) : std::nullopt;
  }

  // So much is explained, if the output differs by `difference`.
  double Tolerance(int rank, size_t i, int t, double difference) const {
    const LoggedOp& op = a_.ranks.at(rank)->ops[i];
    const RoundedOutput output = OutputOf(rank, i, t);
    const double inputs = OfInputs(b_, rank, i);
    if (UnitRoundoff(output.dtype) == 0) return inputs > 0 ? kInfinity : 0;
    const auto explained = [&](double gain, double of_inputs) {
      return AfterRounding(output, 8 * gain * of_inputs + SummationBound(output, gain)) + 1e-6 +
             (inputs > 0 && op.definition().role == OpRole::kUpdate ? StepAllowance(op, t, 4) : 0);
    };
    const std::optional<double> gain = GainOf(rank, i, t);
    if (inputs == 0) return explained(gain.value_or(1), 0);
    if (gain) return explained(*gain, std::max(inputs, OfInputs(p_, rank, i)));
    if (difference <= explained(1, inputs)) return explained(1, inputs);
    double largest = 0;
    for (const auto& [of, gains] : gains_)
      if (gains.size() >= 4) largest = std::max(largest, Median(gains));
    const double most = explained(std::max(largest, 1.0), inputs);
    return largest > 0 && difference > most ? most : kInfinity;
  }

  std::optional<IncrementExcess> ExcessOf(int rank, size_t i, int t) const {
    if (i >= p_.ranks.at(rank)->ops.size()) return std::nullopt;
    return ExcessOfIncrement(a_.ranks.at(rank)->ops[i], b_.ranks.at(rank)->ops[i], p_.ranks.at(rank)->ops[i],
                             t, OutputOf(rank, i, t));
  }

  static double LargestShare(const LoggedOp& op) {
    double largest = 0;
    for (int t = 0; t < op.num_tensors(); ++t) {
      if (!op.definition().tensors[t].is_output && op.norm(t) > 0)
        largest = std::max(largest, op.max_abs(t) / op.norm(t));
    }
    return largest;
  }

  // 0 if one of them differs by less than a quarter as much.
  int RunsThatAllDiffer(int rank, size_t from, size_t i, int t, double difference) const {
    const std::vector<LoggedOp>& ops = a_.ranks.at(rank)->ops;
    int runs = 0;
    for (size_t other = from; other < ops.size(); ++other) {
      if (ops[other].definition().index != ops[i].definition().index) continue;
      if (4 * Difference(b_, rank, other, t) < difference) return 0;
      ++runs;
    }
    return runs;
  }

  const RunLogs& a_;
  const RunLogs& b_;
  const RunLogs& p_;
  // By name, module, and tensor.
  std::map<std::tuple<std::string, std::string, int>, std::vector<float>> gains_;
};

// Returns what is named of an operation.
auto WhatOf(const OriginVerdict& verdict) {
  return std::make_tuple(verdict.kind(), verdict.iteration(), verdict.operation(), verdict.module(),
                         verdict.tensor());
}

TEST_F(OriginOfHandWrittenLogs, OfRandomRunsIsWhatThePageSays) {
  Random random(1);
  std::set<std::string> seen;
  int num_kept_increments = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SetUp();
    const Scene scene(random);
    scene.Write(dir_ + "/a", 0, false, 0);
    scene.Write(dir_ + "/perturbed", 1, false, random());
    scene.Write(dir_ + "/b", 1.2, true, random());
    const RunLogs a = ReadRunLogs(dir_ + "/a").value(), b = ReadRunLogs(dir_ + "/b").value(),
                  perturbed = ReadRunLogs(dir_ + "/perturbed").value();
    const auto verdict = FindOrigin(a, b, &perturbed);
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    const std::string text = absl::StrCat("trial ", trial, "\n", FormatOrigin(*verdict));

    const Oracle oracle(a, b, perturbed);
    std::vector<Found> ranks;
    const Found* first = nullptr;
    int64_t num_not_judged = 0;
    std::vector<double> unseen;
    std::pair<double, std::string> largest_unseen;
    for (int rank = 0; rank < scene.num_ranks; ++rank) ranks.push_back(oracle.Judge(rank));
    for (const Found& found : ranks) {
      if (found.named && (first == nullptr || found.place < first->place)) first = &found;
      num_not_judged += found.num_not_judged;
      for (const auto& [difference, op] : found.unseen) {
        unseen.push_back(difference);
        if (difference > largest_unseen.first) largest_unseen = {difference, op};
      }
    }
    std::vector<std::string> notes, doubts;
    std::vector<int> named;
    for (int rank = 0; rank < scene.num_ranks; ++rank) {
      const Found& found = ranks[rank];
      if (!found.note.empty()) notes.push_back(found.note);
      if (!found.doubt.empty()) (first == nullptr ? doubts : notes).push_back(found.doubt);
      if (first == nullptr) continue;
      const double times = first->named->relative_difference() / first->named->explained();
      if ((found.named && WhatOf(*found.named) == WhatOf(*first->named)) ||
          (first->tensor.second && first->named->explained() > 0 &&
           oracle.TimesExplained(rank, *first) >= times / 2))
        named.push_back(rank);
    }
    const bool cannot_judge = first == nullptr && 10 * num_not_judged > verdict->num_compared();
    if (cannot_judge) doubts.push_back(absl::StrCat(num_not_judged, " outputs could not be judged|"));
    const auto say = [](const std::vector<std::string>& texts) {
      std::vector<Matcher<std::string>> all;
      for (const std::string& says : texts) {
        const size_t bar = says.find('|');
        all.push_back(
            testing::AllOf(testing::StartsWith(says.substr(0, bar)), HasSubstr(says.substr(bar + 1))));
      }
      return all;
    };
    EXPECT_THAT(verdict->notes(), ElementsAreArray(say(notes))) << text;
    EXPECT_THAT(verdict->problems(), ElementsAreArray(say(doubts))) << text;
    EXPECT_EQ(verdict->num_not_judged(), num_not_judged) << text;
    EXPECT_EQ(verdict->num_compared(), scene.num_ranks * scene.num_iterations * 7) << text;
    EXPECT_THAT(verdict->ranks(), ElementsAreArray(named)) << text;
    for (const auto* all : {&notes, &doubts})
      for (const std::string& says : *all)
        seen.insert(says.substr(says.find(':') + 1, says.find('|') - says.find(':')));
    if (first == nullptr) {
      seen.insert(doubts.empty() ? "none" : "unknown");
      EXPECT_EQ(verdict->kind(), doubts.empty() ? OriginVerdict::NONE : OriginVerdict::UNKNOWN) << text;
      const double median = unseen.empty() ? 0 : ott::Median(unseen);
      EXPECT_NEAR(verdict->median_unseen(), median, 1e-9 * median) << text;
      EXPECT_NEAR(verdict->largest_unseen(), largest_unseen.first, 1e-9 * largest_unseen.first) << text;
      EXPECT_EQ(verdict->largest_unseen_in(), largest_unseen.second) << text;
      continue;
    }
    const OriginVerdict& expected = *first->named;
    seen.insert(absl::StrCat(expected.operation(), " ", expected.kind(),
                             expected.of_increment() ? " increment" : "",
                             first->tensor.second ? "" : " input", named.size() > 1 ? " on ranks" : ""));
    EXPECT_EQ(WhatOf(*verdict), WhatOf(expected)) << text;
    EXPECT_EQ(verdict->of_increment(), expected.of_increment()) << text;
    // Elements that were kept tell more exactly by how much, over the norm of the reference.
    const bool is_kept = expected.module() == "kept" && !expected.of_increment();
    num_kept_increments += expected.module() == "kept" && expected.of_increment();
    EXPECT_EQ(verdict->estimated(), !is_kept) << text;
    EXPECT_GE(verdict->relative_difference(), (is_kept ? 0.5 : 1 - 1e-9) * expected.relative_difference())
        << text;
    if (!is_kept) {
      EXPECT_LE(verdict->relative_difference(), (1 + 1e-9) * expected.relative_difference()) << text;
    }
    for (const auto& [is, should] : {std::pair(verdict->explained(), expected.explained()),
                                     {verdict->input_difference(), expected.input_difference()}}) {
      EXPECT_TRUE(is == should || std::abs(is - should) <= 1e-9 * should) << is << " " << should << text;
    }
  }
  EXPECT_EQ(seen.count(" updates that are wrong or jumped|"), 1);
  EXPECT_GT(num_kept_increments, 0);
  EXPECT_GE(seen.size(), 20) << "the scenes became poor";
}

}  // namespace
}  // namespace ott::origin
