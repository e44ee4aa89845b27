// Replays of a small job against the definition: each operation is mended, and each step added up, by itself.

#include "ott/questions/saved/scenario.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/saved/small_job_for_test.h"
#include "ott/questions/saved/what_if.h"
#include "questions/saved/full_replay.h"
#include "questions/saved/part_replayer.h"

namespace ott::saved {
namespace {

// Returns a step's time, or 0 if it is not a number: the rank does not do it.
double TimeOf(const std::vector<double>& steps, size_t step) {
  return steps.empty() || std::isnan(steps[step]) ? 0 : steps[step];
}

// Returns the times of the steps in which a rank does it, the shortest first.
std::vector<double> Sorted(std::vector<double> steps) {
  steps.erase(std::remove_if(steps.begin(), steps.end(), [](double time) { return std::isnan(time); }),
              steps.end());
  std::sort(steps.begin(), steps.end());
  return steps;
}

// The i-th shortest of a selected rank's times becomes the mean of the i-th shortest of the others that are
// healthy. Without others it becomes ideal, or nothing for what only the selected do. Of steps from
// first_step on.
OwnTimes MendHalf(const OwnTimes& own, const std::vector<char>& selection, size_t first_step) {
  OwnTimes mended = own;
  const size_t num_ranks = own[0].size(), num_steps = own[0][0].size();
  for (int place = 0; place < kNumPlaces; ++place) {
    const auto is_selected = [&](size_t rank) {
      return selection[rank * kNumKinds + kKindOfPlace[place]] != 0;
    };
    std::vector<std::vector<double>> others;
    std::vector<double> means;
    bool are_all_selected = true;
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      if (is_selected(rank)) continue;
      are_all_selected = false;
      const std::vector<double> of_rank = Sorted(own[place][rank]);
      if (of_rank.empty()) continue;
      others.push_back(of_rank);
      means.push_back(Mean(of_rank));
    }
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      const std::vector<double> of_rank = Sorted(own[place][rank]);
      if (!is_selected(rank) || of_rank.empty()) continue;
      for (size_t step = 0; step < num_steps; ++step) {
        const double time = own[place][rank][step];
        if (std::isnan(time)) continue;
        const auto i = std::lower_bound(of_rank.begin(), of_rank.end(), time) - of_rank.begin();
        std::vector<double> of_healthy;
        for (size_t other = 0; other < others.size(); ++other) {
          if (means[other] <= kHealthy * Median(means))
            of_healthy.push_back(others[other][i * others[other].size() / of_rank.size()]);
        }
        mended[place][rank][step] = !of_healthy.empty() ? Mean(of_healthy)
                                    : are_all_selected || kKindOfPlace[place] == kCompute
                                        ? IdealOf(place, static_cast<int>(first_step + step))
                                        : 0;
      }
    }
  }
  return mended;
}

// Each half of the run by itself.
OwnTimes MendByDefinition(const OwnTimes& own, const std::vector<char>& selection) {
  const auto middle = static_cast<int64_t>(own[0][0].size() / 2);
  OwnTimes first = own, second = own;
  for (int place = 0; place < kNumPlaces; ++place) {
    for (size_t rank = 0; rank < own[0].size(); ++rank) {
      const std::vector<double>& steps = own[place][rank];
      if (steps.empty()) continue;
      first[place][rank].assign(steps.begin(), steps.begin() + middle);
      second[place][rank].assign(steps.begin() + middle, steps.end());
    }
  }
  OwnTimes mended = MendHalf(first, selection, 0);
  second = MendHalf(second, selection, static_cast<size_t>(middle));
  for (int place = 0; place < kNumPlaces; ++place) {
    for (size_t rank = 0; rank < own[0].size(); ++rank) {
      const std::vector<double>& steps = second[place][rank];
      mended[place][rank].insert(mended[place][rank].end(), steps.begin(), steps.end());
    }
  }
  return mended;
}

