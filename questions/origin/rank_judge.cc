#include "ott/questions/origin/rank_judge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/questions/origin/updates.h"

namespace ott::origin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Another run of an operation that differs by so much less shows that it is not always wrong.
constexpr double kMuchLess = 4;

// Fewer runs, and less than so many times what is explained, do not show that an operation is always wrong.
constexpr size_t kFewRuns = 6;
constexpr double kSmallExcess = 2;
// Sums in another order take less than half of what is explained, where an operation does so each time. One
// that takes more may be one that rounds its sums. A single run does not show that it does so each time.
constexpr double kMostOfWhatIsExplained = 0.5;
constexpr size_t kLeastRuns = 2;

}  // namespace

RankJudge::RankJudge(const AlignedOps& aligned, const AlignedOps* perturbed,
                     const CollectiveInputs& collectives, const Gains& gains, int world_size)
    : aligned_(aligned),
      perturbed_(perturbed),
      collectives_(collectives),
      gains_(gains),
      world_size_(world_size),
      writers_a_(*aligned.a, /*indexed=*/perturbed != nullptr),
      writers_b_(*aligned.b, /*indexed=*/perturbed != nullptr) {
  for (const auto& definition : aligned.a->definitions) {
    for (const OpTensorDefinition& tensor : definition->tensors) {
      coarsest_roundoff_ = std::max(coarsest_roundoff_, UnitRoundoff(tensor.dtype));
    }
  }
}

bool RankJudge::PairIsEqual(const OpPair& pair) const {
  const LoggedOp& a = aligned_.op_a(pair);
  const LoggedOp& b = aligned_.op_b(pair);
  if (pair.same) {
    for (int i = 0; i < a.num_tensors(); ++i) {
      if (a.digest(i) != b.digest(i)) return false;
    }
    return true;
  }
  for (const TensorPair& tensor : PairTensors(aligned_, pair, /*outputs=*/true)) {
    if (tensor.a < 0 || tensor.b < 0 || a.digest(tensor.a) != b.digest(tensor.b)) return false;
  }
  return true;
}

std::optional<Candidate> RankJudge::Find() {
  for (const AlignedOps::Iteration& iteration : aligned_.iterations) {
    for (size_t i = iteration.begin; i < iteration.end; ++i) {
      const OpPair& pair = aligned_.pairs[i];
      if (IsCollective(aligned_.op_a(pair))) {
        instance_ = counter_.Next(iteration.number, aligned_.op_a(pair).definition());
      }
      if (PairIsEqual(pair)) continue;
      differs_ = true;
      writers_a_.GoTo(pair.a);
      writers_b_.GoTo(pair.b);
      if (std::optional<Candidate> candidate = Judge(i, iteration)) {
        if (candidate->iteration < 0) candidate->iteration = iteration.number;
        candidate->found_in = iteration.number;
        candidate->position = i - iteration.begin;
        candidate->pair = i;
        return candidate;
      }
      // All that differs from here on comes from what was explained.
      if (!tolerant()) return std::nullopt;
    }
  }
  return FindLoneUpdate(aligned_, first_lone_update_);
}

double RankJudge::TimesExplained(const Candidate& named) {
  double most = 0;
  CollectiveCounter counter;
  for (const AlignedOps::Iteration& iteration : aligned_.iterations) {
    if (iteration.number != named.iteration) continue;
    for (size_t i = iteration.begin; i < iteration.end; ++i) {
      const OpPair& pair = aligned_.pairs[i];
      const LoggedOp& a = aligned_.op_a(pair);
      const LoggedOp& b = aligned_.op_b(pair);
      if (IsCollective(a)) instance_ = counter.Next(iteration.number, a.definition());
      if (!pair.same || !IsSameOperation(b.definition(), named.op->definition())) continue;
      Inputs inputs;
      if (IsCollective(a)) inputs.difference = collectives_.Find(instance_).difference;
      for (const TensorPair& tensor : PairTensors(aligned_, pair, /*outputs=*/false)) {
        inputs.difference = std::max(inputs.difference, InputDifference(pair, tensor));
      }
      for (const TensorPair& tensor : PairTensors(aligned_, pair, /*outputs=*/true)) {
        if (b.definition().tensors[tensor.b].name != named.tensor) continue;
        if (named.of_increment) {
          const auto excess = ExcessOf(pair, tensor, OutputOf(pair, tensor));
          if (excess.has_value()) most = std::max(most, excess->times());
          continue;
        }
        const double difference = RelativeDifference(a, tensor.a, b, tensor.b);
        const double explained =
            OutputTolerance(pair, tensor, OutputOf(pair, tensor), inputs, /*difference=*/kInfinity);
        if (difference > most * explained) most = difference / explained;
      }
    }
  }
  return most;
}

