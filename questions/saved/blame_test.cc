// Judges small jobs of all kinds by the rules as they are written down.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/saved/small_job_for_test.h"
#include "ott/questions/saved/what_if.h"
#include "questions/saved/named_job.h"
#include "questions/saved/part_replayer.h"

namespace ott::saved {
namespace {

struct Expected {
  WhatIfVerdict verdict = WHAT_IF_CANNOT_TELL;
  std::string conclusion;
  std::vector<int> blamed;
};

// Applies the rules of blame, one after the other. `answer` has the times and shares that they rest on.
class Rules {
 public:
  Rules(const ReplayJob& job, const WhatIfAnswer& answer) : job_(job), named_(job), answer_(answer) {
    for (int rank = 0; rank < Size(); ++rank) ranks_.push_back(PartOf({rank}));
    named_.replay.FindSlowdowns(ranks_);
    named_.replay.FindSavings(ranks_);
  }

  Expected Judge() {
    if (!(answer_.replay_error() <= 0.02))
      return {WHAT_IF_CANNOT_TELL, "cannot tell: a replay of what was measured is", {}};
    if (Size() == 1) return {WHAT_IF_CANNOT_TELL, "cannot tell: one rank has no others to be like", {}};
    if (!job_.knows_who_waits)
      return {WHAT_IF_CANNOT_TELL, "cannot tell: no measurement is known in which ranks wait", {}};
    if (!job_.unmatched.empty()) {
      return {WHAT_IF_CANNOT_TELL,
              absl::StrCat("cannot tell: ranks come to \"", job_.unmatched, "\" different numbers"),
              {}};
    }
    const bool compares = named_.compares_ranks();
    if (const std::vector<int> blamed = compares ? Blamed() : std::vector<int>(); !blamed.empty()) {
      JobPart part = PartOf(blamed);
      const double saved = SavingOf(part).share;
      return {WHAT_IF_RANKS,
              absl::StrFormat("%s: like the others, a step would take %.0f %% less", part.name, 100 * saved),
              blamed};
    }
    const auto [most, not_excluded] = NotExcluded();
    if (answer_.slowdown() < (compares ? 1.1 : 1.03)) {
      if (job_.incomplete)
        return {WHAT_IF_CANNOT_TELL,
                "cannot tell: the " + absl::StrCat(Size()) + " ranks that are there are alike",
                {}};
      if (compares && not_excluded >= 0.05) {
        return {WHAT_IF_CANNOT_TELL,
                absl::StrFormat(
                    "cannot tell: no rank surely costs anything, but that mending %s saves up to %.0f %%",
                    most, 100 * not_excluded),
                {}};
      }
      return {WHAT_IF_EVEN,
              !compares
                  ? "nothing to mend: if all ranks were alike a step would take"
                  : absl::StrFormat("nothing to mend: mending any one rank saves less than %.1f %% (95 %%); ",
                                    100 * not_excluded),
              {}};
    }
    if (!compares && answer_.worst_ranks_share() >= 0.5 && !IsTheLastStageAlone(Worst())) {
      return {WHAT_IF_RANKS,
              absl::StrFormat("rank %d: %.0f %% of what all repairs would bring", Worst(),
                              100 * answer_.worst_ranks_share()),
              {Worst()}};
    }
    if (IsTheLastStage()) {
      return {WHAT_IF_LAST_STAGE,
              absl::StrFormat("the last stage, 1, has more work than the others: %.0f %%",
                              100 * answer_.last_stage_share()),
              {}};
    }
    return {WHAT_IF_UNEVEN,
            absl::StrFormat("work is uneven: a step takes %.2f times what it would if all ranks were alike",
                            answer_.slowdown()) +
                (compares ? absl::StrFormat(", and mending %s saves less than %.1f %% (95 %%)", most,
                                            100 * not_excluded)
                          : ""),
            {}};
  }