// The reduction begins when the last rank comes to it.
double SecondsOfStep(const OwnTimes& own, size_t step) {
  double last = 0, longest = 0;
  for (size_t rank = 0; rank < own[0].size(); ++rank) {
    double work = 0;
    for (int place = 0; place < kNumPlaces - 1; ++place) work += TimeOf(own[place][rank], step);
    last = std::max(last, work);
    longest = std::max(longest, own[kNumPlaces - 1][rank][step]);
  }
  return last + longest;
}

TEST(ScenarioReplayer, MendsAnySelectionAsDefined) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    const int num_ranks = 2 + i % 4;
    OwnTimes own = RandomTimes(num_ranks, 6, 0.3, random);
    for (std::vector<double>& steps : own[i % 2]) {
      for (double& time : steps) time = random() % 6 == 0 ? NAN : time;
    }
    const ReplayJob job = MakeJob(own);
    const ScenarioReplayer replayer(job);
    const std::vector<char> selection =
        Select(job, [&](int, int) { return i % 10 == 0 || random() % 3 == 0; });
    const Scenario scenario = {Scenario::kMeasured, Scenario::kMended, 1, selection, false};
    const OwnTimes mended = MendByDefinition(own, selection);
    const std::vector<double> replayed = replayer.Replay({scenario})[0];
    const std::vector<double> shortened = replayer.Shortened(scenario);
    for (size_t step = 0; step < replayed.size(); ++step) {
      EXPECT_NEAR(replayed[step], SecondsOfStep(mended, step), 1e-5) << "job " << i << ", step " << step;
      double shorter = 0;
      for (int place = 0; place < kNumPlaces - 1; ++place) {
        for (int rank = 0; rank < num_ranks; ++rank) {
          shorter += TimeOf(own[place][rank], step) - TimeOf(mended[place][rank], step);
        }
      }
      EXPECT_NEAR(shortened[step], shorter, 1e-5) << "job " << i << ", step " << step;
    }
  }
}

TEST(ScenarioReplayer, ErrorOfMendedIsThatOfTheMeanOverBatches) {
  std::mt19937_64 random(3);
  // The error is that of the excess, or of the others where these vary less.
  for (const double noise_of_others : {0.1, 0.0001}) {
    OwnTimes own = RandomTimes(4, 10, noise_of_others, random);
    std::normal_distribution<double> normal(0, 0.02);
    for (double& time : own[0][1]) time = 3 + normal(random);
    const ReplayJob job = MakeJob(own);
    std::vector<double> excess, of_others;
    for (size_t step = 0; step < 10; step += kStepsOfBatch) {
      std::vector<double> selected, others;
      for (size_t rank = 0; rank < 4; ++rank) {
        for (size_t i = step; i < step + kStepsOfBatch; ++i)
          (rank == 1 ? selected : others).push_back(own[0][rank][i] + own[1][rank][i]);
      }
      excess.push_back(Mean(selected) - Mean(others));
      of_others.push_back(Mean(others));
    }
    const double error =
        std::sqrt(std::min(VarianceOfMean(excess), 4 * VarianceOfMean(of_others))) / Mean(excess);
    const Scenario scenario = {Scenario::kMeasured, Scenario::kMended, 1,
                               Select(job, [](int rank, int kind) { return rank == 1 && kind == kCompute; })};
    EXPECT_NEAR(ScenarioReplayer(job).ErrorOfMended(scenario), error, 1e-6 * error) << noise_of_others;
  }
}

// Returns what is saved of the batches' time, with the interval of a ratio by its linear part.
Saving SavingByDefinition(const std::vector<double>& before, const std::vector<double>& after, double error) {
  std::vector<double> befores, residuals;
  const double ratio = Sum(after) / Sum(before);
  for (size_t step = 0; step < before.size(); step += kStepsOfBatch) {
    befores.push_back(before[step] + before[step + 1]);
    residuals.push_back(after[step] + after[step + 1] - ratio * befores.back());
  }
  const double t = StudentTQuantile(0.975, static_cast<double>(befores.size()) - 1);
  const double margin = std::hypot(t * std::sqrt(VarianceOfMean(residuals)) / Mean(befores),
                                   NormalQuantile(0.975) * error * (1 - ratio));
  return {1 - ratio, 1 - ratio - margin, 1 - ratio + margin};
}