std::optional<Candidate> RankJudge::Judge(size_t index, const AlignedOps::Iteration& iteration) {
  const OpPair& pair = aligned_.pairs[index];
  const LoggedOp& a = aligned_.op_a(pair);
  const LoggedOp& b = aligned_.op_b(pair);
  Inputs inputs;
  if (std::optional<Candidate> candidate = JudgeInputs(index, iteration, inputs)) return candidate;
  if (IsCollective(a)) {
    inputs.difference = std::max(inputs.difference, collectives_.Find(instance_).difference);
  }
  for (const TensorPair& tensor : PairTensors(aligned_, pair, /*outputs=*/true)) {
    if (tensor.a < 0 || tensor.b < 0 || a.digest(tensor.a) == b.digest(tensor.b)) continue;
    if (std::optional<Candidate> candidate = JudgeOutput(pair, tensor, inputs, iteration)) return candidate;
  }
  return std::nullopt;
}

const LoggedOp* RankJudge::PerturbedOp(const OpPair& pair) const {
  if (perturbed_ == nullptr) return nullptr;
  const int32_t other = perturbed_->partner_of_a[pair.a];
  if (other < 0) return nullptr;
  const LoggedOp& op = perturbed_->b->ops[other];
  return op.num_tensors() == aligned_.op_a(pair).num_tensors() ? &op : nullptr;
}

double RankJudge::InputDifference(const OpPair& pair, const TensorPair& tensor) const {
  const LoggedOp& a = aligned_.op_a(pair);
  const LoggedOp& b = aligned_.op_b(pair);
  if (pair.same) return RelativeDifference(a, tensor.a, b, tensor.b);
  // It stands for operations that end with a: its inputs are tensors of these.
  if (!tolerant() && writers_a_.Knows(b.digest(tensor.b))) return 0;
  double least = std::nan("");
  const size_t furthest = 64;
  for (size_t back = 0; back < furthest && back <= pair.a; ++back) {
    const size_t op = pair.a - back;
    if (back > 0 && aligned_.partner_of_a[op] >= 0) break;
    const LoggedOp& other = aligned_.a->ops[op];
    for (int i = 0; i < other.num_tensors(); ++i) {
      if (back == 0 && other.definition().tensors[i].is_output) continue;
      if (other.definition().tensors[i].num_elements != b.definition().tensors[tensor.b].num_elements) {
        continue;
      }
      const double difference = RelativeDifference(other, i, b, tensor.b);
      if (!(least <= difference)) least = difference;
    }
  }
  return least;
}

double RankJudge::UnloggedTolerance(size_t index) {
  for (; num_looked_at_ < index; ++num_looked_at_) {
    const OpPair& pair = aligned_.pairs[num_looked_at_];
    for (const TensorPair& tensor : PairTensors(aligned_, pair, /*outputs=*/true)) {
      if (tensor.a < 0 || tensor.b < 0) continue;
      const double difference =
          RelativeDifference(aligned_.op_a(pair), tensor.a, aligned_.op_b(pair), tensor.b);
      if (std::isfinite(difference)) largest_difference_ = std::max(largest_difference_, difference);
    }
  }
  return kSafety * (largest_difference_ + 2 * coarsest_roundoff_);
}

