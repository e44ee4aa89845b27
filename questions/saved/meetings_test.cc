#include "questions/saved/meetings.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/saved/sampled_job.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Ranks of one group wait for each other, and some for one rank of another group, which does not wait for
// them. Each comes at a time by chance, and leaves once all that it waits for have come.
TEST(Meetings, WhoWaitsForWhomIsFoundByWhoNeverLeavesBefore) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    const size_t num_ranks = 2 + random() % 5;
    const bool is_declared = trial % 4 == 0;
    const int64_t error_bound = trial % 3 == 0 ? 500 : 0;
    // Later on rank 0 always comes last, and does not show for whom it waits.
    const int64_t num_first = trial % 2 == 0 ? 200 : static_cast<int64_t>(12 + random() % 60);
    std::vector<int> group(num_ranks);
    for (int& of_rank : group) of_rank = static_cast<int>(random() % 3);
    std::vector<std::set<size_t>> besides(num_ranks);
    for (size_t rank = 0; rank < num_ranks && !is_declared; ++rank) {
      const size_t other = random() % num_ranks;
      if (group[rank] != group[other] && besides[other].empty() && random() % 2 == 0)
        besides[rank].insert(other);
    }
    Meetings meetings(num_ranks);
    std::vector<std::vector<Piece>> pieces(num_ranks);
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      if (is_declared) meetings.Declare(7, rank, group[rank] + 1);
      EXPECT_EQ(meetings.DeclaredGroup(7, rank), is_declared ? group[rank] + 1 : 0);
    }
    int64_t came_first = 0;
    for (int64_t iteration = 0; iteration < 200; ++iteration) {
      std::vector<int64_t> starts(num_ranks);
      for (int64_t& start : starts) start = static_cast<int64_t>(random() % 1'000'000);
      if (iteration >= num_first) starts[0] += 2'000'000;
      for (size_t rank = 0; rank < num_ranks; ++rank) {
        int64_t end = 0;
        for (size_t other = 0; other < num_ranks; ++other) {
          if (group[other] == group[rank] || besides[rank].count(other) > 0)
            end = std::max(end, starts[other]);
        }
        // Its clock may be off.
        const int64_t off = static_cast<int64_t>(random() % (2 * error_bound + 1)) - error_bound;
        pieces[rank].push_back({7, 0, iteration, starts[rank] + off, end + 1 + off});
      }
      for (const size_t other : besides[0]) came_first += pieces[0].back().start < pieces[other].back().start;
    }
    meetings.Learn({pieces}, error_bound);
    if (came_first < 20) besides[0].clear();

    const Piece piece = pieces[0][0];
    const size_t num_groups = std::set<int>(group.begin(), group.end()).size();
    EXPECT_EQ(meetings.IsOfAll(piece), num_groups == 1) << trial;
    if (is_declared || num_groups == 1) {
      EXPECT_TRUE(meetings.num_groups_found().empty()) << trial;
    } else {
      EXPECT_EQ(meetings.num_groups_found().at(7), num_groups) << trial;
    }
    const std::vector<int> components = meetings.Components();
    std::vector<std::vector<char>> leads(num_ranks, std::vector<char>(num_ranks));
    for (size_t a = 0; a < num_ranks; ++a) {
      EXPECT_EQ(meetings.WaitsFor(piece, a), std::vector<size_t>(besides[a].begin(), besides[a].end()))
          << trial;
      for (size_t b = 0; b < num_ranks; ++b) {
        EXPECT_EQ(meetings.GroupOf(piece, a) == meetings.GroupOf(piece, b), group[a] == group[b]) << trial;
        leads[a][b] = group[a] == group[b] || besides[a].count(b) > 0 || besides[b].count(a) > 0;
      }
    }
    for (size_t via = 0; via < num_ranks; ++via) {
      for (size_t a = 0; a < num_ranks; ++a) {
        for (size_t b = 0; b < num_ranks; ++b) leads[a][b] |= leads[a][via] & leads[via][b];
      }
    }
    for (size_t a = 0; a < num_ranks; ++a) {
      for (size_t b = 0; b < num_ranks; ++b)
        EXPECT_EQ(components[a] == components[b], leads[a][b] != 0) << trial;
    }
  }
}

TEST(Meetings, WhereARankNeverComesNotAllMeet) {
  Meetings meetings(3);
  const std::vector<std::vector<Piece>> pieces = {{{7, 0, 0, 0, 9}}, {{7, 0, 0, 1, 9}}, {}};
  meetings.Learn({pieces}, 0);
  EXPECT_FALSE(meetings.IsOfAll(pieces[0][0]));
}

// One rank is always the last, and those that meet it leave late; so these never leave before anybody.
TEST(Meetings, WhoWaitsForTheLastRankIsFoundThoughNobodyElseIsEverLate) {
  for (const bool by_halves : {false, true}) {
    for (size_t last = 0; last < 6; ++last) {
      const auto group_of = [&](size_t rank) { return by_halves ? rank / 3 : rank % 2; };
      std::vector<std::vector<Piece>> pieces(6);
      for (size_t rank = 0; rank < 6; ++rank) {
        for (int64_t iteration = 0; iteration < 200; ++iteration) {
          const int64_t start = iteration * 1000 + (rank == last ? 100 : static_cast<int64_t>(rank));
          const int64_t end = iteration * 1000 + (group_of(rank) == group_of(last) ? 100 : 5);
          pieces[rank].push_back({7, 0, iteration, start, end + 20});
        }
      }
      Meetings meetings(6);
      meetings.Learn({pieces}, 0);

      const Piece& piece = pieces[0][0];
      EXPECT_FALSE(meetings.IsOfAll(piece));
      for (size_t rank = 0; rank < 6; ++rank) {
        const std::vector<size_t> besides = meetings.WaitsFor(piece, rank);
        const bool waits = meetings.GroupOf(piece, rank) == meetings.GroupOf(piece, last) ||
                           std::count(besides.begin(), besides.end(), last) > 0;
        EXPECT_EQ(waits, group_of(rank) == group_of(last)) << rank << " for " << last << by_halves;
      }
    }
  }
}