void ExpectNear(const Saving& saving, const Saving& expected, int job) {
  EXPECT_NEAR(saving.share, expected.share, 1e-5) << job;
  EXPECT_NEAR(saving.low, expected.low, 1e-5) << job;
  EXPECT_NEAR(saving.high, expected.high, 1e-5) << job;
}

TEST(PartReplayer, SavingsAndSlowdownsAreAsDefined) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 100; ++i) {
    const int num_ranks = 2 + i % 4;
    OwnTimes own = RandomTimes(num_ranks, 6 + 2 * (i % 3), 0.1, random);
    for (double& time : own[0][1]) time += 1;
    ReplayJob job = MakeJob(own);
    job.may_overlap = i % 2 == 0;
    const PartReplayer replay(job);
    std::vector<double> measured, ideal, slowed, ideal_rank;
    OwnTimes all_ideal = own, one_measured = own, one_ideal = own;
    const std::vector<char> one = Select(job, [](int rank, int) { return rank == 1; });
    for (size_t step = 0; step < job.steps.size(); ++step) {
      for (int place = 0; place < kNumPlaces; ++place) {
        for (int rank = 0; rank < num_ranks; ++rank) {
          if (own[place][rank].empty()) continue;
          const double ideal_time = IdealOf(place, static_cast<int>(step));
          all_ideal[place][rank][step] = ideal_time;
          (rank == 1 ? one_ideal : one_measured)[place][rank][step] = ideal_time;
        }
      }
      measured.push_back(SecondsOfStep(own, step));
      ideal.push_back(SecondsOfStep(all_ideal, step));
      slowed.push_back(SecondsOfStep(one_measured, step));
      ideal_rank.push_back(SecondsOfStep(one_ideal, step));
    }

    std::vector<JobPart> parts = {
        {"all of it", one},
        {"computing", Select(job, [](int rank, int kind) { return rank == 1 && kind == kCompute; })}};
    replay.FindSlowdowns(parts);
    EXPECT_NEAR(parts[0].slowdown, Sum(slowed) / Sum(ideal), 1e-5) << i;
    for (size_t step = 0; step < slowed.size(); ++step)
      EXPECT_NEAR(parts[0].slowdown_of_step[step], slowed[step] / ideal[step], 1e-5) << i;
    const std::optional<double> share = replay.ShareOf([](int rank) { return rank == 1; });
    ASSERT_EQ(share.has_value(), Sum(measured) > Sum(ideal));
    if (share) {
      EXPECT_NEAR(*share, (Sum(measured) - Sum(ideal_rank)) / (Sum(measured) - Sum(ideal)), 1e-4) << i;
    }

    for (const bool only_if_sure : {false, true}) {
      replay.FindSavings(parts, only_if_sure);
      for (const JobPart& part : parts) {
        const Scenario scenario = {Scenario::kMeasured, Scenario::kMended, 1, part.selection, only_if_sure};
        const ScenarioReplayer& scenarios = replay.scenarios();
        Saving expected =
            SavingByDefinition(measured, part.mended, only_if_sure ? scenarios.ErrorOfMended(scenario) : 0);
        if (job.may_overlap) {
          // Nothing is waited for, at best.
          std::vector<double> shortest = scenarios.Shortened(scenario);
          for (size_t step = 0; step < shortest.size(); ++step)
            shortest[step] = measured[step] - shortest[step];
          expected.high = std::max(expected.high, SavingByDefinition(measured, shortest, 0).high);
        }
        ExpectNear(part.saving, expected, i);
      }
    }
    ExpectNear(replay.SavingBeyond(parts[1], parts[0]),
               SavingByDefinition(parts[1].mended, parts[0].mended, 0), i);

    std::vector<std::pair<double, size_t>> excesses;
    std::vector<size_t> ranks;
    for (int rank = 0; rank < num_ranks; ++rank) {
      ranks.push_back(rank);
      double excess = 0;
      for (size_t kind = 0; kind < kNumKinds; ++kind)
        excess += std::max(replay.scenarios().MeanExcess(rank, kind), 0.0);
      excesses.emplace_back(-excess, rank);
    }
    std::sort(excesses.begin(), excesses.end());
    replay.SortByExcess(ranks);
    for (size_t at = 0; at < ranks.size(); ++at) EXPECT_EQ(ranks[at], excesses[at].second) << i;
  }
  // How much one batch differs from others is not known, however much longer a step takes than its replay.
  ReplayJob job = MakeJob(RandomTimes(2, kStepsOfBatch, 0.1, random));
  EXPECT_EQ(PartReplayer(job).SavingOf({0, 0}).low, -INFINITY);
  for (ReplayJob::Step& step : job.steps) step.measured_seconds = 100;
  const WhatIfAnswer answer = AnswerWhatIf(job);
  for (const WhatIfPart& part : answer.by_rank()) {
    EXPECT_EQ(part.saved_low(), -1);
    EXPECT_EQ(part.saved_high(), 1);
  }
  EXPECT_EQ(answer.by_rank_size(), 2);
}