  // Returns what the blamed, all together and each, take longer in each operation, and in everything; and the
  // stages. One that mends less is the better one where it saves nearly as much.
  std::vector<JobPart> Repairs(const std::vector<int>& blamed) const {
    std::vector<std::vector<int>> sets;
    if (blamed.size() > 1) sets.push_back(blamed);
    for (int rank = 0; rank < Size(); ++rank) {
      if (!named_.compares_ranks() || std::count(blamed.begin(), blamed.end(), rank) > 0)
        sets.push_back({rank});
    }
    std::vector<JobPart> repairs;
    for (const std::vector<int>& set : sets) {
      const std::string name = PartOf(set).name + "'s excess in ";
      size_t num_operations = 0;
      for (const size_t kind : {kCompute, kSave, kReduce}) {
        double excess = 0;
        for (const int rank : set)
          excess += named_.replay.scenarios().MeanExcess(static_cast<size_t>(rank), kind);
        if (excess < 0.015 * Sum(named_.replay.measured()) / static_cast<double>(job_.steps.size())) continue;
        ++num_operations;
        repairs.push_back(
            {absl::StrCat(name, "\"", job_.kinds[kind].operation, "\""), Select(job_, [&](int rank, int of) {
               return std::count(set.begin(), set.end(), rank) > 0 && of == static_cast<int>(kind);
             })});
      }
      if (num_operations < 2 || !named_.compares_ranks()) continue;
      repairs.push_back(PartOf(set));
      repairs.back().name = name + "everything";
      repairs.back().weight = 0.8;
    }
    for (const int stage : named_.stages) {
      if (named_.stages.size() < 2) break;
      repairs.push_back({absl::StrCat("stage ", stage, "'s excess"), Select(job_, [&](int rank, int) {
                           return job_.ranks[static_cast<size_t>(rank)].stage == stage;
                         })});
      repairs.back().weight = 0.8;
    }
    named_.replay.FindSavings(repairs);
    std::vector<JobPart> worth;
    for (const JobPart& repair : repairs) {
      if (repair.saving.share >= 0.03 && repair.saving.low > 0) worth.push_back(repair);
    }
    std::stable_sort(worth.begin(), worth.end(), [](const JobPart& a, const JobPart& b) {
      return a.weight * a.saving.share > b.weight * b.saving.share;
    });
    if (worth.size() > 8) worth.resize(8, PartOf({0}));
    return worth;
  }

  // Adds to the best repair the one that brings most beside it, up to three, while each brings 3 % more.
  std::optional<JobPart> Together(const std::vector<JobPart>& repairs) const {
    std::optional<JobPart> together;
    if (repairs.size() < 2) return together;
    JobPart best = repairs[0];
    for (int count = 2; count <= 3; ++count) {
      std::optional<JobPart> most;
      for (const JobPart& repair : repairs) {
        JobPart both = {absl::StrCat(best.name, ", ", repair.name), best.selection};
        for (size_t i = 0; i < both.selection.size(); ++i) both.selection[i] |= repair.selection[i];
        SavingOf(both);
        if (!most || both.saving.share > most->saving.share) most = both;
      }
      if (most->saving.share < best.saving.share + 0.03) break;
      together = best = *most;
    }
    return together;
  }

 private:
  int Size() const { return static_cast<int>(job_.ranks.size()); }

  JobPart PartOf(const std::vector<int>& members) const {
    const std::string name =
        members.size() == 1 ? absl::StrCat("rank ", members[0]) : "ranks " + absl::StrJoin(members, ", ");
    return {name, Select(job_, [&](int rank, int) {
              return std::count(members.begin(), members.end(), rank) > 0;
            })};
  }

  const Saving& SavingOf(JobPart& part) const {
    std::vector<JobPart> parts = {part};
    named_.replay.FindSavings(parts);
    part = parts[0];
    return part.saving;
  }

