#include "ott/questions/saved/what_if.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/check.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/saved/scenario.h"
#include "questions/saved/full_replay.h"
#include "questions/saved/part_replayer.h"

namespace ott::saved {
namespace {

// Repairs that are worth more words than their sum, and ranks whose operations are looked at one by one.
constexpr size_t kMaxRepairs = 8;
constexpr size_t kMaxRanksInDetail = 8;
constexpr size_t kMaxRanksReplayed = 256;
constexpr size_t kMaxTogether = 3;

// 0 to size - 1.
std::vector<size_t> Indices(size_t size) {
  std::vector<size_t> indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

class Analysis {
 public:
  Analysis(const ReplayJob& job, const std::vector<ScaleQuestion>& questions)
      : job_(job),
        questions_(questions),
        replay_(job),
        replayer_(replay_.scenarios()),
        measured_(replay_.measured()),
        ideal_(replay_.ideal()) {
    OTT_CHECK(!job.operations.empty()) << "a job without operations";
    for (const ReplayJob::Rank& rank : job.ranks) {
      if (rank.stage >= 0) stages_.insert(rank.stage);
      if (rank.replica >= 0) replicas_.insert(rank.replica);
      if (!rank.host.empty()) ++ranks_of_host_[rank.host];
    }
    for (const ReplayJob::Step& step : job.steps) num_iterations_ += step.num_iterations;
    std::vector<bool> is_used(job.kinds.size());
    for (const ReplayJob::Operation& operation : job.operations) is_used[operation.kind] = true;
    for (size_t i = 0; i < job.kinds.size(); ++i) {
      const ReplayJob::Kind& kind = job.kinds[i];
      if (is_used[i] &&
          std::find(operations_.begin(), operations_.end(), kind.operation) == operations_.end()) {
        operations_.push_back(kind.operation);
      }
    }
  }

  WhatIfAnswer Answer() {
    Summarize();
    AddParts();
    AddWorstRanks();
    SetVerdict();
    if (job_.unmatched.empty()) AddRepairs();
    AddCommunication();
    AddScaled();
    AddCriticalPath();
    return std::move(answer_);
  }

 private:
  double MeanOf(const std::vector<double>& steps) const { return Sum(steps) / num_iterations_; }
  std::string AStep() const {
    return absl::StrCat(job_.step_word == "iteration" ? "an " : "a ", job_.step_word);
  }
  std::string RankName(size_t rank) const {
    const ReplayJob::Rank& of = job_.ranks[rank];
    return of.host.empty() ? absl::StrCat("rank ", of.rank)
                           : absl::StrCat("rank ", of.rank, " (", of.host, ")");
  }

  void Summarize() {
    answer_.set_num_ranks(static_cast<int32_t>(job_.ranks.size()));
    answer_.set_num_steps(num_iterations_);
    answer_.set_first_step(job_.steps.front().number);
    answer_.set_last_step(job_.steps.back().number + job_.steps.back().num_iterations - 1);
    double measured = 0;
    for (size_t i = 0; i < job_.steps.size(); ++i) {
      const ReplayJob::Step& step = job_.steps[i];
      measured += step.measured_seconds;
      WhatIfStep& out = *answer_.add_by_step();
      out.set_step(step.number);
      out.set_measured_seconds(step.measured_seconds / step.num_iterations);
      out.set_replayed_seconds(measured_[i] / step.num_iterations);
      out.set_ideal_seconds(ideal_[i] / step.num_iterations);
      out.set_slowdown(ideal_[i] > 0 ? measured_[i] / ideal_[i] : 1);
    }
    answer_.set_measured_seconds(measured / num_iterations_);
    answer_.set_replay_error(ReplayError(job_));
    answer_.set_replayed_seconds(MeanOf(measured_));
    answer_.set_ideal_seconds(MeanOf(ideal_));
    answer_.set_slowdown(Sum(ideal_) > 0 ? Sum(measured_) / Sum(ideal_) : 1);
    answer_.set_launch_slowdown(Sum(measured_) > 0 ? measured / Sum(measured_) : 1);
    for (const std::string& note : job_.notes) answer_.add_notes(note);
    answer_.set_incomplete(job_.incomplete);
    answer_.set_step_word(job_.step_word);
  }

  // The ranks and the operation that are mended, where these are not all.
  void SetSelected(const std::vector<char>& selection, WhatIfPart& out) const {
    std::set<int> ranks;
    std::set<std::string> operations;
    for (size_t i = 0; i < selection.size(); ++i) {
      if (selection[i] == 0) continue;
      ranks.insert(job_.ranks[i / job_.kinds.size()].rank);
      operations.insert(job_.kinds[i % job_.kinds.size()].operation);
    }
    if (ranks.size() < job_.ranks.size()) out.mutable_ranks()->Add(ranks.begin(), ranks.end());
    if (operations.size() == 1 && operations_.size() > 1) out.set_operation(*operations.begin());
  }

  WhatIfPart ToProto(const JobPart& part) const {
    WhatIfPart out;
    out.set_name(part.name);
    SetSelected(part.selection, out);
    if (part.slowdown > 0) out.set_slowdown(part.slowdown);
    // Launch delays stay.
    out.set_seconds(answer_.measured_seconds() - part.saving.share * answer_.replayed_seconds());
    out.set_saved(part.saving.share * answer_.replayed_seconds() / answer_.measured_seconds());
    out.set_saved_low(part.saving.low * answer_.replayed_seconds() / answer_.measured_seconds());
    out.set_saved_high(part.saving.high * answer_.replayed_seconds() / answer_.measured_seconds());
    return out;
  }

  // To the answer's steps.
  void AddToSteps(const std::vector<JobPart>& parts, WhatIfStepPart* (WhatIfStep::*add)()) {
    for (const JobPart& part : parts) {
      for (size_t step = 0; step < part.slowdown_of_step.size(); ++step) {
        WhatIfStepPart& out = *(answer_.mutable_by_step(static_cast<int>(step))->*add)();
        out.set_name(part.name);
        out.set_slowdown(part.slowdown_of_step[step]);
      }
    }
  }

  // prefix: of the parts' names.
  template <typename Names, typename Selects>
  std::vector<JobPart> PartsOf(const char* prefix, const Names& names, Selects selects) const {
    std::vector<JobPart> parts;
    for (const auto& name : names) {
      parts.push_back({absl::StrCat(prefix, name),
                       Select(job_, [&](int rank, int kind) { return selects(name, rank, kind); })});
    }
    replay_.FindSlowdowns(parts);
    replay_.FindSavings(parts);
    return parts;
  }

  // The ranks that are replayed one by one: all, or of very many those that may be slow.
  std::vector<size_t> MostExcess() {
    std::vector<size_t> order = Indices(job_.ranks.size());
    if (order.size() <= kMaxRanksReplayed) return order;
    replay_.SortByExcess(order);
    order.resize(kMaxRanksReplayed / 4);
    std::sort(order.begin(), order.end());
    answer_.add_notes(absl::StrCat("by_rank has the ", order.size(), " ranks with most excess"));
    return order;
  }

  void AddParts() {
    for (size_t i = 0; i < job_.ranks.size(); ++i) {
      ranks_.push_back({RankName(i), {}});
      ranks_.back().slowdown = 1;
    }
    const std::vector<size_t> replayed = MostExcess();
    std::vector<JobPart> some =
        PartsOf("", replayed, [](size_t index, int rank, int) { return static_cast<int>(index) == rank; });
    for (size_t i = 0; i < replayed.size(); ++i) {
      some[i].name = RankName(replayed[i]);
      ranks_[replayed[i]] = std::move(some[i]);
    }
    const std::vector<JobPart> operations = PartsOf(
        "", operations_,
        [this](const std::string& name, int, int kind) { return job_.kinds[kind].operation == name; });
    stage_parts_ = PartsOf("stage ", stages_,
                           [this](int stage, int rank, int) { return job_.ranks[rank].stage == stage; });
    const std::vector<JobPart> replicas = PartsOf("replica ", replicas_, [this](int replica, int rank, int) {
      return job_.ranks[rank].replica == replica;
    });
    std::vector<std::string> host_names;
    for (const auto& [host, unused] : ranks_of_host_) host_names.push_back(host);
    if (host_names.size() < 2) host_names.clear();
    const std::vector<JobPart> hosts =
        PartsOf("", host_names,
                [this](const std::string& host, int rank, int) { return job_.ranks[rank].host == host; });
    // In a pipeline a rank's slowdown is the smaller of its replica's and its stage's.
    if (!stages_.empty() && !replicas_.empty()) {
      std::map<int, double> of_stage;
      std::map<int, double> of_replica;
      size_t i = 0;
      for (const int stage : stages_) of_stage[stage] = stage_parts_[i++].slowdown;
      i = 0;
      for (const int replica : replicas_) of_replica[replica] = replicas[i++].slowdown;
      for (size_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].slowdown =
            std::min(of_stage[job_.ranks[rank].stage], of_replica[job_.ranks[rank].replica]);
      }
    }
    for (const size_t rank : replayed) *answer_.add_by_rank() = ToProto(ranks_[rank]);
    AddToSteps(operations, &WhatIfStep::add_by_operation);
    AddToSteps(stage_parts_, &WhatIfStep::add_by_stage);
    AddToSteps(replicas, &WhatIfStep::add_by_replica);
    for (const JobPart& part : operations) *answer_.add_by_operation() = ToProto(part);
    for (const JobPart& part : stage_parts_) *answer_.add_by_stage() = ToProto(part);
    for (const JobPart& part : replicas) *answer_.add_by_replica() = ToProto(part);
    for (const JobPart& part : hosts) *answer_.add_by_host() = ToProto(part);
  }

  // By what their own times alone would cost, most first; of two alike the lower rank.
  std::vector<size_t> WorstFirst() const {
    std::vector<size_t> order = Indices(ranks_.size());
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return ranks_[a].slowdown > ranks_[b].slowdown; });
    return order;
  }