std::optional<Candidate> RankJudge::JudgeInputs(size_t index, const AlignedOps::Iteration& iteration,
                                                Inputs& inputs) {
  const OpPair& pair = aligned_.pairs[index];
  const LoggedOp& a = aligned_.op_a(pair);
  const LoggedOp& b = aligned_.op_b(pair);
  for (const TensorPair& tensor : PairTensors(aligned_, pair, /*outputs=*/false)) {
    if (tensor.b < 0 || (pair.same && tensor.a < 0)) continue;
    if (!b.is_known(tensor.b) || (tensor.a >= 0 && !a.is_known(tensor.a))) {
      // It may differ, and nobody is to blame for that.
      inputs.is_guess = true;
      inputs.difference = std::max(inputs.difference, 1e-30);
      continue;
    }
    const double difference = InputDifference(pair, tensor);
    if (difference == 0) continue;
    const Digest of_a = tensor.a >= 0 ? a.digest(tensor.a) : Digest();
    const int64_t writer_a = tensor.a >= 0 ? writers_a_.WriterOf(of_a) : -1;
    const bool made_alike =
        tolerant() && writer_a >= 0 && IsWrittenBy(aligned_.partner_of_a[writer_a], b.digest(tensor.b));
    // An operation of another name does not tell which tensor is which.
    const bool is_known = pair.same && !std::isnan(difference);
    if (!made_alike && (is_known || !tolerant())) {
      const double allowed = tolerant() ? InputTolerance(pair, tensor, writer_a) : 0;
      if (!(difference <= allowed)) {
        const int64_t writer_b = writers_b_.WriterOf(b.digest(tensor.b));
        // Nothing tells what makes it, and so not what that makes of differences that were explained.
        const bool may_be_explained =
            tolerant() && writer_a < 0 && writer_b < 0 &&
            (PerturbedOp(pair) == nullptr || difference <= UnloggedTolerance(index));
        if (!may_be_explained) {
          const bool only_b_ran_it = writer_b >= 0 && aligned_.partner_of_b[writer_b] < 0;
          const int64_t first_inserted = only_b_ran_it ? FirstInserted(writer_b) : -1;
          return ExplainInput(aligned_, pair, tensor, {writer_a, writer_b, first_inserted}, difference);
        }
        doubtful_inputs_.Add(b, iteration.number, b.definition().tensors[tensor.b].name);
      }
    }
    // An operation of another name may read what is like no input of the reference's.
    const bool is_like_nothing =
        tolerant() && !pair.same && !made_alike && difference > UnloggedTolerance(index);
    if (std::isnan(difference) || is_like_nothing) {
      inputs.is_guess = true;
      inputs.difference = std::max(inputs.difference, 1e-30);
    } else {
      inputs.difference = std::max(inputs.difference, difference);
    }
  }
  return std::nullopt;
}

int64_t RankJudge::FirstInserted(int64_t op_b) {
  constexpr int kMaxSteps = 1000;
  for (int step = 0; step < kMaxSteps; ++step) {
    const LoggedOp& op = aligned_.b->ops[op_b];
    int64_t before = -1;
    for (int i = 0; i < op.num_tensors() && before < 0; ++i) {
      if (op.definition().tensors[i].is_output) continue;
      if (!tolerant() && writers_a_.Knows(op.digest(i))) continue;
      const int64_t writer = writers_b_.WriterOf(op.digest(i));
      if (writer >= 0 && writer < op_b && aligned_.partner_of_b[writer] < 0) before = writer;
    }
    if (before < 0) break;
    op_b = before;
  }
  return op_b;
}

std::optional<IncrementExcess> RankJudge::ExcessOf(const OpPair& pair, const TensorPair& tensor,
                                                   const RoundedOutput& output) const {
  const LoggedOp* const perturbed = PerturbedOp(pair);
  if (!pair.same || perturbed == nullptr) return std::nullopt;
  return ExcessOfIncrement(aligned_.op_a(pair), aligned_.op_b(pair), *perturbed, tensor.a, output);
}

bool RankJudge::IsWrittenBy(int32_t op_b, const Digest& digest) const {
  if (op_b < 0) return false;
  const LoggedOp& op = aligned_.b->ops[op_b];
  for (int i = 0; i < op.num_tensors(); ++i) {
    if (op.digest(i) == digest && op.definition().tensors[i].is_output) return true;
  }
  return false;
}