  // Returns the worst half of those that have others of their stage, if their excess is sure and worth it.
  std::vector<int> Suspects() const {
    const auto others_of_stage = [&](int rank) {
      return std::count_if(job_.ranks.begin(), job_.ranks.end(),
                           [&](const auto& other) {
                             return other.stage == job_.ranks[static_cast<size_t>(rank)].stage;
                           }) -
             1;
    };
    const bool has_stages = named_.stages.size() > 1;
    std::vector<std::pair<double, int>> order;  // the most first, of two alike the lower rank
    for (int rank = 0; rank < Size(); ++rank) {
      if (has_stages && others_of_stage(rank) == 0) continue;
      double excess = 0;
      for (size_t kind = 0; kind < job_.kinds.size(); ++kind)
        excess += std::max(0.0, named_.replay.scenarios().MeanExcess(static_cast<size_t>(rank), kind));
      order.emplace_back(has_stages ? -excess : -ranks_[static_cast<size_t>(rank)].slowdown, rank);
    }
    std::sort(order.begin(), order.end());
    std::vector<int> suspects;
    if (order.size() < 2) return suspects;
    order.resize(std::min<size_t>({std::max<size_t>(1, order.size() / 2), kMaxBlamed, order.size()}));
    const double least = 0.015 * Sum(named_.replay.measured()) / static_cast<double>(job_.steps.size());
    for (const auto& [unused, rank] : order) {
      if (named_.replay.scenarios().SureExcess(static_cast<size_t>(rank)) >= least) suspects.push_back(rank);
    }
    return suspects;
  }

  // Returns the fewest suspects that bring four fifths of what any number of them bring, of whom each adds
  // surely to it.
  std::vector<int> Blamed() const {
    const std::vector<int> suspects = Suspects();
    std::vector<JobPart> sets;
    double best = 0;
    for (size_t count = 1; count <= suspects.size(); ++count) {
      std::vector<int> members(suspects.begin(), suspects.begin() + static_cast<std::ptrdiff_t>(count));
      sets.push_back(PartOf(members));
      best = std::max(best, SavingOf(sets.back()).share);
    }
    // Ranks that are alike differ by so much, as each of two takes more or less.
    double least = 0.03;
    if (job_.work_spread > 0) {
      const double t = StudentTQuantile(1 - 0.001 / Size(), 20);
      least = std::max(
          least, (job_.work_slowdown + t * std::sqrt(2) * job_.work_spread) / answer_.replayed_seconds());
    }
    if (sets.empty() || best < least) return {};
    size_t last = 0;
    while (sets[last].saving.share < 0.8 * best) ++last;
    while (last > 0 && named_.replay.SavingBeyond(sets[last - 1], sets[last]).low <= 0) --last;
    if (sets[last].saving.share < least || sets[last].saving.low <= 0) return {};
    std::vector<int> blamed(suspects.begin(), suspects.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    std::sort(blamed.begin(), blamed.end());
    return blamed;
  }

  // Returns what mending a rank may save, sure or not, or one in each half; and what others' CPU and waiting
  // may hide.
  std::pair<std::string, double> NotExcluded() const {
    std::vector<JobPart> parts = ranks_;
    named_.replay.FindSavings(parts, false);
    const size_t num_steps = job_.steps.size(), middle = num_steps / 2;
    size_t worst[2] = {0, 0};
    const auto seconds = [&](size_t rank, int half) {
      double sum = 0;
      for (size_t step = half == 0 ? 0 : middle; step < (half == 0 ? middle : num_steps); ++step)
        sum += parts[rank].mended[step];
      return sum;
    };
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      for (const int half : {0, 1}) {
        if (seconds(rank, half) < seconds(worst[half], half)) worst[half] = rank;
      }
    }
    std::vector<double> mended;
    for (size_t step = 0; step < num_steps; ++step)
      mended.push_back(parts[worst[step >= middle]].mended[step]);
    std::string most;
    double high = -1;
    for (const JobPart& part : parts) {
      if (part.saving.high > high) most = part.name;
      high = std::max(high, part.saving.high);
    }
    if (const double of_halves = named_.replay.SavingOf(mended).high; of_halves > high) {
      high = of_halves;
      most = parts[worst[0]].name + (worst[0] == worst[1] ? "" : " and then " + parts[worst[1]].name);
    }
    high += (job_.taken_difference + job_.inside_difference) / answer_.replayed_seconds();
    return {most, std::min(1.0, std::max(0.001, high))};
  }

  // Returns the rank that takes longest; of two alike the lower one.
  int Worst() const {
    const auto worst = std::max_element(ranks_.begin(), ranks_.end(), [](const JobPart& a, const JobPart& b) {
      return a.slowdown < b.slowdown;
    });
    return static_cast<int>(worst - ranks_.begin());
  }