// Rank 1 of a declared group always leaves before rank 0 comes, which rank 2 of another group never does.
TEST(Meetings, RanksOfDeclaredGroupsDoNotMeetOthersWhereTheirGroupIsSplit) {
  std::vector<std::vector<Piece>> pieces(3);
  for (int64_t iteration = 0; iteration < 50; ++iteration) {
    const int64_t at = 1000 * iteration;
    pieces[0].push_back({7, 0, iteration, at + 10, at + 20});
    pieces[1].push_back({7, 0, iteration, at, at + 5});
    pieces[2].push_back({7, 0, iteration, at + 9, at + 20});
  }
  Meetings meetings(3);
  for (size_t rank = 0; rank < 3; ++rank) meetings.Declare(7, rank, rank < 2 ? 1 : 2);
  meetings.Learn({pieces}, 0);
  const Piece& piece = pieces[0][0];
  EXPECT_EQ(meetings.Components(), (std::vector<int>{0, 1, 2}));
  for (size_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(meetings.WaitsFor(piece, rank).empty());
}

// Rank 0 sends without waiting, and rank 1 receives under the same name: it waits where it comes first.
struct Pipeline {
  std::vector<int64_t> forward, preparation;  // by iteration, of rank 0 and of rank 1

  // Returns the samples, and the mean time between two reductions of both.
  double Run(std::vector<IterationSample>& samples) const {
    samples.assign(2, {});
    const std::vector<std::string> names = {"forward", "exchange", "backward", "reduce"};
    int64_t now[2] = {0, 0}, before[2] = {0, 0}, first_reduction = 0, last_reduction = 0;
    for (int rank = 0; rank < 2; ++rank) {
      samples[rank].set_rank(rank);
      samples[rank].set_world_size(2);
      samples[rank].set_observer(-1);
      for (size_t name = 0; name < names.size(); ++name) {
        samples[rank].add_names(names[name]);
        samples[rank].add_collective(name % 2 == 1);
      }
      samples[rank].add_blocks();
    }
    const auto add = [&](int rank, int name, int64_t end) {
      IterationBlock& block = *samples[rank].mutable_blocks(0);
      block.add_name(name);
      block.add_start(now[rank] - before[rank]);
      block.add_duration(end - now[rank]);
      before[rank] = now[rank];
      now[rank] = end;
    };
    for (size_t i = 0; i < forward.size(); ++i) {
      const int64_t begin[2] = {now[0], now[1]};
      add(0, 0, now[0] + forward[i]);
      add(1, 0, now[1] + preparation[i]);
      const int64_t sent = now[0];
      add(0, 1, now[0] + 10 * 1000);
      // Once it leaves before.
      add(1, 1, (i == 100 ? now[1] : std::max(now[1], sent)) + 10 * 1000);
      for (const int rank : {0, 1}) add(rank, 2, now[rank] + 500 * 1000);
      last_reduction = std::max(now[0], now[1]);
      if (i == 0) first_reduction = last_reduction;
      for (const int rank : {0, 1}) {
        add(rank, 3, last_reduction + 20 * 1000);
        samples[rank].mutable_blocks(0)->add_iteration_end(now[rank] - begin[rank]);
      }
    }
    return 1e-9 * static_cast<double>(last_reduction - first_reduction) /
           static_cast<double>(forward.size() - 1);
  }
};

TEST(SampledJob, WhatASenderSavesIsSavedByItsReceiver) {
  Pipeline pipeline;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    pipeline.forward.push_back(static_cast<int64_t>(1000 + random() % 1000) * 1000);
    pipeline.preparation.push_back(static_cast<int64_t>(200 + random() % 2000) * 1000);
  }
  std::vector<IterationSample> samples, unused;
  const double measured = pipeline.Run(samples);
  const ReplayJob job = MakeJob(samples).value();
  std::vector<ScaleQuestion> questions;
  std::vector<double> expected;
  for (const double factor : {0.0, 0.5, 2.0}) {
    for (const int rank : {0, 1}) {
      questions.push_back(
          *ParseScaleQuestion(job, absl::StrFormat("rank=%d,measurement=forward,%g", rank, factor)));
      Pipeline scaled = pipeline;
      for (int64_t& time : rank == 0 ? scaled.forward : scaled.preparation)
        time = static_cast<int64_t>(static_cast<double>(time) * factor);
      expected.push_back(scaled.Run(unused));
    }
  }
  const WhatIfAnswer answer = AnswerWhatIf(job, questions);
  EXPECT_LT(answer.replay_error(), 1e-9);
  EXPECT_NEAR(answer.measured_seconds(), measured, 1e-9);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(answer.scaled(static_cast<int>(i)).seconds(), expected[i], 1e-9) << questions[i].name;
  EXPECT_THAT(answer.notes(), Contains(HasSubstr("not all ranks wait for each other in \"exchange\"")));
}

}  // namespace
}  // namespace ott::saved