TEST(AnswerWhatIf, OfManyRanksThoseWithMostExcessAreReplayed) {
  std::mt19937_64 random(10);
  for (const int num_ranks : {256, 257}) {
    OwnTimes own = RandomTimes(num_ranks, 4, 0.001, random);
    // Every fourth rank takes longer, and the last one alone saves: 64 in all.
    for (int rank = 0; rank < 4 * 63; rank += 4) {
      for (double& time : own[0][rank]) time += 0.1;
    }
    const WhatIfAnswer answer = AnswerWhatIf(MakeJob(own));
    const bool are_all = num_ranks == 256;
    ASSERT_EQ(answer.by_rank_size(), are_all ? 256 : 64);
    EXPECT_EQ(
        std::count(answer.notes().begin(), answer.notes().end(), "by_rank has the 64 ranks with most excess"),
        are_all ? 0 : 1);
    for (int i = 0; i < answer.by_rank_size(); ++i)
      EXPECT_EQ(answer.by_rank(i).name(), absl::StrCat("rank ", are_all ? i : i == 63 ? 256 : 4 * i));
  }
}

// Replays each part of a job by itself, for all figures of an answer but those of what is to blame.
class Figures {
 public:
  Figures(const ReplayJob& job, const std::vector<ScaleQuestion>& questions, WhatIfAnswer* answer)
      : job_(job), replay_(job), answer_(*answer) {
    for (const ReplayJob::Step& step : job.steps) num_iterations_ += step.num_iterations;
    Summarize();
    for (const ReplayJob::Kind& kind : job.kinds) {
      const bool is_used = std::any_of(job.operations.begin(), job.operations.end(),
                                       [&](const auto& of) { return job.kinds[of.kind].name == kind.name; });
      if (is_used && std::find(operations_.begin(), operations_.end(), kind.operation) == operations_.end())
        operations_.push_back(kind.operation);
    }
    const std::vector<ReplayJob::Rank>& ranks = job.ranks;
    const auto named = [&](const std::string& name, int i) { return job.kinds[i].operation == name; };
    for (const std::string& name : operations_)
      Add(
          name, [&](int, int kind) { return named(name, kind); }, answer_.add_by_operation(),
          &WhatIfStep::add_by_operation);
    std::map<int, double> of_stage, of_replica;
    std::set<std::string> hosts;
    for (const ReplayJob::Rank& rank : ranks) {
      if (rank.stage >= 0) of_stage[rank.stage] = 0;
      if (rank.replica >= 0) of_replica[rank.replica] = 0;
      if (!rank.host.empty()) hosts.insert(rank.host);
    }
    for (auto& [stage, slowdown] : of_stage)
      slowdown = Add(
          absl::StrCat("stage ", stage), [&, of = stage](int rank, int) { return ranks[rank].stage == of; },
          answer_.add_by_stage(), &WhatIfStep::add_by_stage);
    for (auto& [replica, slowdown] : of_replica)
      slowdown = Add(
          absl::StrCat("replica ", replica),
          [&, of = replica](int rank, int) { return ranks[rank].replica == of; }, answer_.add_by_replica(),
          &WhatIfStep::add_by_replica);
    if (hosts.size() < 2) hosts.clear();
    for (const std::string& host : hosts)
      Add(
          host, [&](int rank, int) { return ranks[rank].host == host; }, answer_.add_by_host());
    std::vector<std::pair<double, int>> worst;
    for (int i = 0; i < static_cast<int>(ranks.size()); ++i) {
      double slowdown = Add(
          NameOf(i), [&](int rank, int) { return rank == i; }, answer_.add_by_rank());
      if (!of_stage.empty() && !of_replica.empty())
        slowdown = std::min(of_stage[ranks[i].stage], of_replica[ranks[i].replica]);
      if (slowdown > 0) answer_.mutable_by_rank(i)->set_slowdown(slowdown);
      worst.emplace_back(-slowdown, i);
    }
    // Of a hundred ranks three, of fewer at least one.
    std::sort(worst.begin(), worst.end());
    worst.resize((3 * worst.size() + 99) / 100);
    for (const auto& [slowdown, rank] : worst) answer_.add_worst_ranks(ranks[rank].rank);
    const auto is_worst = [&](int rank) {
      return std::any_of(worst.begin(), worst.end(), [&](const auto& of) { return of.second == rank; });
    };
    if (const auto share = replay_.ShareOf(is_worst)) answer_.set_worst_ranks_share(*share);
    const auto is_last = [&](int rank) { return ranks[rank].stage == of_stage.rbegin()->first; };
    if (of_stage.size() > 1) {
      if (const auto share = replay_.ShareOf(is_last)) answer_.set_last_stage_share(*share);
    }
    AddScaled("communication that nothing overlaps", 0,
              Select(job, [&](int, int kind) { return job.kinds[kind].communicates; }),
              answer_.mutable_communication_overlapped());
    for (const ScaleQuestion& question : questions)
      AddScaled(question.name, question.factor, question.selection, answer_.add_scaled());
    for (const PathPart& part : FindCriticalPath(job)) {
      CriticalPart& out = *answer_.add_critical_path();
      out.set_rank(NameOf(part.rank));
      out.set_operation(job.kinds[part.kind].name);
      out.set_share(part.seconds / Sum(replay_.measured()));
    }
  }