  bool IsTheLastStageAlone(int rank) const {
    const auto is_of_last = [&](const auto& of) { return of.stage == *named_.stages.rbegin(); };
    return named_.stages.size() > 1 && is_of_last(job_.ranks[static_cast<size_t>(rank)]) &&
           std::count_if(job_.ranks.begin(), job_.ranks.end(), is_of_last) == 1;
  }

  // Returns true if the last stage surely costs much, and none of its ranks alone may cost as much.
  bool IsTheLastStage() const {
    if (named_.stages.size() < 2 || answer_.last_stage_share() < 0.5) return false;
    std::vector<int> members;
    for (int rank = 0; rank < Size(); ++rank) {
      if (job_.ranks[static_cast<size_t>(rank)].stage == *named_.stages.rbegin()) members.push_back(rank);
    }
    JobPart stage = PartOf(members);
    if (!named_.compares_ranks()) return true;
    if (SavingOf(stage).share < 0.03 || stage.saving.low <= 0) return false;
    return members.size() == 1 || std::all_of(members.begin(), members.end(), [&](int member) {
             return named_.replay.SavingBeyond(ranks_[static_cast<size_t>(member)], stage).low > 0;
           });
  }

  const ReplayJob& job_;
  const NamedJob named_;
  const WhatIfAnswer& answer_;
  std::vector<JobPart> ranks_;
};

TEST(Blame, IsAsTheRulesSay) {
  std::mt19937_64 random(1);
  const auto one_in = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)) == 0; };
  std::map<std::pair<int, int>, int> seen;  // by verdict and number of ranks to blame
  for (int trial = 0; trial < 1200; ++trial) {
    SCOPED_TRACE(trial);
    const int num_ranks = one_in(12) ? 1 : 2 + static_cast<int>(random() % 6);
    OwnTimes own = RandomTimes(num_ranks, one_in(8) ? 4 : 20, one_in(2) ? 0.005 : 0.06, random);
    // What ranks take longer, each in all steps, in a half of them or in one.
    for (uint64_t i = random() % 4; i > 0; --i) {
      std::vector<double>& times = own[random() % 2][random() % static_cast<uint64_t>(num_ranks)];
      const size_t first = one_in(3) ? times.size() / 2 : one_in(6) ? times.size() - 1 : 0;
      const double factor = 1 + 0.2 * static_cast<double>(1 + random() % 6);
      for (size_t step = first; step < times.size(); ++step) times[step] *= factor;
    }
    // In all but some steps another rank takes nearly as long, so that mending the one saves in few steps.
    if (num_ranks > 1 && one_in(3)) {
      std::vector<double>&one = own[0][random() % 2], &other = own[0].back();
      const size_t first = 2 * (random() % 4);
      for (size_t step = 0; step < one.size(); ++step) {
        one[step] *= 3;
        if (step >= first) other[step] *= 2.99;
      }
    }
    // One that is late now and then, once by much, does not surely add to what the worst of another stage
    // costs.
    const bool is_seldom = num_ranks > 3 && one_in(12);
    for (size_t step = 0; step < own[0][0].size() && is_seldom; ++step) {
      own[0][1][step] += 2.5;
      if (step % 4 == 0) own[0][2][step] += step == 8 ? 30 : 3;
    }
    // The last stage always takes long, and does not surely cost much: in most steps a rank of another one
    // takes as long by design.
    const bool is_hidden = num_ranks > 2 && !is_seldom && one_in(12);
    for (size_t step = 0; step < own[0][0].size() && is_hidden; ++step) {
      own[0].back()[step] *= 9;
      if (step >= 4) own[0][0][step] *= 9;
    }
    // One of the last stage's two ranks takes longer, and ranks that are alike may differ by as much.
    const bool is_one_of_two = num_ranks > 3 && !is_seldom && !is_hidden && one_in(12);
    for (size_t step = 0; step < own[0][0].size() && is_one_of_two; ++step) own[0].back()[step] += 3;
    // The step takes as much longer as this rank's reduction, also if others have more work by design.
    if (one_in(8)) {
      for (double& time : own[3][0]) time *= 2.2;
    }
    const bool has_stages = is_seldom || is_hidden || is_one_of_two || (num_ranks > 1 && one_in(3));
    const int num_first = is_seldom       ? 2
                          : is_hidden     ? num_ranks - 1
                          : is_one_of_two ? num_ranks - 2
                          : has_stages ? 1 + static_cast<int>(random() % static_cast<uint64_t>(num_ranks - 1))
                                       : num_ranks;
    const bool is_long_stage = has_stages && !is_seldom && one_in(2);
    const double longer = 1 + 0.5 * static_cast<double>(1 + random() % 16);
    for (int rank = num_first; rank < num_ranks && is_long_stage; ++rank) {
      for (double& time : own[0][static_cast<size_t>(rank)]) time *= longer;
    }
    // What one rank alone saves may hide what others take longer.
    const double saves = !is_seldom && one_in(3) ? 1 : 1e-3;
    for (double& time : own[2].back()) time *= saves;
    ReplayJob job = MakeJob(own);
    for (int rank = 0; rank < num_ranks && has_stages; ++rank)
      job.ranks[static_cast<size_t>(rank)].stage = rank >= num_first;
    for (ReplayJob::Operation& operation : job.operations) {
      const bool is_by_design = is_hidden && operation.rank == 0 && operation.place == 0;
      operation.ideal = operation.kind == kSave ? 0 : is_by_design ? operation.own : operation.place + 1;
      // Ranks that do what no other does are compared with what is ideal.
      if (trial % 6 == 0) operation.place = -1;
    }
    const double error = one_in(10) ? 0.025 : 0.01;
    for (size_t step = 0; step < job.steps.size(); ++step)
      job.steps[step].measured_seconds = PartReplayer(job).measured()[step] * (1 + error);
    job.incomplete = one_in(4);
    job.knows_who_waits = !one_in(12);
    if (one_in(12)) job.unmatched = "send";
    if (is_one_of_two || one_in(2)) job.work_spread = is_one_of_two || one_in(4) ? 1 : 0.05;
    if (one_in(2)) job.work_slowdown = 0.5;
    if (one_in(4)) job.taken_difference = 0.3;
    if (one_in(4)) job.inside_difference = 0.2;
    const WhatIfAnswer answer = AnswerWhatIf(job, {});
    Rules rules(job, answer);
    const Expected expected = rules.Judge();
    EXPECT_EQ(answer.verdict(), expected.verdict) << answer.conclusion();
    EXPECT_TRUE(absl::StartsWith(answer.conclusion(), expected.conclusion)) << answer.conclusion() << "\n"
                                                                            << expected.conclusion;
    EXPECT_THAT(answer.blamed_ranks(), ::testing::ElementsAreArray(expected.blamed));
    const std::vector<JobPart> repairs =
        job.unmatched.empty() ? rules.Repairs(expected.blamed) : std::vector<JobPart>();
    ASSERT_EQ(static_cast<size_t>(answer.repairs_size()), repairs.size());
    for (int i = 0; i < answer.repairs_size(); ++i) {
      EXPECT_EQ(answer.repairs(i).name(), repairs[static_cast<size_t>(i)].name);
      const double scale = answer.replayed_seconds() / answer.measured_seconds();
      EXPECT_DOUBLE_EQ(answer.repairs(i).saved(), repairs[static_cast<size_t>(i)].saving.share * scale);
    }
    const std::optional<JobPart> together = rules.Together(repairs);
    ASSERT_EQ(answer.has_best_repairs_together(), together.has_value());
    if (together) {
      EXPECT_EQ(answer.best_repairs_together().name(), together->name);
    }
    ++seen[{answer.verdict(), answer.blamed_ranks_size()}];
  }
  for (const auto verdict : {WHAT_IF_CANNOT_TELL, WHAT_IF_EVEN, WHAT_IF_LAST_STAGE, WHAT_IF_UNEVEN})
    EXPECT_GT((seen[{verdict, 0}]), 20) << verdict;
  EXPECT_GT((seen[{WHAT_IF_RANKS, 1}]), 20);
  EXPECT_GT((seen[{WHAT_IF_RANKS, 2}]), 20);
}

}  // namespace
}  // namespace ott::saved