  void AddWorstRanks() {
    std::vector<size_t> worst = WorstFirst();
    worst.resize(static_cast<size_t>(std::ceil(kWorstRanks * static_cast<double>(worst.size()) - 1e-9)));
    const auto share = replay_.ShareOf([&](int rank) {
      return std::find(worst.begin(), worst.end(), static_cast<size_t>(rank)) != worst.end();
    });
    for (const size_t rank : worst) answer_.add_worst_ranks(job_.ranks[rank].rank);
    if (share.has_value()) answer_.set_worst_ranks_share(*share);
    if (stages_.size() < 2) return;
    const auto of_last =
        replay_.ShareOf([&](int rank) { return job_.ranks[rank].stage == *stages_.rbegin(); });
    if (of_last.has_value()) answer_.set_last_stage_share(*of_last);
  }

  std::string NameOf(const std::vector<size_t>& ranks) const {
    if (ranks.size() == 1) return RankName(ranks[0]);
    const auto of_host = ranks_of_host_.find(job_.ranks[ranks[0]].host);
    const bool is_host = ranks_of_host_.size() > 1 && of_host != ranks_of_host_.end() &&
                         of_host->second == static_cast<int>(ranks.size()) &&
                         std::all_of(ranks.begin(), ranks.end(),
                                     [&](size_t i) { return job_.ranks[i].host == of_host->first; });
    if (is_host) return absl::StrCat("host ", of_host->first);
    std::vector<int> numbers;
    for (const size_t rank : ranks) numbers.push_back(job_.ranks[rank].rank);
    std::sort(numbers.begin(), numbers.end());
    return absl::StrCat("ranks ", absl::StrJoin(numbers, ", "));
  }