 private:
  std::string NameOf(int rank) const {
    const ReplayJob::Rank& of = job_.ranks[rank];
    return absl::StrCat("rank ", of.rank, of.host.empty() ? "" : absl::StrCat(" (", of.host, ")"));
  }

  void Summarize() {
    answer_.set_num_ranks(static_cast<int>(job_.ranks.size()));
    answer_.set_num_steps(num_iterations_);
    answer_.set_first_step(job_.steps[0].number);
    answer_.set_last_step(job_.steps.back().number + job_.steps.back().num_iterations - 1);
    double measured = 0;
    for (size_t i = 0; i < job_.steps.size(); ++i) {
      const ReplayJob::Step& step = job_.steps[i];
      const double replayed = replay_.measured()[i], ideal = replay_.ideal()[i];
      measured += step.measured_seconds;
      WhatIfStep& out = *answer_.add_by_step();
      out.set_step(step.number);
      out.set_measured_seconds(step.measured_seconds / step.num_iterations);
      out.set_replayed_seconds(replayed / step.num_iterations);
      out.set_ideal_seconds(ideal / step.num_iterations);
      out.set_slowdown(replayed / ideal);
    }
    const auto count = static_cast<double>(num_iterations_);
    const double replayed = Sum(replay_.measured()), ideal = Sum(replay_.ideal());
    answer_.set_measured_seconds(measured / count);
    answer_.set_replayed_seconds(replayed / count);
    answer_.set_ideal_seconds(ideal / count);
    answer_.set_slowdown(replayed / ideal);
    answer_.set_launch_slowdown(measured / replayed);
    answer_.set_replay_error(ReplayError(job_));
    for (const std::string& note : job_.notes) answer_.add_notes(note);
    answer_.set_incomplete(job_.incomplete);
    answer_.set_step_word(job_.step_word);
  }