RoundedOutput RankJudge::OutputOf(const OpPair& pair, const TensorPair& tensor) const {
  RoundedOutput output = RoundedOutputOf(aligned_.op_a(pair), tensor.a, world_size_);
  const OpDefinition& other = aligned_.op_b(pair).definition();
  if (!pair.same) {
    output.reduction_length = std::max(output.reduction_length, ReductionLength(other, tensor.b));
  }
  const DType dtype = other.tensors[tensor.b].dtype;
  if (UnitRoundoff(dtype) > UnitRoundoff(output.dtype)) output.dtype = dtype;
  return output;
}

double RankJudge::InputTolerance(const OpPair& pair, const TensorPair& tensor, int64_t writer_a) const {
  const LoggedOp& a = aligned_.op_a(pair);
  RoundedOutput value = RoundedOutputOf(a, tensor.a, world_size_);
  if (UnitRoundoff(value.dtype) == 0) return 0;
  value.reduction_length = 1;
  if (writer_a >= 0) {
    const LoggedOp& writer = aligned_.a->ops[writer_a];
    for (int i = 0; i < writer.num_tensors(); ++i) {
      if (writer.definition().tensors[i].is_output && writer.digest(i) == a.digest(tensor.a)) {
        value = RoundedOutputOf(writer, i, world_size_);
      }
    }
  }
  const LoggedOp* const perturbed = PerturbedOp(pair);
  const double amplified = perturbed == nullptr ? 0 : RelativeDifference(a, tensor.a, *perturbed, tensor.a);
  return kSafety * amplified + AfterRounding(value, SummationBound(value, 1)) + TensorSketch::kResolution;
}

double RankJudge::PerturbedInputDifference(const OpPair& pair) const {
  const LoggedOp& a = aligned_.op_a(pair);
  double largest = IsCollective(a) ? collectives_.Find(instance_).perturbed : 0;
  const LoggedOp* const perturbed = PerturbedOp(pair);
  if (perturbed == nullptr) return largest;
  for (int i = 0; i < a.num_tensors(); ++i) {
    if (a.definition().tensors[i].is_output) continue;
    largest = std::max(largest, RelativeDifference(a, i, *perturbed, i));
  }
  return largest;
}

std::optional<double> RankJudge::GainOf(const OpPair& pair, int tensor, const RoundedOutput& output) {
  const LoggedOp& a = aligned_.op_a(pair);
  const auto [known, is_new] = median_gains_.try_emplace({a.definition().index, tensor});
  if (is_new) known->second = gains_.MedianOf(a.definition(), tensor);
  std::optional<double> gain = known->second;
  const LoggedOp* const perturbed = PerturbedOp(pair);
  const double before = PerturbedInputDifference(pair);
  if (perturbed != nullptr && before > 0) {
    const double after = RelativeDifference(a, tensor, *perturbed, tensor);
    gain = std::max(gain.value_or(0), BeforeRounding(output, after) / before);
  }
  if (gain) gain = std::max(*gain, 1.0);
  return gain;
}

double RankJudge::OutputTolerance(const OpPair& pair, const TensorPair& tensor, const RoundedOutput& output,
                                  const Inputs& inputs, double difference) {
  const bool inputs_differ = inputs.difference > 0;
  // Integer outputs change discontinuously; rounding cannot bound them.
  if (UnitRoundoff(output.dtype) == 0) {
    if (inputs_differ) ++num_not_judged_;
    return inputs_differ ? kInfinity : 0;
  }
  const double steps = inputs_differ ? StepAllowance(aligned_.op_a(pair), tensor.a, kFewSteps) : 0;
  const auto tolerance = [&](double gain, double of_inputs) {
    return AfterRounding(output, kSafety * gain * of_inputs + SummationBound(output, gain)) +
           TensorSketch::kResolution + steps;
  };
  // Mostly that is enough, and the perturbed run need not be looked at.
  const double least = tolerance(1, inputs.difference);
  if (difference <= least && !inputs.is_guess) return least;
  const std::optional<double> gain = GainOf(pair, tensor.a, output);
  if (inputs_differ && (!gain || inputs.is_guess)) {
    // It hardly makes more of them than any operation of which that is known.
    if (!inputs.is_guess) {
      if (!largest_gain_) largest_gain_ = gains_.LargestMedian();
      const double most = tolerance(std::max(*largest_gain_, 1.0), inputs.difference);
      if (*largest_gain_ > 0 && difference > most) return most;
    }
    ++num_not_judged_;
    return kInfinity;
  }
  // A difference of the inputs may be as large as in the perturbed run, and in other elements: a single
  // number that is rounded the other way weighs more in one of them than in another.
  const double of_inputs = inputs_differ ? std::max(inputs.difference, PerturbedInputDifference(pair)) : 0;
  return tolerance(gain.value_or(1), of_inputs);
}

