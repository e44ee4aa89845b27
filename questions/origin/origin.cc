#include "ott/questions/origin/origin.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"
#include "ott/core/statistics/location.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/origin/kept_tensors.h"
#include "ott/questions/origin/origin_text.h"
#include "ott/questions/origin/rank_judge.h"
#include "ott/questions/origin/spread.h"

namespace ott::origin {
namespace {

// A share of the outputs: more may not go without judgement if the answer is that nothing is wrong.
constexpr double kMostNotJudged = 0.1;
// An operation that is named on one rank is on another one, too, where it differs by so many times as many
// times what is explained: what makes it wrong does not end where a tolerance does.
constexpr double kAlmostAsMuch = 0.5;
// Limits the ranks that are noted.
constexpr int kMaxNotes = 10;

// One rank of the reference, one of the current run, and what became of them.
struct Compared {
  int rank_a = 0;
  int rank_b = 0;
  AlignedOps aligned;
  std::optional<AlignedOps> perturbed;
  std::optional<Candidate> candidate;
  // True if what is named happened on this rank.
  bool is_named = false;
  bool differs = false;
  int64_t num_not_judged = 0;
  std::string jumps;
  std::string doubts;
  std::vector<RankJudge::Unseen> unseen;
};

// Returns true if two ranks found the same.
bool IsSame(const Candidate& a, const Candidate& b) {
  return a.kind == b.kind && a.iteration == b.iteration && a.tensor == b.tensor &&
         a.last_written_by == b.last_written_by && IsSameOperation(a.op->definition(), b.op->definition());
}

// Adds what only one of the runs has, so that nothing was compared with it.
void AddWhatIsNotCompared(const RunLogs& reference, const RunLogs& current,
                          const std::vector<Compared>& compared, OriginVerdict* verdict) {
  if (reference.world_size != current.world_size) {
    verdict->add_problems(absl::StrCat("the reference has ", reference.world_size,
                                       " ranks, and the current run ", current.world_size,
                                       ": only ranks of both are compared"));
  }
  // Ranks mostly log the same iterations.
  std::map<std::string, std::vector<int>> ranks_of;
  for (const Compared& rank : compared) {
    const std::vector<AlignedOps::Iteration>& both = rank.aligned.iterations;
    const size_t only_a = rank.aligned.a->iterations.size() - both.size();
    const size_t only_b = rank.aligned.b->iterations.size() - both.size();
    if (only_a + only_b == 0) continue;
    ranks_of[absl::StrCat(
                 "iterations logged in the reference only: ", only_a, ", in the current run only: ", only_b,
                 ", in both: ", both.size(),
                 both.empty() ? "" : absl::StrCat(", ", both.front().number, " to ", both.back().number))]
        .push_back(rank.rank_b);
  }
  for (const auto& [what, ranks] : ranks_of) {
    verdict->add_problems(absl::StrCat(FormatRanks(ranks), ": ", what));
  }
}

// Tensors that were not compared since nothing is known of them, where nothing else tells that.
void AddWhatIsNotKnown(const std::vector<Compared>& compared, OriginVerdict* verdict) {
  int64_t num_tensors = 0;
  int64_t num_unknown = 0;
  const auto count = [&](const LoggedOp& op) {
    num_tensors += op.num_tensors();
    for (int i = 0; i < op.num_tensors(); ++i) num_unknown += op.is_known(i) ? 0 : 1;
  };
  for (const Compared& rank : compared) {
    for (const OpPair& pair : rank.aligned.pairs) {
      count(rank.aligned.op_a(pair));
      count(rank.aligned.op_b(pair));
    }
  }
  if (num_tensors == 0) {
    verdict->add_problems(
        "no operation was logged with what it reads or writes: there is nothing to compare");
  }
  if (num_unknown > 0) {
    verdict->add_problems(absl::StrCat(num_unknown, " of ", num_tensors,
                                       " tensors could not be read when they were logged; the run's "
                                       "FinishIter() said why"));
  }
}

absl::StatusOr<std::vector<Compared>> Align(const RunLogs& reference, const RunLogs& current,
                                            const RunLogs* perturbed,
                                            const std::vector<std::pair<int, int>>& ranks) {
  std::vector<Compared> compared;
  for (const auto& [rank_a, rank_b] : ranks) {
    if (reference.ranks.count(rank_a) == 0 || current.ranks.count(rank_b) == 0) continue;
    Compared& rank = compared.emplace_back();
    rank.rank_a = rank_a;
    rank.rank_b = rank_b;
  }
  if (compared.empty()) {
    return absl::NotFoundError(
        absl::StrCat(reference.run_dir, ", ", current.run_dir, ": no rank has a log of operations in both"));
  }
  ParallelFor(static_cast<int64_t>(compared.size()), NumThreads(0), [&](int64_t i) {
    Compared& rank = compared[i];
    const LoggedOps& a = *reference.ranks.at(rank.rank_a);
    rank.aligned = AlignOps(a, *current.ranks.at(rank.rank_b));
    if (perturbed == nullptr) return;
    const auto log = perturbed->ranks.find(rank.rank_a);
    if (log != perturbed->ranks.end()) rank.perturbed = AlignOps(a, *log->second);
  });
  int64_t num_iterations = 0;
  int64_t num_pairs = 0;
  int64_t num_renamed = 0;
  int64_t num_only_in_a = 0;
  int64_t num_only_in_b = 0;
  for (const Compared& rank : compared) {
    num_iterations += static_cast<int64_t>(rank.aligned.iterations.size());
    num_pairs += static_cast<int64_t>(rank.aligned.pairs.size());
    num_renamed += rank.aligned.num_renamed;
    num_only_in_a += rank.aligned.num_only_in_a;
    num_only_in_b += rank.aligned.num_only_in_b;
  }
  if (num_iterations == 0) {
    return absl::NotFoundError(
        absl::StrCat(reference.run_dir, ", ", current.run_dir, ": no iteration was logged in both"));
  }
  if (num_pairs == 0 && (num_only_in_a == 0 || num_only_in_b == 0)) {
    const std::string& empty = num_only_in_a == 0 ? reference.run_dir : current.run_dir;
    return absl::NotFoundError(absl::StrCat(
        empty,
        ": no operation was logged in the iterations that both logged; a program's operations are logged "
        "under `python -m optim_test_tools`, by EmitNvtx of LibTorch, or by op ranges of its own"));
  }
  // Counts those of the run with fewer operations, as one may stand for several.
  const int64_t num_fewer = num_pairs + std::min(num_only_in_a, num_only_in_b);
  if (num_pairs == num_renamed || 2 * num_pairs < num_fewer) {
    return absl::NotFoundError(
        absl::StrCat(reference.run_dir, ", ", current.run_dir, ": only ", num_pairs - num_renamed, " of ",
                     num_fewer, " operations of the one are in the other; are these runs of one program, ",
                     "parallel in the same way?"));
  }
  return compared;
}

// The first of the ranks with a candidate, in iteration and place in the log; null: none has.
const Compared* FirstOf(const std::vector<Compared>& compared) {
  const auto place = [](const Compared& rank) {
    return std::make_pair(rank.candidate->found_in, rank.candidate->position);
  };
  const Compared* first = nullptr;
  for (const Compared& rank : compared) {
    if (rank.candidate && (first == nullptr || place(rank) < place(*first))) first = &rank;
  }
  return first;
}

// Returns FirstOf().
const Compared* Judge(std::vector<Compared>& compared, bool tolerant, int world_size) {
  CollectiveInputs collectives;
  for (const Compared& rank : compared) {
    collectives.Add(rank.aligned, rank.perturbed ? &*rank.perturbed : nullptr);
  }
  Gains gains;
  for (const Compared& rank : compared) {
    if (rank.perturbed) gains.Add(*rank.perturbed, collectives, world_size);
  }
  // A rank that the perturbed run has no log of has one without operations.
  const auto judge_of = [&](Compared& rank) {
    if (tolerant && !rank.perturbed) {
      rank.perturbed.emplace();
      rank.perturbed->partner_of_a.assign(rank.aligned.a->ops.size(), -1);
    }
    return RankJudge(rank.aligned, tolerant ? &*rank.perturbed : nullptr, collectives, gains, world_size);
  };
  ParallelFor(static_cast<int64_t>(compared.size()), NumThreads(0), [&](int64_t i) {
    Compared& rank = compared[i];
    RankJudge judge = judge_of(rank);
    rank.candidate = judge.Find();
    rank.differs = judge.differs();
    rank.num_not_judged = judge.num_not_judged();
    rank.unseen = judge.unseen();
    const auto say = [&](const RankJudge::Some& some, const char* what, const char* the_first,
                         const char* way_out, std::string& to) {
      if (some.num == 0) return;
      to = absl::StrCat("rank ", rank.rank_b, ": ", what, ": ", some.num, ", the first ", the_first,
                        some.first, way_out);
    };
    say(judge.jumps(),
        "outputs that differ more than is explained, but not in each run of their operation, as where it "
        "rounds inside",
        "of ", "", rank.jumps);
    say(judge.doubtful_updates(), "updates that are wrong or jumped in many elements", "",
        "; is its learning rate the reference's?", rank.doubts);
    say(judge.doubtful_outputs(),
        "outputs that differ by most of what is explained, and much in each run of their operation, which "
        "may round its sums",
        "of ", "; sum in the reference's order, or look at its tensors (op_log { keep })", rank.doubts);
    say(judge.doubtful_jumps(),
        "outputs that differ more than is explained in the few runs of their operation, which may round "
        "inside",
        "of ", "; log more iterations", rank.doubts);
    if (!judge.first_lone_update().empty()) {
      rank.doubts = absl::StrCat("rank ", rank.rank_b, ": only one of the runs logged ",
                                 judge.first_lone_update(), "; did the other one make that update?");
    }
    say(judge.doubtful_inputs(),
        "inputs that no operation made that was logged, and that differ more than in the perturbed run",
        "the ", "; log what makes it", rank.doubts);
  });
  const Compared* const first = FirstOf(compared);
  if (first == nullptr) return nullptr;
  const Candidate& named = *first->candidate;
  const double times = named.explained > 0 ? named.difference / named.explained : 0;
  for (Compared& rank : compared) {
    rank.is_named = (rank.candidate && IsSame(*rank.candidate, named)) ||
                    (tolerant && named.tensor_is_output && times > 1 &&
                     judge_of(rank).TimesExplained(named) >= kAlmostAsMuch * times);
  }
  return first;
}

void Fill(const Candidate& candidate, const RunLogs& reference, const RunLogs& current, const Compared& rank,
          OriginVerdict* verdict) {
  const OpDefinition& definition = candidate.op->definition();
  verdict->set_kind(candidate.kind);
  verdict->set_iteration(candidate.iteration);
  verdict->set_operation(definition.name);
  verdict->set_module(definition.module);
  verdict->set_phase(definition.phase);
  verdict->set_direction(definition.is_backward ? "backward" : "forward");
  verdict->set_source(definition.source);
  verdict->set_tensor(candidate.tensor);
  verdict->set_relative_difference(candidate.difference);
  verdict->set_estimated(true);
  verdict->set_explained(candidate.explained);
  verdict->set_of_increment(candidate.of_increment);
  verdict->set_input_difference(candidate.input_difference);
  verdict->set_in_one_run_only(candidate.tensor_b < 0);
  verdict->set_collective(candidate.op->definition().role == OpRole::kCollective);
  verdict->set_detail(ValidUtf8(candidate.detail));
  verdict->set_last_written_by(candidate.last_written_by);
  if (candidate.tensor_a < 0 || candidate.of_increment) return;
  const OpPair& pair = rank.aligned.pairs[candidate.pair];
  const auto elements =
      CompareKept(KeptTensor{OpTensorsDirectory(reference.run_dir, rank.rank_a), candidate.iteration,
                             &rank.aligned.op_a(pair), candidate.tensor_a},
                  KeptTensor{OpTensorsDirectory(current.run_dir, rank.rank_b), candidate.iteration,
                             &rank.aligned.op_b(pair), candidate.tensor_b});
  if (!elements) return;
  verdict->set_estimated(false);
  if (std::isfinite(candidate.difference)) verdict->set_relative_difference(elements->relative_difference);
  verdict->set_detail(verdict->detail().empty() ? elements->text
                                                : absl::StrCat(elements->text, "; ", verdict->detail()));
}

// Says which differences would not be noticed.
void AddUnseen(const std::vector<Compared>& compared, OriginVerdict* verdict) {
  std::vector<double> differences;
  for (const Compared& rank : compared) {
    for (const RankJudge::Unseen& unseen : rank.unseen) {
      differences.push_back(unseen.difference);
      if (unseen.difference <= verdict->largest_unseen()) continue;
      verdict->set_largest_unseen(unseen.difference);
      verdict->set_largest_unseen_in(DescribeOperation(unseen.op->definition()));
    }
  }
  if (!differences.empty()) verdict->set_median_unseen(ott::Median(differences));
}

absl::Status IsNotPerturbed(const std::string& perturbed, const std::string& is, const std::string& run) {
  return absl::InvalidArgumentError(
      absl::StrCat(perturbed, ": ", is, run,
                   ", and explains whatever differs or nothing; --perturbed is a run of its own, ",
                   "of the reference's program with `perturb {}`"));
}

// Returns true if all operations of both read and wrote the same.
bool LogTheSame(const RunLogs& x, const RunLogs& y) {
  const auto are_same = [](const LoggedOp& a, const LoggedOp& b) {
    if (a.num_tensors() != b.num_tensors()) return false;
    for (int i = 0; i < a.num_tensors(); ++i) {
      if (a.digest(i) != b.digest(i)) return false;
    }
    return true;
  };
  return std::equal(x.ranks.begin(), x.ranks.end(), y.ranks.begin(), y.ranks.end(),
                    [&](const auto& a, const auto& b) {
                      const std::vector<LoggedOp>& ops_a = a.second->ops;
                      const std::vector<LoggedOp>& ops_b = b.second->ops;
                      return a.first == b.first &&
                             std::equal(ops_a.begin(), ops_a.end(), ops_b.begin(), ops_b.end(), are_same);
                    });
}

}  // namespace

absl::StatusOr<OriginVerdict> FindOrigin(const RunLogs& reference, const RunLogs& current,
                                         const RunLogs* perturbed, std::vector<std::pair<int, int>> ranks) {
  if (ranks.empty()) {
    for (const auto& [rank, log] : reference.ranks) ranks.emplace_back(rank, rank);
  }
  OTT_ASSIGN_OR_RETURN(std::vector<Compared> compared, Align(reference, current, perturbed, ranks));
  const Compared* const first = Judge(compared, perturbed != nullptr, reference.world_size);

  OriginVerdict verdict;
  verdict.set_reference(ValidUtf8(reference.run_dir));
  verdict.set_current(ValidUtf8(current.run_dir));
  if (perturbed != nullptr) verdict.set_perturbed(ValidUtf8(perturbed->run_dir));
  verdict.set_world_size(static_cast<int>(compared.size()));
  for (const RunLogs* run : {&reference, &current, perturbed}) {
    if (run == nullptr || (run == &current && &current == &reference)) continue;
    for (const std::string& problem : run->problems) verdict.add_problems(ValidUtf8(problem));
  }
  AddWhatIsNotCompared(reference, current, compared, &verdict);
  bool differs = false;
  for (const Compared& rank : compared) {
    verdict.set_num_compared(verdict.num_compared() + static_cast<int64_t>(rank.aligned.pairs.size()));
    verdict.set_num_only_in_reference(verdict.num_only_in_reference() + rank.aligned.num_only_in_a);
    verdict.set_num_only_in_current(verdict.num_only_in_current() + rank.aligned.num_only_in_b);
    verdict.set_num_renamed(verdict.num_renamed() + rank.aligned.num_renamed);
    verdict.set_num_not_judged(verdict.num_not_judged() + rank.num_not_judged);
    differs = differs || rank.differs;
    if (!rank.jumps.empty() && verdict.notes_size() < kMaxNotes) verdict.add_notes(rank.jumps);
    // Without another origin, that may be one.
    if (!rank.doubts.empty() &&
        (first == nullptr ? verdict.problems_size() : verdict.notes_size()) < kMaxNotes) {
      *(first == nullptr ? verdict.add_problems() : verdict.add_notes()) = rank.doubts;
    }
    if (rank.is_named) verdict.add_ranks(rank.rank_b);
  }
  if (first == nullptr) {
    AddWhatIsNotKnown(compared, &verdict);
    if (kMostNotJudged * static_cast<double>(verdict.num_compared()) <
        static_cast<double>(verdict.num_not_judged())) {
      verdict.add_problems(
          absl::StrCat(verdict.num_not_judged(),
                       " outputs could not be judged: the inputs of their operations differ, and ",
                       "did not in the perturbed run; perturb more parameters, or by more ulps"));
    }
    // A difference without an origin came from where nothing was logged.
    if (differs && perturbed == nullptr) {
      verdict.add_problems(
          "operations differ whose differences came from other ranks, but none was found where they began");
    }
    AddUnseen(compared, &verdict);
    verdict.set_kind(verdict.problems_size() == 0 ? OriginVerdict::NONE : OriginVerdict::UNKNOWN);
  } else {
    Fill(*first->candidate, reference, current, *first, &verdict);
    DescribeSpread(first->aligned, first->candidate->pair, &verdict);
  }
  verdict.set_verdict(FormatSentence(verdict));
  return verdict;
}

absl::StatusOr<OriginVerdict> FindOrigin(const std::string& reference_run, const std::string& current_run,
                                         const std::string& perturbed_run,
                                         const std::vector<std::pair<int, int>>& ranks) {
  const std::string reference = LatestAttempt(reference_run);
  const std::string current = LatestAttempt(current_run);
  const std::string perturbed = perturbed_run.empty() ? "" : LatestAttempt(perturbed_run);
  const bool is_same_run = IsSameRun(reference, current);
  if (is_same_run &&
      std::all_of(ranks.begin(), ranks.end(), [](const auto& r) { return r.first == r.second; })) {
    return absl::InvalidArgumentError(absl::StrCat(
        current,
        ": would be compared with itself, which always agrees; give another run, or two ranks of it"));
  }
  for (const auto& [a, b] : ranks) {
    std::error_code error;
    if (a == b || !std::filesystem::equivalent(OpLogPath(reference, a), OpLogPath(current, b), error))
      continue;
    return absl::InvalidArgumentError(absl::StrCat(OpLogPath(current, b), ": is ", OpLogPath(reference, a),
                                                   ", or links to it, and always agrees"));
  }
  for (const std::string& run : {reference, current}) {
    if (!perturbed.empty() && IsSameRun(run, perturbed)) return IsNotPerturbed(perturbed, "is ", run);
  }
  OTT_ASSIGN_OR_RETURN(const RunLogs a, ReadRunLogs(reference));
  std::optional<RunLogs> b;
  if (!is_same_run) {
    OTT_ASSIGN_OR_RETURN(b, ReadRunLogs(current));
  }
  std::optional<RunLogs> p;
  if (!perturbed.empty()) {
    OTT_ASSIGN_OR_RETURN(p, ReadRunLogs(perturbed));
    for (const RunLogs* const run : {&a, b ? &*b : &a}) {
      if (LogTheSame(*run, *p)) return IsNotPerturbed(perturbed, "is bit for bit ", run->run_dir);
    }
    // A run that another program wrote has none.
    const absl::StatusOr<RunInfo> info = ReadRunInfo(perturbed);
    if (info.ok() && info->has_config() && !info->config().has_perturb()) {
      return IsNotPerturbed(perturbed, "was run without `perturb {}`: it may differ for other reasons than ",
                            reference);
    }
  }
  return FindOrigin(a, b ? *b : a, p ? &*p : nullptr, ranks);
}

}  // namespace ott::origin