  // Returns the slowdown.
  template <typename Selects>
  double Add(const std::string& name, const Selects& selects, WhatIfPart* out,
             WhatIfStepPart* (WhatIfStep::*add)() = nullptr) {
    std::vector<JobPart> part = {{name, Select(job_, selects)}};
    replay_.FindSlowdowns(part);
    replay_.FindSavings(part);
    SetPart(part[0], out);
    out->set_slowdown(part[0].slowdown);
    for (int step = 0; step < answer_.by_step_size() && add != nullptr; ++step) {
      WhatIfStepPart& of_step = *(answer_.mutable_by_step(step)->*add)();
      of_step.set_name(name);
      of_step.set_slowdown(part[0].slowdown_of_step[step]);
    }
    return part[0].slowdown;
  }

  void AddScaled(const std::string& name, double factor, const std::vector<char>& selection,
                 WhatIfPart* out) {
    JobPart part(name, selection);
    part.saving = replay_.SavingOf(
        replay_.scenarios().Replay({{Scenario::kMeasured, Scenario::kScaled, factor, selection}})[0]);
    SetPart(part, out);
  }

  // Names what a part is of, if it is not of all.
  void SetPart(const JobPart& part, WhatIfPart* out) const {
    out->set_name(part.name);
    std::set<int> ranks;
    std::set<std::string> operations;
    for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      for (size_t kind = 0; kind < job_.kinds.size(); ++kind) {
        if (part.selection[rank * job_.kinds.size() + kind] == 0) continue;
        ranks.insert(job_.ranks[rank].rank);
        operations.insert(job_.kinds[kind].operation);
      }
    }
    if (ranks.size() < job_.ranks.size()) out->mutable_ranks()->Add(ranks.begin(), ranks.end());
    if (operations.size() == 1 && operations_.size() > 1) out->set_operation(*operations.begin());
    // What launches delay stays.
    const double share = answer_.replayed_seconds() / answer_.measured_seconds();
    out->set_seconds(answer_.measured_seconds() * (1 - share * part.saving.share));
    out->set_saved(share * part.saving.share);
    out->set_saved_low(std::max(-1.0, share * part.saving.low));
    out->set_saved_high(std::min(1.0, share * part.saving.high));
  }

  const ReplayJob& job_;
  const PartReplayer replay_;
  WhatIfAnswer& answer_;
  int64_t num_iterations_ = 0;
  std::vector<std::string> operations_;
};

TEST(AnswerWhatIf, FiguresAreThoseOfItsParts) {
  std::mt19937_64 random(12);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<uint64_t>(end)); };
  for (int trial = 0; trial < 120; ++trial) {
    const int num_ranks = trial % 20 == 0 ? 32 + trial : 1 + below(6);
    ReplayJob job = MakeJob(RandomTimes(num_ranks, 2 * (1 + below(4)), below(2) == 0 ? 0.1 : 0.01, random));
    const bool has_stages = below(2) == 0, has_replicas = below(2) == 0, is_alike = below(4) == 0;
    for (ReplayJob::Rank& rank : job.ranks) {
      rank.rank *= 10;
      if (has_stages) rank.stage = below(3);
      if (has_replicas) rank.replica = below(3);
      rank.host = std::vector<std::string>{"", "a", "b"}[static_cast<size_t>(below(3))];
    }
    for (ReplayJob::Step& step : job.steps) {
      step.number = step.number * 7 + 5;
      step.num_iterations = 1 + below(3);
      step.measured_seconds = 1 + 0.25 * below(10);
    }
    for (ReplayJob::Operation& operation : job.operations) {
      operation.ideal = is_alike ? operation.own : operation.ideal * (1 + 0.25 * below(3));
      if (trial % 4 == 0) operation.place = -1;
    }
    if (below(3) == 0) job.kinds[kSave].operation = "compute";
    if (below(3) == 0) job.kinds[kReduce].operation = job.kinds[kSave].operation;
    if (below(3) == 0) job.kinds.push_back({"unused", "unused", true});
    if (below(2) == 0) job.notes = {"a", "b"};
    job.incomplete = below(4) == 0;
    job.step_word = "turn";
    std::vector<ScaleQuestion> questions;
    for (int i = below(3); i > 0; --i)
      questions.push_back({absl::StrCat("question ", i), Select(job, [&](int, int) { return below(3) > 0; }),
                           0.5 * below(4)});
    WhatIfAnswer answer = AnswerWhatIf(job, questions), expected;
    Figures(job, questions, &expected);
    // Others test these.
    for (const char* const field :
         {"verdict", "conclusion", "blamed_ranks", "repairs", "best_repairs_together", "not_excluded"})
      answer.GetReflection()->ClearField(&answer, answer.GetDescriptor()->FindFieldByName(field));
    google::protobuf::util::MessageDifferencer differencer;
    differencer.set_float_comparison(google::protobuf::util::MessageDifferencer::APPROXIMATE);
    std::string differences;
    differencer.ReportDifferencesToString(&differences);
    ASSERT_TRUE(differencer.Compare(expected, answer)) << trial << "\n" << differences;
  }
}