RankJudge::Jump RankJudge::MayBeJump(const OpPair& pair, const TensorPair& tensor,
                                     const RoundedOutput& output, const Inputs& inputs, double difference,
                                     double explained, size_t first_of_iteration) {
  const LoggedOp& a = aligned_.op_a(pair);
  if (inputs.difference == 0 || InputUpdated(a, tensor.a) >= 0) return Jump::kNo;
  double largest_share = 0;
  for (int i = 0; i < a.num_tensors(); ++i) {
    if (a.definition().tensors[i].is_output || !(a.norm(i) > 0)) continue;
    largest_share = std::max(largest_share, a.max_abs(i) / a.norm(i));
  }
  const double gain = GainOf(pair, tensor.a, output).value_or(1);
  if (difference > gain * LargestJump(largest_share)) return Jump::kNo;
  const std::optional<size_t> runs = RunsThatAllDiffer(pair, tensor.a, difference, first_of_iteration);
  if (!runs.has_value()) return Jump::kYes;
  const std::vector<OpTensorDefinition>& tensors = a.definition().tensors;
  const bool is_narrow = std::any_of(tensors.begin(), tensors.end(), [](const OpTensorDefinition& of_a) {
    return UnitRoundoff(of_a.dtype) > UnitRoundoff(DType::kFloat32);
  });
  return is_narrow && *runs < kFewRuns && difference < kSmallExcess * explained ? Jump::kPerhaps : Jump::kNo;
}

std::optional<size_t> RankJudge::RunsThatAllDiffer(const OpPair& pair, int tensor, double difference,
                                                   size_t from) {
  if (pairs_of_definition_.empty()) {
    pairs_of_definition_.resize(aligned_.a->definitions.size());
    for (size_t i = 0; i < aligned_.pairs.size(); ++i) {
      if (!aligned_.pairs[i].same) continue;
      pairs_of_definition_[aligned_.op_a(aligned_.pairs[i]).definition().index].push_back(i);
    }
  }
  const std::vector<size_t>& all = pairs_of_definition_[aligned_.op_a(pair).definition().index];
  const auto first = std::lower_bound(all.begin(), all.end(), from);
  const bool is_less_once = std::any_of(first, all.end(), [&](size_t other) {
    const LoggedOp& a = aligned_.op_a(aligned_.pairs[other]);
    const LoggedOp& b = aligned_.op_b(aligned_.pairs[other]);
    return kMuchLess * RelativeDifference(a, tensor, b, tensor) < difference;
  });
  if (is_less_once) return std::nullopt;
  return static_cast<size_t>(all.end() - first);
}

