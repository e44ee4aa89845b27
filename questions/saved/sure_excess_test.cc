// Says which excess is sure by the rules of scenario.h, written once more.

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/statistics/rare_excess.h"
#include "ott/questions/saved/scenario.h"
#include "ott/questions/saved/small_job_for_test.h"

namespace ott::saved {
namespace {

// Returns what a rank takes longer in a mean step than the median of its stage's others, or of all if it has
// none.
double MeanExcess(const ReplayJob& job, const OwnTimes& own, size_t rank, int kind) {
  std::vector<double> all, of_stage;
  double of_rank = 0;
  for (size_t other = 0; other < job.ranks.size(); ++other) {
    double mean = 0;
    for (int place = 0; place < kNumPlaces; ++place) {
      if (kKindOfPlace[place] == kind && !own[place][other].empty()) mean += Mean(own[place][other]);
    }
    if (other == rank) of_rank = mean;
    if (other != rank) all.push_back(mean);
    if (other != rank && job.ranks[other].stage == job.ranks[rank].stage) of_stage.push_back(mean);
  }
  return of_rank - Median(of_stage.empty() ? all : of_stage);
}

// Applies the rules of scenario.h to one rank's work of a kind once more.
bool IsSurelySlow(const ReplayJob& job, const OwnTimes& own, size_t slow, int kind) {
  const size_t num_steps = own[0][0].size(), num_batches = (num_steps + 1) / kStepsOfBatch;
  const auto time = [&](size_t rank, size_t step) {
    double seconds = 0;
    for (int place = 0; place < kNumPlaces; ++place) {
      if (kKindOfPlace[place] == kind && !own[place][rank].empty()) seconds += own[place][rank][step];
    }
    return seconds;
  };
  std::vector<size_t> all, others;
  bool is_alone = false, do_others = false;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    if (rank == slow) continue;
    all.push_back(rank);
    if (job.ranks[rank].stage == job.ranks[slow].stage) others.push_back(rank);
    do_others |= own[kind == kCompute ? 0 : kind == kSave ? 2 : 3][rank].size() > 0;
  }
  is_alone = !do_others && !others.empty();
  if (others.empty()) others = all;
  if (num_batches < 3) return false;
  std::vector<double> excess;
  double num_twice = 0;
  for (size_t first = 0; first < num_steps; first += kStepsOfBatch) {
    double of_slow = 0, of_others = 0;
    for (size_t step = first; step < std::min(num_steps, first + kStepsOfBatch); ++step) {
      of_slow += time(slow, step);
      for (const size_t rank : others) of_others += time(rank, step) / static_cast<double>(others.size());
    }
    excess.push_back(of_slow - of_others);
    num_twice += of_slow >= 2 * of_others;
  }
  const ReplayJob::Kind& what = job.kinds[static_cast<size_t>(kind)];
  if (what.communicates &&
      (what.holds_work || job.taken_share > 0.01 || num_twice < 0.9 * static_cast<double>(excess.size())))
    return false;
  int num_with = 0, num_begins = 0;
  for (size_t step = 0; step < num_steps; ++step) {
    num_with += time(slow, step) > 0;
    num_begins += time(slow, step) > 0 && (step == 0 || time(slow, step - 1) == 0);
  }
  const bool is_habit = num_begins >= 3 || 2 * num_with > static_cast<int>(num_steps);
  if (Mean(excess) > 0 && is_alone && is_habit) return true;
  // Late by much in some steps, of which those in a row are one event.
  std::vector<double> hiccups, events, events_of_others;
  std::vector<int64_t> steps;
  double all_late = 0;
  std::vector<size_t> compared = others;
  compared.push_back(slow);
  std::set<size_t> before;
  for (size_t step = 0; step < num_steps && !what.communicates; ++step) {
    std::vector<double> times;
    for (const size_t rank : compared) times.push_back(time(rank, step));
    std::set<size_t> late_ranks;
    for (const size_t rank : compared) {
      const double late = (times.size() == 2 ? 2 : 1) * (time(rank, step) - Median(times));
      all_late += std::max(late, 0.0);
      if (late < 0.2) continue;
      late_ranks.insert(rank);
      if (rank == slow) hiccups.push_back(late);
      if (before.count(rank) > 0) continue;
      (rank == slow ? events : events_of_others).push_back(late);
      if (rank == slow) steps.push_back(static_cast<int64_t>(step));
    }
    before = late_ranks;
  }
  if (!hiccups.empty() && IsRepeated(hiccups, all_late, static_cast<int64_t>(num_steps), 1) &&
      (IsRegular(steps) || IsMoreThanChance(events, events_of_others, static_cast<int64_t>(compared.size()))))
    return true;
  const double error = 0.001 / std::pow(job.ranks.size(), 2) / kNumKinds;
  return Mean(excess) > 0 &&
         Mean(excess) >= StudentTQuantile(1 - error, static_cast<double>(excess.size()) - 1) *
                             std::sqrt(VarianceOfMean(excess));
}

TEST(ScenarioReplayer, SureExcessIsAsTheRulesSay) {
  std::mt19937_64 random(7);
  const auto one_in = [&](uint64_t n) { return random() % n == 0; };
  int num_sure[kNumKinds] = {}, num_unsure[kNumKinds] = {};
  for (int trial = 0; trial < 1500; ++trial) {
    const size_t num_ranks = 2 + random() % 4, slow = random() % num_ranks, late = random() % num_ranks;
    const size_t num_steps = one_in(4) ? 4 + random() % 4 : 24 + random() % 2;
    OwnTimes own = RandomTimes(static_cast<int>(num_ranks), static_cast<int>(num_steps), 0.01, random);
    const size_t place = random() % 2, every = 1 + random() % 6, since = random() % num_steps;
    const double more = one_in(3) ? 0 : std::pow(10, -2 + static_cast<double>(random() % 24) / 10);
    const bool is_once = one_in(6), has_late_reductions = one_in(8), is_twice = one_in(8);
    // A rank may do what it alone does in only some steps in a row.
    const size_t num_in_a_row = one_in(3) ? 1 + random() % 6 : num_steps;
    const double of_reduction = one_in(2) ? 1 : 2.0 + static_cast<double>(random() % 20) / 10;
    for (size_t step = 0; step < num_steps; ++step) {
      if (is_once ? step >= since : step % every == 0) own[place][slow][step] += more;
      if (random() % 8 < every) own[1 - place][late][step] += more / 4;
      own[3][slow][step] *= one_in(9) ? 1 : of_reduction;
      const bool is_in_row = since <= step && step < since + num_in_a_row;
      if (num_in_a_row < num_steps ? !is_in_row : every > 1 && step % (3 * every) > 0)
        own[2].back()[step] = 0;
      for (size_t rank = 0; rank < num_ranks && is_twice; ++rank) own[3][rank][step] = rank == slow ? 8 : 4;
      if (has_late_reductions && step % 2 == 0) own[3][slow][step] *= std::exp2(2 + random() % 6);
    }
    ReplayJob job = MakeJob(own);
    const size_t num_first = one_in(2) ? num_ranks : 1 + random() % num_ranks;
    for (size_t rank = num_first; rank < num_ranks; ++rank) job.ranks[rank].stage = 1;
    job.kinds[kReduce].holds_work = one_in(8);
    job.taken_share = one_in(8) ? 0.02 : 0.005;
    const ScenarioReplayer replayer(job);
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      double excess = 0;
      for (int kind = 0; kind < kNumKinds; ++kind) {
        const double of_kind = MeanExcess(job, own, rank, kind);
        EXPECT_NEAR(replayer.MeanExcess(rank, static_cast<size_t>(kind)), of_kind, 1e-9) << trial;
        const bool is_sure = IsSurelySlow(job, own, rank, kind);
        if (is_sure) excess += std::max(0.0, of_kind);
        if (of_kind > 0) ++(is_sure ? num_sure : num_unsure)[kind];
      }
      EXPECT_NEAR(replayer.SureExcess(rank), excess, 1e-9) << trial << ", rank " << rank;
    }
  }
  for (int kind = 0; kind < kNumKinds; ++kind)
    EXPECT_GT(std::min(num_sure[kind], num_unsure[kind]), 50) << kind;
}

TEST(ScenarioReplayer, OfManyRanksThatAreAlikeHardlyOneIsSurelySlow) {
  std::mt19937_64 random(4);
  constexpr int kJobs = 800, kRanks = 8;
  int num_slow = 0;
  for (int i = 0; i < kJobs; ++i) {
    OwnTimes own = RandomTimes(kRanks, 12, 0.001, random);
    own[2][kRanks - 1].clear();
    const ReplayJob job = MakeJob(own);
    const ScenarioReplayer replayer(job);
    for (size_t rank = 0; rank < kRanks; ++rank) num_slow += replayer.SureExcess(rank) > 0;
  }
  // Less than one is stated, and 6 are expected of levels that leave out the family.
  EXPECT_LE(num_slow, 2 * kBlameError * kJobs);
  std::mt19937_64 again(5);
  OwnTimes own = RandomTimes(kRanks, 12, 0.001, again);
  for (double& time : own[1][3]) time *= 1.02;
  const ReplayJob job = MakeJob(own);
  EXPECT_NEAR(ScenarioReplayer(job).SureExcess(3), 0.04, 0.005);
}

}  // namespace
}  // namespace ott::saved