// The step's end waits for the longest reduction, and before that for the rank that came to it last.
TEST(FullReplay, ErrorAndCriticalPathAreAsDefined) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 50; ++i) {
    const int num_ranks = 1 + i % 4;
    OwnTimes own = RandomTimes(num_ranks, 5, 0.3, random);
    for (auto& of_place : own) {
      for (auto& of_rank : of_place) {
        for (double& time : of_rank) time = std::round(time * 1024) / 1024;  // without rounding of sums
      }
    }
    ReplayJob job = MakeJob(own);
    OwnTimes delayed = own;
    for (size_t at = 0; at < job.operations.size(); ++at) {
      ReplayJob::Operation& operation = job.operations[at];
      operation.delay = 0.1 * static_cast<double>(random() % 4);
      size_t step = 0;
      while (job.graph.OperationsOf(static_cast<int>(step)).second <= static_cast<int32_t>(at)) ++step;
      // A delay of the reduction comes before the others can begin it.
      (operation.kind == kReduce ? delayed[0] : delayed[operation.place])[operation.rank][step] +=
          operation.delay;
    }
    double difference = 0, total = 0;
    std::map<std::pair<int, int>, double> seconds;
    for (size_t step = 0; step < 5; ++step) {
      job.steps[step].measured_seconds = static_cast<double>(5 + random() % 10);
      difference += std::abs(SecondsOfStep(delayed, step) - job.steps[step].measured_seconds);
      total += job.steps[step].measured_seconds;
      const auto longest = [&](int first_place, int end_place) {
        std::vector<double> of_rank(num_ranks);
        for (int place = first_place; place < end_place; ++place) {
          for (int rank = 0; rank < num_ranks; ++rank) of_rank[rank] += TimeOf(own[place][rank], step);
        }
        return static_cast<int>(std::max_element(of_rank.begin(), of_rank.end()) - of_rank.begin());
      };
      const int last = longest(0, kNumPlaces - 1), longest_reduction = longest(kNumPlaces - 1, kNumPlaces);
      for (int place = 0; place < kNumPlaces - 1; ++place) {
        if (!own[place][last].empty()) seconds[{last, kKindOfPlace[place]}] += own[place][last][step];
      }
      seconds[{longest_reduction, kReduce}] += own[kNumPlaces - 1][longest_reduction][step];
    }
    EXPECT_NEAR(ReplayError(job), difference / total, 1e-9) << i;
    const std::vector<PathPart> path = FindCriticalPath(job);
    ASSERT_EQ(path.size(), seconds.size()) << i;
    for (size_t part = 0; part < path.size(); ++part) {
      EXPECT_NEAR(path[part].seconds, (seconds[{path[part].rank, path[part].kind}]), 1e-9) << i;
      EXPECT_LE(path[part].seconds, path[part == 0 ? 0 : part - 1].seconds) << i;
    }
    for (ReplayJob::Step& step : job.steps) step.measured_seconds = 0;
    EXPECT_EQ(ReplayError(job), 1);
  }
}

}  // namespace
}  // namespace ott::saved
