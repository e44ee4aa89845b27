#include "ott/questions/saved/what_if.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/saved/scenario.h"
#include "questions/saved/blame.h"
#include "questions/saved/full_replay.h"
#include "questions/saved/named_job.h"
#include "questions/saved/part_replayer.h"
#include "questions/saved/repairs.h"

namespace ott::saved {
namespace {

constexpr size_t kMaxRanksReplayed = 256;

class Analysis {
 public:
  Analysis(const ReplayJob& job, const std::vector<ScaleQuestion>& questions)
      : job_(job),
        questions_(questions),
        named_(job),
        replay_(named_.replay),
        replayer_(replay_.scenarios()),
        measured_(replay_.measured()),
        ideal_(replay_.ideal()) {}

  WhatIfAnswer Answer() {
    Summarize();
    AddParts();
    AddWorstRanks();
    const std::vector<size_t> blamed = Blame(named_, ranks_, stage_parts_, answer_);
    if (job_.unmatched.empty()) AddRepairs(blamed);
    AddCommunication();
    AddScaled();
    AddCriticalPath();
    return std::move(answer_);
  }

 private:
  double MeanOf(const std::vector<double>& steps) const { return Sum(steps) / named_.num_iterations; }

  void Summarize() {
    answer_.set_num_ranks(static_cast<int32_t>(job_.ranks.size()));
    answer_.set_num_steps(named_.num_iterations);
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
    answer_.set_measured_seconds(measured / named_.num_iterations);
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
    if (operations.size() == 1 && named_.operations.size() > 1) out.set_operation(*operations.begin());
  }

  WhatIfPart ToProto(const JobPart& part) const {
    WhatIfPart out;
    out.set_name(part.name);
    SetSelected(part.selection, out);
    if (part.slowdown > 0) out.set_slowdown(part.slowdown);
    // Launch delays stay.
    const double replayed_share = answer_.replayed_seconds() / answer_.measured_seconds();
    out.set_seconds(answer_.measured_seconds() - part.saving.share * answer_.replayed_seconds());
    out.set_saved(part.saving.share * replayed_share);
    out.set_saved_low(std::max(part.saving.low * replayed_share, -1.0));
    out.set_saved_high(std::min(part.saving.high * replayed_share, 1.0));
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
      ranks_.push_back({named_.NameOf(i), {}});
      ranks_.back().slowdown = 1;
    }
    const std::vector<size_t> replayed = MostExcess();
    std::vector<JobPart> some =
        PartsOf("", replayed, [](size_t index, int rank, int) { return static_cast<int>(index) == rank; });
    for (size_t i = 0; i < replayed.size(); ++i) {
      some[i].name = named_.NameOf(replayed[i]);
      ranks_[replayed[i]] = std::move(some[i]);
    }
    const std::vector<JobPart> operations = PartsOf(
        "", named_.operations,
        [this](const std::string& name, int, int kind) { return job_.kinds[kind].operation == name; });
    stage_parts_ = PartsOf("stage ", named_.stages,
                           [this](int stage, int rank, int) { return job_.ranks[rank].stage == stage; });
    const std::vector<JobPart> replicas =
        PartsOf("replica ", named_.replicas,
                [this](int replica, int rank, int) { return job_.ranks[rank].replica == replica; });
    std::vector<std::string> host_names;
    for (const auto& [host, unused] : named_.ranks_of_host) host_names.push_back(host);
    if (host_names.size() < 2) host_names.clear();
    const std::vector<JobPart> hosts =
        PartsOf("", host_names,
                [this](const std::string& host, int rank, int) { return job_.ranks[rank].host == host; });
    // In a pipeline a rank's slowdown is the smaller of its replica's and its stage's.
    if (!named_.stages.empty() && !named_.replicas.empty()) {
      std::map<int, double> of_stage;
      std::map<int, double> of_replica;
      size_t i = 0;
      for (const int stage : named_.stages) of_stage[stage] = stage_parts_[i++].slowdown;
      i = 0;
      for (const int replica : named_.replicas) of_replica[replica] = replicas[i++].slowdown;
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

  void AddWorstRanks() {
    std::vector<size_t> worst = WorstFirst(ranks_);
    worst.resize(static_cast<size_t>(std::ceil(kWorstRanks * static_cast<double>(worst.size()) - 1e-9)));
    const auto share = replay_.ShareOf([&](int rank) {
      return std::find(worst.begin(), worst.end(), static_cast<size_t>(rank)) != worst.end();
    });
    for (const size_t rank : worst) answer_.add_worst_ranks(job_.ranks[rank].rank);
    if (share.has_value()) answer_.set_worst_ranks_share(*share);
    if (named_.stages.size() < 2) return;
    const auto of_last =
        replay_.ShareOf([&](int rank) { return job_.ranks[rank].stage == *named_.stages.rbegin(); });
    if (of_last.has_value()) answer_.set_last_stage_share(*of_last);
  }

  void AddRepairs(const std::vector<size_t>& blamed) {
    const std::vector<JobPart> repairs = FindRepairs(named_, ranks_, blamed);
    for (const JobPart& repair : repairs) *answer_.add_repairs() = ToProto(repair);
    if (const std::optional<JobPart> together = FindRepairsTogether(named_, repairs)) {
      *answer_.mutable_best_repairs_together() = ToProto(*together);
    }
  }

  void AddCommunication() {
    Scenario scenario = {Scenario::kMeasured, Scenario::kScaled, 0,
                         Select(job_, [this](int, int kind) { return job_.kinds[kind].communicates; })};
    JobPart part("communication that nothing overlaps", scenario.selection);
    part.saving = replay_.SavingOf(replayer_.Replay({scenario})[0]);
    *answer_.mutable_communication_overlapped() = ToProto(part);
  }

  void AddScaled() {
    for (const ScaleQuestion& question : questions_) {
      JobPart part(question.name, question.selection);
      part.saving = replay_.SavingOf(replayer_.Replay(
          {{Scenario::kMeasured, Scenario::kScaled, question.factor, question.selection}})[0]);
      *answer_.add_scaled() = ToProto(part);
    }
  }

  void AddCriticalPath() {
    const double total = Sum(measured_);
    for (const PathPart& part : FindCriticalPath(job_)) {
      CriticalPart& out = *answer_.add_critical_path();
      out.set_rank(named_.NameOf(part.rank));
      out.set_operation(job_.kinds[part.kind].name);
      out.set_share(part.seconds / total);
    }
  }

  const ReplayJob& job_;
  const std::vector<ScaleQuestion>& questions_;
  const NamedJob named_;
  const PartReplayer& replay_;
  const ScenarioReplayer& replayer_;
  // Seconds of each step.
  const std::vector<double>& measured_;
  const std::vector<double>& ideal_;
  std::vector<JobPart> ranks_;
  std::vector<JobPart> stage_parts_;
  WhatIfAnswer answer_;
};

}  // namespace

WhatIfAnswer AnswerWhatIf(const ReplayJob& job, const std::vector<ScaleQuestion>& questions) {
  return Analysis(job, questions).Answer();
}

}  // namespace ott::saved