  // The excess of these ranks in each operation in which they have any.
  void AppendRepairsOf(const std::vector<size_t>& ranks, std::vector<JobPart>& repairs) const {
    const std::set<size_t> members(ranks.begin(), ranks.end());
    const size_t num_before = repairs.size();
    for (const std::string& operation : operations_) {
      double excess = 0;
      for (size_t kind = 0; kind < job_.kinds.size(); ++kind) {
        if (job_.kinds[kind].operation != operation) continue;
        for (const size_t rank : ranks) excess += replayer_.MeanExcess(rank, kind);
      }
      if (excess < kMinSaved / 2 * answer_.replayed_seconds()) continue;
      repairs.push_back({absl::StrCat(NameOf(ranks), "'s excess in \"", operation, "\""),
                         Select(job_, [&](int rank, int kind) {
                           return members.count(static_cast<size_t>(rank)) > 0 &&
                                  job_.kinds[kind].operation == operation;
                         })});
    }
    if (!replayer_.compares_ranks() || repairs.size() < num_before + 2) return;
    repairs.push_back(
        {absl::StrCat(NameOf(ranks), "'s excess in everything"),
         Select(job_, [&](int rank, int) { return members.count(static_cast<size_t>(rank)) > 0; })});
    repairs.back().weight = kWeightOfWhole;
  }

