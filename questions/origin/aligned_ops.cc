#include "ott/questions/origin/aligned_ops.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/origin/sequence_alignment.h"

namespace ott::origin {
namespace {

// Numbers for what operations are, the same for both runs.
class Keys {
 public:
  struct OfLog {
    // By index of definition.
    std::vector<uint32_t> exact;
    std::vector<uint32_t> by_output;
  };

  OfLog Of(const LoggedOps& ops) {
    OfLog keys;
    for (const auto& definition : ops.definitions) {
      std::string tensors;
      std::string outputs;
      for (const OpTensorDefinition& tensor : definition->tensors) {
        const std::string shape =
            absl::StrCat(tensor.is_output ? ">" : "<", absl::StrJoin(tensor.shape, "x"));
        tensors += shape;
        if (tensor.is_output) outputs += shape;
      }
      const std::string kind = definition->is_backward ? "backward" : "forward";
      keys.exact.push_back(
          Number(absl::StrCat(definition->name, std::string(1, '\0'), definition->module,
                              std::string(1, '\0'), definition->phase, std::string(1, '\0'), kind, tensors)));
      keys.by_output.push_back(
          Number(absl::StrCat(std::string(2, '\0'), kind, static_cast<int>(definition->role), outputs)));
    }
    return keys;
  }

 private:
  uint32_t Number(const std::string& key) {
    return numbers_.try_emplace(key, static_cast<uint32_t>(numbers_.size())).first->second;
  }

  std::unordered_map<std::string, uint32_t> numbers_;
};

std::vector<uint32_t> KeysOf(const LoggedOps& ops, const std::vector<uint32_t>& keys, size_t begin,
                             size_t end) {
  std::vector<uint32_t> result;
  result.reserve(end - begin);
  for (size_t i = begin; i < end; ++i) result.push_back(keys[ops.ops[i].definition().index]);
  return result;
}

// Aligns one iteration, with indices from its beginning.
class IterationAligner {
 public:
  IterationAligner(const LoggedOps& a, const LoggedOps& b)
      : a_(a), b_(b), keys_a_(keys_.Of(a)), keys_b_(keys_.Of(b)) {}

  const std::vector<OpPair>& Align(const LoggedOps::Iteration& of_a, const LoggedOps::Iteration& of_b) {
    std::vector<uint32_t> sequence_a = KeysOf(a_, keys_a_.exact, of_a.begin, of_a.end);
    std::vector<uint32_t> sequence_b = KeysOf(b_, keys_b_.exact, of_b.begin, of_b.end);
    // An iteration mostly repeats the one before.
    if (sequence_a != last_a_ || sequence_b != last_b_) {
      matches_ = AlignSequences(sequence_a, sequence_b);
      matches_.emplace_back(sequence_a.size(), sequence_b.size());
      last_a_ = std::move(sequence_a);
      last_b_ = std::move(sequence_b);
    }
    pairs_.clear();
    size_t next_a = 0;
    size_t next_b = 0;
    for (const auto& [i, j] : matches_) {
      AlignGap(of_a.begin, next_a, i, of_b.begin, next_b, j);
      if (i < last_a_.size()) pairs_.push_back({i, j, true});
      next_a = i + 1;
      next_b = j + 1;
    }
    return pairs_;
  }

 private:
  // Returns those of the operations [begin, end) from `first` on that do not only pass on what they read.
  static std::vector<uint32_t> ThoseThatCompute(const LoggedOps& ops, size_t first, size_t begin,
                                                size_t end) {
    std::vector<uint32_t> result;
    for (size_t i = begin; i < end; ++i) {
      if (!IsCopy(ops.ops[first + i])) result.push_back(static_cast<uint32_t>(i));
    }
    return result;
  }

  static bool IsCopy(const LoggedOp& op) {
    bool has_output = false;
    for (int o = 0; o < op.num_tensors(); ++o) {
      if (!op.definition().tensors[o].is_output) continue;
      has_output = true;
      bool is_input = false;
      for (int i = 0; i < op.num_tensors(); ++i) {
        is_input = is_input || (!op.definition().tensors[i].is_output && op.digest(i) == op.digest(o));
      }
      if (!is_input) return false;
    }
    return has_output;
  }

  void AlignGap(size_t first_a, size_t begin_a, size_t end_a, size_t first_b, size_t begin_b, size_t end_b) {
    if (begin_a >= end_a || begin_b >= end_b) return;
    const std::vector<uint32_t> gap_a = ThoseThatCompute(a_, first_a, begin_a, end_a);
    const std::vector<uint32_t> gap_b = ThoseThatCompute(b_, first_b, begin_b, end_b);
    const auto keys_of = [](const LoggedOps& ops, const Keys::OfLog& keys, size_t first,
                            const std::vector<uint32_t>& gap) {
      std::vector<uint32_t> result;
      for (const uint32_t i : gap) result.push_back(keys.by_output[ops.ops[first + i].definition().index]);
      return result;
    };
    for (const auto& [i, j] :
         AlignSequences(keys_of(a_, keys_a_, first_a, gap_a), keys_of(b_, keys_b_, first_b, gap_b),
                        /*from_end=*/true)) {
      pairs_.push_back({gap_a[i], gap_b[j], false});
    }
  }