void RankJudge::NoteExplained(const OpPair& pair, const TensorPair& tensor, const RoundedOutput& output,
                              const Inputs& inputs, double difference, double at_least,
                              const std::optional<IncrementExcess>& excess,
                              const AlignedOps::Iteration& iteration) {
  const LoggedOp& b = aligned_.op_b(pair);
  if (excess.has_value() && excess->is_doubtful) doubtful_updates_.Add(b, iteration.number);
  if (inputs.difference == 0 || UnitRoundoff(output.dtype) == 0) return;
  const size_t definition = aligned_.op_a(pair).definition().index;
  const bool is_first = is_in_unseen_.insert({definition, tensor.a}).second;
  if (!is_first && difference <= kMostOfWhatIsExplained * at_least) return;
  // OutputTolerance() counts what cannot be judged; here it was counted already, or is too small to matter.
  const int64_t num_not_judged = num_not_judged_;
  const double explained = OutputTolerance(pair, tensor, output, inputs, kInfinity);
  num_not_judged_ = num_not_judged;
  const double unseen = excess.has_value() ? excess->unseen : explained;
  if (is_first && std::isfinite(unseen)) unseen_.push_back({unseen, &b});
  if (pair.same && difference > kMostOfWhatIsExplained * explained &&
      RunsThatAllDiffer(pair, tensor.a, difference, iteration.begin).value_or(0) >= kLeastRuns) {
    doubtful_outputs_.Add(b, iteration.number);
  }
}

void RankJudge::Some::Add(const LoggedOp& op, int64_t iteration, const std::string& input) {
  if (num++ > 0) return;
  first = absl::StrCat(input, input.empty() ? "" : " of ", DescribeOperation(op.definition()),
                       " in iteration ", iteration);
}

std::optional<Candidate> RankJudge::JudgeOutput(const OpPair& pair, const TensorPair& tensor,
                                                const Inputs& inputs,
                                                const AlignedOps::Iteration& iteration) {
  const LoggedOp& a = aligned_.op_a(pair);
  const LoggedOp& b = aligned_.op_b(pair);
  const RoundedOutput output = OutputOf(pair, tensor);
  const double difference = RelativeDifference(a, tensor.a, b, tensor.b);
  // One of them could not be read, or is beyond what a sketch holds.
  if (std::isnan(difference) && (tolerant() || !a.is_known(tensor.a) || !b.is_known(tensor.b))) {
    ++num_not_judged_;
    return std::nullopt;
  }
  if (IsCollective(a) && collectives_.Moves(iteration.number, a.digest(tensor.a), b.digest(tensor.b))) {
    return std::nullopt;
  }
  double explained = AfterRounding(output, SummationBound(output, 1));
  std::optional<IncrementExcess> excess;
  if (tolerant()) {
    explained = OutputTolerance(pair, tensor, output, inputs, difference);
    if (difference <= explained) {
      excess = ExcessOf(pair, tensor, output);
      if (!excess.has_value() || excess->times() <= 1) {
        NoteExplained(pair, tensor, output, inputs, difference, explained, excess, iteration);
        return std::nullopt;
      }
    }
    const Jump jump = MayBeJump(pair, tensor, output, inputs, difference, explained, iteration.begin);
    if (jump != Jump::kNo) {
      (jump == Jump::kPerhaps ? doubtful_jumps_ : jumps_).Add(b, iteration.number);
      return std::nullopt;
    }
  } else if (inputs.difference > 0) {
    // The difference of a collective may come from another rank.
    return std::nullopt;
  }
  Candidate candidate;
  candidate.kind = b.definition().role == OpRole::kUpdate ? OriginVerdict::UPDATE
                   : b.definition().role == OpRole::kLoad ? OriginVerdict::INPUT
                                                          : OriginVerdict::OPERATION;
  candidate.op = &b;
  candidate.tensor = b.definition().tensors[tensor.b].name;
  candidate.tensor_a = tensor.a;
  candidate.tensor_b = tensor.b;
  candidate.of_increment = excess.has_value();
  candidate.difference = excess.has_value() ? excess->difference : difference;
  candidate.input_difference = inputs.difference;
  candidate.explained = excess.has_value() ? excess->explained : explained;
  if (a.arguments() != b.arguments()) {
    candidate.detail = absl::StrCat("its arguments are ", std::string(b.arguments()), " instead of ",
                                    std::string(a.arguments()));
  } else if (excess.has_value() && excess->scale != 1) {
    candidate.detail = absl::StrFormat("it adds %.4g times as much as the reference's", excess->scale);
  } else if (!pair.same) {
    candidate.detail = absl::StrCat("it stands for ", DescribeOperation(a.definition()), " of the reference");
  }
  return candidate;
}

}  // namespace ott::origin