  // Lists what could be mended: an operation of ranks that are slower in it than others, and a stage. Of
  // ranks that do the same, only those that are to blame.
  std::vector<JobPart> ListRepairs() const {
    std::vector<JobPart> repairs;
    if (replayer_.compares_ranks()) {
      if (blamed_.size() > 1) AppendRepairsOf(blamed_, repairs);
      for (const size_t rank : blamed_) AppendRepairsOf({rank}, repairs);
    } else {
      std::vector<size_t> order = Indices(ranks_.size());
      std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
        return ranks_[a].saving.share > ranks_[b].saving.share;
      });
      order.resize(std::min(order.size(), kMaxRanksInDetail));
      for (const size_t rank : order) AppendRepairsOf({rank}, repairs);
    }
    for (const int stage : stages_) {
      if (stages_.size() < 2) break;
      repairs.push_back({absl::StrCat("stage ", stage, "'s excess"),
                         Select(job_, [&](int rank, int) { return job_.ranks[rank].stage == stage; })});
      repairs.back().weight = kWeightOfWhole;
    }
    replay_.FindSavings(repairs);
    return repairs;
  }

  void AddRepairs() {
    std::vector<JobPart> repairs = ListRepairs();
    const auto is_small = [](const JobPart& part) {
      return part.saving.share < kMinSaved || part.saving.low <= 0;
    };
    repairs.erase(std::remove_if(repairs.begin(), repairs.end(), is_small), repairs.end());
    std::stable_sort(repairs.begin(), repairs.end(), [](const JobPart& a, const JobPart& b) {
      return a.weight * a.saving.share > b.weight * b.saving.share;
    });
    if (repairs.size() > kMaxRepairs) repairs.erase(repairs.begin() + kMaxRepairs, repairs.end());
    for (const JobPart& repair : repairs) *answer_.add_repairs() = ToProto(repair);
    if (repairs.size() > 1) AddRepairsTogether(repairs);
  }

  // The best, and with it those that save most besides what is saved already.
  void AddRepairsTogether(const std::vector<JobPart>& repairs) {
    JobPart best = repairs[0];
    for (size_t count = 1; count < kMaxTogether; ++count) {
      std::vector<JobPart> unions;
      for (const JobPart& repair : repairs) {
        unions.push_back({absl::StrCat(best.name, ", ", repair.name), best.selection});
        for (size_t i = 0; i < repair.selection.size(); ++i)
          unions.back().selection[i] |= repair.selection[i];
      }
      replay_.FindSavings(unions);
      const auto most = std::max_element(
          unions.begin(), unions.end(),
          [](const JobPart& a, const JobPart& b) { return a.saving.share < b.saving.share; });
      if (most->saving.share < best.saving.share + kMinSaved) break;
      best = *most;
      *answer_.mutable_best_repairs_together() = ToProto(best);
    }
  }

  void AddCommunication() {
    Scenario scenario = {Scenario::kMeasured, Scenario::kScaled, 0,
                         Select(job_, [this](int, int kind) { return job_.kinds[kind].communicates; })};
    JobPart part("communication that nothing overlaps", {});
    part.saving = replay_.SavingOf(replayer_.Replay({scenario})[0]);
    *answer_.mutable_communication_overlapped() = ToProto(part);
  }

  void AddScaled() {
    for (const ScaleQuestion& question : questions_) {
      JobPart part(question.name, {});
      part.saving = replay_.SavingOf(replayer_.Replay(
          {{Scenario::kMeasured, Scenario::kScaled, question.factor, question.selection}})[0]);
      *answer_.add_scaled() = ToProto(part);
    }
  }

  void AddCriticalPath() {
    const double total = Sum(measured_);
    for (const PathPart& part : FindCriticalPath(job_)) {
      CriticalPart& out = *answer_.add_critical_path();
      out.set_rank(RankName(part.rank));
      out.set_operation(job_.kinds[part.kind].name);
      out.set_share(part.seconds / total);
    }
  }

  void SetVerdict() {
    if (answer_.replay_error() > kMaxReplayError || !std::isfinite(answer_.replay_error())) {
      answer_.set_verdict(WHAT_IF_CANNOT_TELL);
      answer_.set_conclusion(
          absl::StrFormat("cannot tell: a replay of what was measured is %.1f %% off (limit %.0f %%), so "
                          "ranks waited for more than the operations that are known",
                          100 * answer_.replay_error(), 100 * kMaxReplayError));
      return;
    }
    if (job_.ranks.size() == 1) {
      answer_.set_verdict(WHAT_IF_CANNOT_TELL);
      answer_.set_conclusion("cannot tell: one rank has no others to be like");
      return;
    }
    if (!job_.knows_who_waits) {
      answer_.set_verdict(WHAT_IF_CANNOT_TELL);
      answer_.set_conclusion(
          "cannot tell: no measurement is known in which ranks wait for each other; name them as collective");
      return;
    }
    if (!job_.unmatched.empty()) {
      answer_.set_verdict(WHAT_IF_CANNOT_TELL);
      answer_.set_conclusion(absl::StrCat("cannot tell: ranks come to \"", job_.unmatched,
                                          "\" different numbers of times, so that it is not known which "
                                          "belong together; measure what goes from one "
                                          "rank to another under a name of its own"));
      return;
    }
    const bool compares_ranks = replayer_.compares_ranks();
    if (compares_ranks && BlameRanksThatDoTheSame()) return;
    if (answer_.slowdown() < 1 + (compares_ranks ? kMinUneven : kMinSaved)) {
      if (job_.incomplete) {
        answer_.set_verdict(WHAT_IF_CANNOT_TELL);
        answer_.set_conclusion(absl::StrCat("cannot tell: the ", job_.ranks.size(),
                                            " ranks that are there are alike, and others are missing"));
        return;
      }
      if (compares_ranks && !ExcludesLosses()) return;
      answer_.set_verdict(WHAT_IF_EVEN);
      answer_.set_conclusion(absl::StrFormat(
          "nothing to mend: %sif all ranks were alike %s would take %s instead of %s",
          answer_.has_not_excluded()
              ? absl::StrFormat("mending any one rank saves less than %.1f %% (95 %%); ",
                                100 * answer_.not_excluded())
              : "",
          AStep(), FormatSeconds(answer_.ideal_seconds()), FormatSeconds(answer_.replayed_seconds())));
      return;
    }
    if ((!compares_ranks && BlameRanks()) || BlameLastStage()) return;
    answer_.set_verdict(WHAT_IF_UNEVEN);
    std::string most;
    if (compares_ranks) {
      const std::string rank = FindNotExcluded();
      most = absl::StrFormat(", and mending %s alone saves less than %.1f %% (95 %%)", rank,
                             100 * answer_.not_excluded());
    }
    answer_.set_conclusion(
        absl::StrFormat("work is uneven: %s takes %.2f times what it would if all ranks were alike%s",
                        AStep(), answer_.slowdown(), most));
  }

  // Sets what mending any one rank may save, and returns that one.
  std::string FindNotExcluded() {
    std::vector<JobPart> parts = ranks_;
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].selection = Select(job_, [&](int rank, int) { return rank == static_cast<int>(i); });
    }
    replay_.FindSavings(parts, false);
    const auto most = std::max_element(parts.begin(), parts.end(), [](const JobPart& a, const JobPart& b) {
      return a.saving.high < b.saving.high;
    });
    answer_.set_not_excluded(std::clamp(most->saving.high, 0.001, 1.0));
    return most->name;
  }

  // Returns true if it is sure that mending no rank saves much; else says that it is not.
  bool ExcludesLosses() {
    const std::string most = FindNotExcluded();
    if (answer_.not_excluded() < kMaxNotExcluded) return true;
    answer_.set_verdict(WHAT_IF_CANNOT_TELL);
    answer_.set_conclusion(absl::StrFormat(
        "cannot tell: no rank surely costs anything, but that mending %s saves up to %.0f %% is not excluded",
        most, 100 * answer_.not_excluded()));
    return false;
  }

  // A rank whose repair saves less may be like the others: of two that are, each takes more or less.
  double LeastSavedByBlamed() const {
    if (job_.work_spread <= 0 || answer_.replayed_seconds() <= 0) return kMinSaved;
    const double level = kBlameError / static_cast<double>(ranks_.size());
    const double by_chance = job_.work_slowdown + StudentTQuantile(1 - level, kSpreadDegreesOfFreedom) *
                                                      std::sqrt(2) * job_.work_spread;
    return std::max(kMinSaved, by_chance / answer_.replayed_seconds());
  }

  // Ranks that others do like work with; a stage's only rank may do more by design. The worst first: in a
  // pipeline by what they take longer than those others.
  std::vector<size_t> WorstOfThoseThatDoTheSame() const {
    std::vector<size_t> worst = WorstFirst();
    if (stages_.size() < 2) return worst;
    std::map<int, int> size_of_stage;
    for (const ReplayJob::Rank& rank : job_.ranks) ++size_of_stage[rank.stage];
    worst.erase(std::remove_if(worst.begin(), worst.end(),
                               [&](size_t rank) { return size_of_stage[job_.ranks[rank].stage] < 2; }),
                worst.end());
    replay_.SortByExcess(worst);
    return worst;
  }

  // Blames ranks of the worst half that are surely slow: the fewest of them that bring most of what all
  // bring.
  bool BlameRanksThatDoTheSame() {
    std::vector<size_t> worst = WorstOfThoseThatDoTheSame();
    if (worst.size() < 2) return false;
    worst.resize(std::min(std::max<size_t>(worst.size() / 2, 1), kMaxBlamed));
    const double least_excess = kMinSaved / 2 * Sum(measured_) / static_cast<double>(measured_.size());
    worst.erase(std::remove_if(worst.begin(), worst.end(),
                               [&](size_t rank) { return replayer_.SureExcess(rank) < least_excess; }),
                worst.end());
    if (worst.empty()) return false;
    std::vector<JobPart> sets;
    for (size_t count = 1; count <= worst.size(); ++count) {
      const std::vector<size_t> members(worst.begin(), worst.begin() + static_cast<int64_t>(count));
      sets.push_back({NameOf(members), Select(job_, [&](int rank, int) {
                        return std::find(members.begin(), members.end(), static_cast<size_t>(rank)) !=
                               members.end();
                      })});
    }
    replay_.FindSavings(sets);
    double best = 0;
    for (const JobPart& set : sets) best = std::max(best, set.saving.share);
    const double least = LeastSavedByBlamed();
    if (best < least) return false;
    size_t count = 0;
    while (sets[count].saving.share < kShareOfBest * best) ++count;
    if (sets[count].saving.share < least || sets[count].saving.low <= 0) return false;
    blamed_.assign(worst.begin(), worst.begin() + static_cast<int64_t>(count) + 1);
    std::sort(blamed_.begin(), blamed_.end());
    answer_.set_verdict(WHAT_IF_RANKS);
    for (const size_t rank : blamed_) answer_.add_blamed_ranks(job_.ranks[rank].rank);
    answer_.set_conclusion(absl::StrFormat("%s: like the others, %s would take %.0f %% less", NameOf(blamed_),
                                           AStep(), 100 * sets[count].saving.share));
    return true;
  }

  bool BlameRanks() {
    if (!answer_.has_worst_ranks_share() || answer_.worst_ranks_share() < kMinShareOfBlamed) return false;
    // If all ranks of the last stage are among them, it is the stage.
    const auto is_last_but_not_worst = [this](const ReplayJob::Rank& rank) {
      return rank.stage == *stages_.rbegin() &&
             std::count(answer_.worst_ranks().begin(), answer_.worst_ranks().end(), rank.rank) == 0;
    };
    if (stages_.size() > 1 && std::none_of(job_.ranks.begin(), job_.ranks.end(), is_last_but_not_worst)) {
      return false;
    }
    answer_.set_verdict(WHAT_IF_RANKS);
    for (const int rank : answer_.worst_ranks()) answer_.add_blamed_ranks(rank);
    answer_.set_conclusion(absl::StrFormat(
        "rank%s %s: %.0f %% of what all repairs would bring", answer_.worst_ranks_size() > 1 ? "s" : "",
        absl::StrJoin(answer_.worst_ranks(), ", "), 100 * answer_.worst_ranks_share()));
    return true;
  }

  bool BlameLastStage() {
    if (answer_.last_stage_share() < kMinShareOfBlamed) return false;
    // If work is uneven anyway, the last stage must surely take longer.
    const Saving& saving = stage_parts_.back().saving;
    if (replayer_.compares_ranks() && (saving.share < kMinSaved || saving.low <= 0)) return false;
    answer_.set_verdict(WHAT_IF_LAST_STAGE);
    answer_.set_conclusion(absl::StrFormat(
        "the last stage, %d, has more work than the others: %.0f %% of what all repairs would bring",
        *stages_.rbegin(), 100 * answer_.last_stage_share()));
    return true;
  }

  const ReplayJob& job_;
  const std::vector<ScaleQuestion>& questions_;
  const PartReplayer replay_;
  const ScenarioReplayer& replayer_;
  std::set<int> stages_;
  std::set<int> replicas_;
  std::map<std::string, int> ranks_of_host_;
  std::vector<std::string> operations_;
  int64_t num_iterations_ = 0;
  // Seconds of each step.
  const std::vector<double>& measured_;
  const std::vector<double>& ideal_;
  std::vector<JobPart> ranks_;
  std::vector<JobPart> stage_parts_;
  // The ranks to blame, if ranks do the same.
  std::vector<size_t> blamed_;
  WhatIfAnswer answer_;
};

}  // namespace

WhatIfAnswer AnswerWhatIf(const ReplayJob& job, const std::vector<ScaleQuestion>& questions) {
  return Analysis(job, questions).Answer();
}

}  // namespace ott::saved