  const LoggedOps& a_;
  const LoggedOps& b_;
  Keys keys_;
  const Keys::OfLog keys_a_;
  const Keys::OfLog keys_b_;
  std::vector<uint32_t> last_a_;
  std::vector<uint32_t> last_b_;
  // The matches of these, and then the end of both.
  std::vector<std::pair<uint32_t, uint32_t>> matches_ = {{0, 0}};
  std::vector<OpPair> pairs_;
};

}  // namespace

absl::StatusOr<RunLogs> ReadRunLogs(const std::string& run_dir) {
  OTT_RETURN_IF_ERROR(CheckRunDirectory(run_dir));
  RunLogs run;
  run.run_dir = run_dir;
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  run.world_size = ranks.empty() ? 0 : ranks.back() + 1;
  if (const absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir); info.ok()) {
    run.world_size = info->world_size();
  } else {
    // Ranks that left nothing would not be missed.
    run.problems.emplace_back(info.status().message());
  }
  std::vector<absl::StatusOr<LoggedOps>> logs(ranks.size());
  ParallelFor(static_cast<int64_t>(ranks.size()), NumThreads(0),
              [&](int64_t i) { logs[i] = ReadOpLog(OpLogPath(run_dir, ranks[i])); });
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!logs[i].ok()) {
      run.problems.emplace_back(logs[i].status().message());
      continue;
    }
    if (!logs[i]->cut.empty()) run.problems.push_back(logs[i]->cut);
    run.ranks[ranks[i]] = std::make_unique<LoggedOps>(*std::move(logs[i]));
  }
  for (int rank = 0; rank < run.world_size && run.problems.size() < 10; ++rank) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) {
      run.problems.push_back(absl::StrCat(run_dir, ": nothing of rank ", rank));
    }
  }
  if (run.ranks.empty()) {
    return absl::NotFoundError(
        absl::StrCat(run_dir, ": no log of operations; `op_log {}` in ott.Config writes one",
                     run.problems.empty() ? "" : ": ", run.problems.empty() ? "" : run.problems.front()));
  }
  return run;
}

AlignedOps AlignOps(const LoggedOps& a, const LoggedOps& b) {
  AlignedOps aligned;
  aligned.a = &a;
  aligned.b = &b;
  aligned.partner_of_a.assign(a.ops.size(), -1);
  aligned.partner_of_b.assign(b.ops.size(), -1);
  aligned.pairs.reserve(std::min(a.ops.size(), b.ops.size()));
  std::unordered_map<int64_t, const LoggedOps::Iteration*> of_b;
  for (const LoggedOps::Iteration& iteration : b.iterations) of_b[iteration.number] = &iteration;
  IterationAligner aligner(a, b);
  for (const LoggedOps::Iteration& iteration : a.iterations) {
    const auto other = of_b.find(iteration.number);
    if (other == of_b.end()) continue;
    AlignedOps::Iteration& both = aligned.iterations.emplace_back();
    both.number = iteration.number;
    both.begin = aligned.pairs.size();
    both.a_is_cut = iteration.is_cut;
    both.b_is_cut = other->second->is_cut;
    for (const OpPair& pair : aligner.Align(iteration, *other->second)) {
      const OpPair placed = {static_cast<uint32_t>(iteration.begin + pair.a),
                             static_cast<uint32_t>(other->second->begin + pair.b), pair.same};
      aligned.partner_of_a[placed.a] = static_cast<int32_t>(placed.b);
      aligned.partner_of_b[placed.b] = static_cast<int32_t>(placed.a);
      aligned.num_renamed += pair.same ? 0 : 1;
      aligned.pairs.push_back(placed);
    }
    both.end = aligned.pairs.size();
    const auto num_pairs = static_cast<int64_t>(both.end - both.begin);
    aligned.num_only_in_a += static_cast<int64_t>(iteration.end - iteration.begin) - num_pairs;
    aligned.num_only_in_b += static_cast<int64_t>(other->second->end - other->second->begin) - num_pairs;
  }
  return aligned;
}

int64_t IterationOf(const LoggedOps& ops, size_t op) {
  const auto after = std::upper_bound(
      ops.iterations.begin(), ops.iterations.end(), op,
      [](size_t index, const LoggedOps::Iteration& iteration) { return index < iteration.begin; });
  return (after - 1)->number;
}

}  // namespace ott::origin
