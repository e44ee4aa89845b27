#include "ott/dist/check/cross_check.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dist/check/ranks_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/dist/check/root_exchange.pb.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/counted_communicator.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr int kCheckedIteration = 20;
constexpr auto kTimeout = std::chrono::seconds(60);

// Stands for a library that gathers.
CrossCheck::Collectives CollectivesOf(Communicator& ranks) {
  const std::shared_ptr<Communicator> library = GroupOf(ranks);
  CrossCheck::Collectives collectives;
  collectives.all_gather = [library](std::string_view bytes, Deadline deadline) {
    return library->AllGather(bytes, deadline);
  };
  collectives.are_equal = AreEqualOn(library);
  return collectives;
}

RankMeshes Meshes(int outer, int inner) { return MeshOf("outer", outer, "inner", inner); }

NamedTensor ScalarAt(const std::string& path, const float& value) {
  return {path, Tensor{TensorView(&value, {1}), nullptr}};
}

// Returns the outcome for ranks that hold `values` of what all should have; the first decides, and some have
// nothing.
Outcome OutcomeOf(const std::vector<std::optional<float>>& values, bool has_tolerance) {
  if (values.size() == 1 || !values[0]) return NOT_COMPARED;
  const auto differs = [&](const std::optional<float>& value) { return value && *value != *values[0]; };
  const bool any_differs = std::any_of(values.begin(), values.end(), differs);
  if (any_differs && !has_tolerance) return DIFFERENT;
  if (std::count(values.begin(), values.end(), std::nullopt) > 0) return NOT_COMPARED;
  return any_differs ? WITHIN_TOLERANCE : BITWISE_EQUAL;
}

TEST(CrossCheck, OfAnyRanksEachCheckSaysWhatTheDefinitionSays) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 250; ++trial) {
    const auto one_in = [&](int n) { return random() % n == 0; };
    const int outer = 1 + static_cast<int>(random() % 3), inner = 1 + static_cast<int>(random() % 2);
    const int size = outer * inner;
    CrossCheckConfig config;
    const bool has_shards = !one_in(3), has_distinct = !one_in(3), same_data = one_in(2);
    const bool names_replicas = one_in(2), has_replicas = !one_in(4), has_reference = one_in(3);
    const int tolerance = random() % 2 == 0 ? 0 : static_cast<int>(random() % 3);
    if (tolerance == 1) config.mutable_replica_tolerance()->set_atol(1);
    if (tolerance == 2) config.mutable_replica_tolerance()->set_rtol(1);
    if (names_replicas) config.add_replicated("r*");
    if (has_reference) config.set_reference_run("/none");
    if (has_distinct) config.add_distinct("d");
    if (same_data) config.add_same_data_along("inner");
    if (has_shards) config.MergeFrom(ConfigOf("sharded { paths: 's' along: 'inner' }"));
    std::vector<float> replica(size), shard(size), own(size);
    std::vector<int> problems;
    for (int rank = 0; rank < size; ++rank) {
      for (float* const value : {&replica[rank], &shard[rank]}) *value = one_in(6) ? 2 : 1;
      own[rank] = static_cast<float>(random() % 12);
      if (one_in(9)) problems.push_back(rank);
    }
    const auto has_problem = [&](int rank) { return std::count(problems.begin(), problems.end(), rank) > 0; };
    const bool collectives = one_in(2);
    std::vector<std::optional<CrossCheckVerdict>> replicas(size), distinct(size);
    std::vector<std::vector<CrossCheckVerdict>> shards(size);
    std::vector<int64_t> num_messages(size);
    OnRanks(size, [&](int rank, Communicator& ranks) {
      const auto count = std::make_shared<std::atomic<int64_t>>(0);
      CountedCommunicator counted(GroupOf(ranks), count);
      const auto check = *CrossCheck::Create(counted, config, kTimeout,
                                             collectives ? CollectivesOf(ranks) : CrossCheck::Collectives(),
                                             Meshes(outer, inner));
      const int64_t before = *count;
      std::vector<NamedTensor> tensors;
      if (has_distinct) tensors.push_back(ScalarAt("d", own[rank]));
      if (has_shards) tensors.push_back(ScalarAt("s", shard[rank]));
      if (has_replicas) tensors.push_back(ScalarAt("r", replica[rank]));
      const absl::Status problem = has_problem(rank) ? absl::InternalError("no copy") : absl::OkStatus();
      replicas[rank] = check->CheckReplicas(kCheckedIteration, tensors, problem);
      shards[rank] = check->CheckShards(kCheckedIteration, tensors, problem);
      distinct[rank] = check->CheckDistinct(kCheckedIteration, tensors, problem);
      num_messages[rank] = *count - before;
    });

    // The part of rank 0 and of all others of `of`, by rank.
    const auto values_of = [&](const std::vector<int>& of, const std::vector<float>& values) {
      std::vector<std::optional<float>> those;
      for (const int rank : of)
        those.push_back(has_problem(rank) ? std::nullopt : std::optional(values[rank]));
      return those;
    };
    const auto expect_missing = [&](const std::vector<int>& of, const CrossCheckVerdict& verdict) {
      std::vector<int> missing;
      std::copy_if(of.begin(), of.end(), std::back_inserter(missing), has_problem);
      EXPECT_THAT(verdict.missing_ranks(), ElementsAreArray(missing)) << verdict.DebugString();
      for (const int rank : missing)
        EXPECT_THAT(verdict.reason(), HasSubstr(absl::StrCat("rank ", rank, " (node", rank, "): no copy")));
      EXPECT_EQ(verdict.atol(), tolerance == 1);
      EXPECT_EQ(verdict.rtol(), tolerance == 2);
      EXPECT_EQ(verdict.iteration(), kCheckedIteration);
    };
    std::vector<int> all(size);
    for (int rank = 0; rank < size; ++rank) all[rank] = rank;
    const bool left_out = (size == 1 && has_reference) || (!has_replicas && !names_replicas &&
                                                           problems.empty() && (has_shards || has_distinct));
    // No messages travel if a library finds all the same.
    const bool all_same = problems.empty() && (has_replicas || !names_replicas) &&
                          OutcomeOf(values_of(all, replica), false) != DIFFERENT &&
                          OutcomeOf(values_of(all, shard), false) != DIFFERENT;
    if (collectives && all_same) {
      EXPECT_THAT(num_messages, testing::Each(0));
    }
    std::vector<Outcome> of_shards(size);
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_EQ(replicas[rank].has_value(), !left_out) << trial;
      if (!left_out) {
        EXPECT_EQ(replicas[rank]->outcome(),
                  has_replicas ? OutcomeOf(values_of(all, replica), tolerance > 0) : NOT_COMPARED)
            << replicas[rank]->DebugString();
        EXPECT_EQ(replicas[rank]->worst_outcome(), replicas[rank]->outcome());
        EXPECT_EQ(replicas[rank]->mode(), REPLICAS);
        expect_missing(all, *replicas[rank]);
      }

      ASSERT_EQ(shards[rank].size(), has_shards && (outer > 1 || !has_reference) ? 1u : 0u);
      if (!shards[rank].empty()) {
        std::vector<int> same_part;
        for (int other = rank % inner; other < size; other += inner) same_part.push_back(other);
        of_shards[rank] = OutcomeOf(values_of(same_part, shard), tolerance > 0);
        EXPECT_EQ(shards[rank][0].outcome(), of_shards[rank]) << shards[rank][0].DebugString();
        EXPECT_EQ(shards[rank][0].mode(), SHARDS);
        EXPECT_EQ(shards[rank][0].rank(), rank);
        expect_missing(same_part, shards[rank][0]);
        EXPECT_THAT(shards[rank][0].reason(), HasSubstr(outer == 1 ? "each part is on one rank only" : ""));
      }

      ASSERT_EQ(distinct[rank].has_value(), has_distinct);
      if (!has_distinct) continue;
      bool is_twice = false;
      for (const int a : all) {
        for (const int b : all) {
          const bool should_differ = a != b && (!same_data || a / inner != b / inner);
          is_twice = is_twice || (should_differ && own[a] == own[b] && !has_problem(a) && !has_problem(b));
        }
      }
      const bool not_compared = size == 1 || !problems.empty();
      EXPECT_EQ(distinct[rank]->outcome(), is_twice       ? DIFFERENT
                                           : not_compared ? NOT_COMPARED
                                                          : ALL_DISTINCT)
          << distinct[rank]->DebugString();
    }
    if (shards[0].empty()) continue;
    const int worst = static_cast<int>(
        std::max_element(of_shards.begin(), of_shards.end(),
                         [](Outcome a, Outcome b) { return SeverityOf(a) < SeverityOf(b); }) -
        of_shards.begin());
    const bool passes = SeverityOf(of_shards[worst]) < SeverityOf(NOT_COMPARED);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(shards[rank][0].worst_outcome(), of_shards[worst]);
      EXPECT_EQ(shards[rank][0].worst_rank(), worst);
      EXPECT_EQ(shards[rank][0].worst_finding(), passes ? "" : FormatFinding(shards[worst][0]));
      EXPECT_EQ(shards[rank][0].first_tensor(), "") << "it is another one for each shard";
    }
  }
}

TEST(CrossCheck, ForAnyFailuresAllRanksActOnTheEarliest) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 100; ++trial) {
    constexpr int kRounds = 4;
    const int size = 1 + static_cast<int>(random() % 4);
    const bool collectives = random() % 2 == 0;
    // Many verdicts fail in the same iteration and mode in some trials: then the rest of the order decides.
    const uint32_t seldom = 1 + random() % 8, later = 2 + random() % 4;
    // By round and rank.
    std::vector<std::vector<std::vector<CrossCheckVerdict>>> failed(kRounds);
    std::vector<std::optional<CrossCheckVerdict>> expected(kRounds);
    std::vector<bool> diverged(kRounds, false);
    for (int round = 0; round < kRounds; ++round) {
      diverged[round] = round > 0 && diverged[round - 1];
      failed[round].resize(size);
      std::vector<std::tuple<int64_t, int, bool, int, CrossCheckVerdict>> issued;
      for (int rank = 0; rank < size; ++rank) {
        bool has_issued = false;
        for (uint32_t i = random() % seldom == 0 ? random() % 3 : 0; i > 0; --i) {
          CrossCheckVerdict& verdict = failed[round][rank].emplace_back();
          verdict.set_iteration(random() % later == 0 ? 1 : 0);
          verdict.set_mode(random() % later == 0 ? REFERENCE : REPLICAS);
          verdict.set_rank(rank);
          verdict.set_worst_rank(static_cast<int>(random() % size));
          verdict.set_reason(absl::StrCat("reason ", i));
          if (random() % 3 > 0) verdict.set_worst_outcome(DIFFERENT);
          CrossCheckVerdict shown = verdict;
          verdict.add_tensor_errors()->set_tensor("w");
          diverged[round] = true;
          if (has_issued || verdict.worst_outcome() == OUTCOME_UNKNOWN) continue;
          has_issued = true;
          issued.emplace_back(verdict.iteration(), verdict.mode(), verdict.worst_rank() != rank, rank, shown);
        }
      }
      const auto first = std::min_element(issued.begin(), issued.end(), [](const auto& a, const auto& b) {
        const auto order = [](const auto& of) {
          return std::tuple(std::get<0>(of), std::get<1>(of), std::get<2>(of), std::get<3>(of));
        };
        return order(a) < order(b);
      });
      if (first != issued.end()) expected[round] = std::get<4>(*first);
    }
    OnRanks(size, [&](int rank, Communicator& ranks) {
      const auto check = *CrossCheck::Create(ranks, {}, kTimeout,
                                             collectives ? CollectivesOf(ranks) : CrossCheck::Collectives());
      for (int round = 0; round < kRounds; ++round) {
        const CrossCheck::Decision decision = check->AgreeOnDivergence(failed[round][rank]);
        EXPECT_EQ(decision.diverged, diverged[round]);
        ASSERT_EQ(decision.verdict.has_value(), expected[round].has_value()) << round;
        if (!decision.verdict) continue;
        EXPECT_EQ(decision.verdict->SerializeAsString(), expected[round]->SerializeAsString());
      }
    });
  }
}

TEST(CrossCheck, ARankThatMissedADecisionHearsOfTheDivergenceLater) {
  std::promise<void> gave_up, decided;
  OnRanks(2, [&](int rank, Communicator& ranks) {
    bool is_first = true;
    CrossCheck::Collectives collectives;
    collectives.are_equal = [&, are_equal = CollectivesOf(ranks).are_equal](absl::Span<const uint64_t> words,
                                                                            Deadline deadline) {
      const absl::StatusOr<bool> equal = are_equal(words, deadline);
      if (rank == 0 && is_first) gave_up.get_future().wait();
      return equal;
    };
    const auto check = *CrossCheck::Create(ranks, {}, std::chrono::seconds(1), collectives);
    std::vector<CrossCheckVerdict> failed(rank == 0 ? 1 : 0);
    for (CrossCheckVerdict& verdict : failed) verdict.set_worst_outcome(DIFFERENT);
    const CrossCheck::Decision decision = check->AgreeOnDivergence(failed);
    EXPECT_EQ(decision.diverged, rank == 0);
    EXPECT_FALSE(decision.verdict.has_value()) << "nobody acts alone";
    is_first = false;
    if (rank == 0) decided.set_value();
    if (rank == 1) gave_up.set_value();
    if (rank == 1) decided.get_future().wait();
    EXPECT_TRUE(check->AgreeOnDivergence({}).diverged) << rank;
  });
}

TEST(CrossCheck, SelectsIterationsAndEachShardingHasRanksOfItsOwn) {
  OnRanks(4, [](int rank, Communicator& ranks) {
    const std::string shardings =
        "sharded { paths: 'inner' along: 'inner' } sharded { paths: 'outer' along: 'outer' }";
    const auto create = [&](const std::string& config) {
      return *CrossCheck::Create(ranks, ConfigOf(config), kTimeout, {}, Meshes(2, 2));
    };
    EXPECT_TRUE(create(shardings)->Selects(21));
    const auto check = create(shardings + " iterations { every: 10 }");
    EXPECT_TRUE(check->Selects(20));
    EXPECT_FALSE(check->Selects(21));
    const float value = rank == 3 ? 2 : 1;
    const std::vector<CrossCheckVerdict> verdicts =
        check->CheckShards(kCheckedIteration, {ScalarAt("inner", value), ScalarAt("outer", value)});
    ASSERT_EQ(verdicts.size(), 2u);
    for (const CrossCheckVerdict& verdict : verdicts) EXPECT_EQ(verdict.rank(), rank);
    EXPECT_EQ(verdicts[0].outcome(), rank % 2 == 1 ? DIFFERENT : BITWISE_EQUAL);
    EXPECT_EQ(verdicts[1].outcome(), rank / 2 == 1 ? DIFFERENT : BITWISE_EQUAL);
  });
}

// Rank 0 of the reference run has "a" and "b", both 1.
class CrossCheckReferenceTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string dir = testing::TempDir() + "/cross_check_reference";
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(DumpsDirectory(dir, 0));
    RunInfo info;
    info.set_world_size(1);
    ASSERT_TRUE(WriteRunInfo(dir, info).ok());
    const Value tree = Tree(1, 1);
    DumpContents contents;
    contents.tensors.tree = &tree;
    ASSERT_TRUE(WriteDump(DumpPath(dir, 0, kCheckedIteration), contents).ok());
    config_.set_reference_run(dir);
    config_.add_reference_ranks(0);
  }

  static Value Tree(double a, double b) { return ValueMap{{"a", a}, {"b", b}}; }

  CrossCheckConfig config_;
};

TEST_F(CrossCheckReferenceTest, AllRanksKnowWhatDiffersFirstOnWhichOfThem) {
  std::mt19937 random(3);
  const Value grads = Tree(1, 1);
  for (int trial = 0; trial < 60; ++trial) {
    const int size = 1 + static_cast<int>(random() % 5);
    const bool collectives = random() % 2 == 0;
    // A tensor, "g" for gradients that the reference has not, "?" if nothing can be compared, "" for nothing.
    std::vector<std::string> differs(size);
    for (std::string& first : differs)
      first = std::vector<std::string>{"a", "b", "g", "", "", "?"}[random() % 6];
    std::string first;
    std::vector<int> first_ranks;
    for (const char* const one : {"a", "b", "g", "?", ""}) {
      if (!first_ranks.empty()) break;
      first = one;
      for (int rank = 0; rank < size; ++rank) {
        if (differs[rank] == one) first_ranks.push_back(rank);
      }
    }
    const std::map<std::string, Outcome> outcomes = {
        {"a", DIFFERENT}, {"b", DIFFERENT}, {"g", DIFFERENT}, {"?", NOT_COMPARED}, {"", BITWISE_EQUAL}};
    const auto is_tensor = [](const std::string& of) { return of == "a" || of == "b"; };
    const auto num_different = std::count_if(
        differs.begin(), differs.end(), [&](const std::string& of) { return outcomes.at(of) == DIFFERENT; });
    OnRanks(size, [&](int rank, Communicator& ranks) {
      const auto check = *CrossCheck::Create(ranks, config_, kTimeout,
                                             collectives ? CollectivesOf(ranks) : CrossCheck::Collectives());
      EXPECT_TRUE(check->has_reference());
      const std::string& mine = differs[rank];
      const CrossCheckVerdict verdict = check->CheckReference(
          kCheckedIteration, Tree(mine == "a" ? 2 : 1, is_tensor(mine) ? 2 : 1),
          mine == "g" ? &grads : nullptr, mine == "?" ? absl::InternalError("no copy") : absl::OkStatus());
      EXPECT_EQ(verdict.outcome(), outcomes.at(mine));
      EXPECT_EQ(verdict.rank(), rank);
      EXPECT_EQ(verdict.host(), HostOf(rank));
      for (const FirstDifference& difference : verdict.differences())
        EXPECT_THAT(difference.hosts(), testing::ElementsAre(HostOf(rank)));
      EXPECT_EQ(verdict.tensor(), is_tensor(mine) ? mine : "");
      EXPECT_EQ(verdict.reason(), mine == "?"   ? "no copy"
                                  : mine == "g" ? "this run has gradients, the reference has none"
                                                : "");
      EXPECT_EQ(verdict.worst_outcome(), outcomes.at(first));
      EXPECT_EQ(verdict.worst_finding(), "");
      EXPECT_EQ(verdict.worst_rank(), first_ranks[0]);
      EXPECT_EQ(verdict.first_tensor(), is_tensor(first) ? first : "");
      EXPECT_THAT(verdict.first_ranks(),
                  ElementsAreArray(is_tensor(first) ? first_ranks : std::vector<int>()));
      EXPECT_EQ(verdict.num_different_ranks(), num_different);
      EXPECT_EQ(verdict.num_ranks(), size);
    });
  }
}

TEST_F(CrossCheckReferenceTest, AVerdictThatCannotBeReadIsNoPass) {
  OnRanks(2, [this](int, Communicator& ranks) {
    CrossCheck::Collectives collectives = CollectivesOf(ranks);
    collectives.all_gather = [gather = collectives.all_gather](std::string_view bytes, Deadline deadline) {
      absl::StatusOr<std::vector<std::string>> all = gather(bytes, deadline);
      internal::RootMessage message;
      EXPECT_TRUE(message.ParseFromString((*all)[1]));
      message.set_contents("\xff");
      (*all)[1] = message.SerializeAsString();
      return all;
    };
    const auto check = *CrossCheck::Create(ranks, config_, kTimeout, collectives);
    const CrossCheckVerdict verdict = check->CheckReference(kCheckedIteration, Tree(1, 1), nullptr);
    EXPECT_EQ(verdict.outcome(), BITWISE_EQUAL);
    EXPECT_EQ(verdict.worst_outcome(), NOT_COMPARED);
    EXPECT_EQ(verdict.worst_rank(), 1);
  });
}

TEST_F(CrossCheckReferenceTest, WhereARankIsMissingTheOthersOutcomeIsNotKnown) {
  // Each pair of ranks is a job of its own, and they wait side by side.
  OnRanks(4, [this](int scene, Communicator&) {
    const int there = scene / 2;
    const bool differs = scene % 2 == 1;
    OnRanks(2, [&](int rank, Communicator& ranks) {
      const auto check = *CrossCheck::Create(ranks, config_, std::chrono::seconds(1));
      if (rank != there) return;
      const CrossCheckVerdict verdict =
          check->CheckReference(kCheckedIteration, Tree(1, differs ? 2 : 1), nullptr);
      EXPECT_EQ(verdict.outcome(), differs ? DIFFERENT : there == 0 ? BITWISE_EQUAL : NOT_COMPARED);
      EXPECT_EQ(OutcomeOfAllRanks(verdict), differs ? DIFFERENT : NOT_COMPARED);
      EXPECT_EQ(verdict.worst_outcome() == OUTCOME_UNKNOWN, there == 1 && !differs);
      EXPECT_EQ(verdict.worst_rank(), there);
      EXPECT_EQ(verdict.reason(), absl::StrCat("the other ranks' outcome is not known: nothing from rank ",
                                               there == 0 ? "1" : "0 (node0) within 1 s"));
      const CrossCheck::Decision decision = check->AgreeOnDivergence({verdict});
      EXPECT_EQ(decision.diverged, there == 0);
      EXPECT_EQ(decision.verdict.has_value(), there == 0);
    });
  });
}

TEST(CrossCheck, RefusesABadConfigurationOnAllRanksAndNamesWhere) {
  const std::string of_replicas = "cross_check: replica_tolerance: ",
                    of_reference = "cross_check: reference_tolerance: ";
  for (const auto& [config, message] :
       {std::pair("iterations { every: -1 }", std::string("every")),
        {"replica_tolerance { atol: -1 }", of_replicas},
        {"replica_tolerance { atol: nan }", of_replicas},
        {"replica_tolerance { atol: inf }", of_replicas},
        {"reference_tolerance { rtol: -1 }", of_reference},
        {"reference_tolerance { rtol: nan }", of_reference},
        {"reference_tolerance { rtol: inf }", of_reference},
        {"same_data_along: 'x'", "cross_check: same_data_along"},
        {"reference_ranks: [0, 0, 0]",
         "reference_ranks: 3 entries for 2 ranks; one for each, or one for all"},
        // Rank 1 alone has it.
        {"reference_tolerances: '/none/t.textproto'",
         "rank 1 (node1): cannot read the configuration /none/t.textproto"}}) {
    const CrossCheckConfig bad = ConfigOf(config);
    OnRanks(2, [&, &message = message](int rank, Communicator& ranks) {
      const bool is_good = rank == 0 && !bad.reference_tolerances().empty();
      const absl::Status status = CrossCheck::Create(ranks, is_good ? CrossCheckConfig() : bad).status();
      EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    });
  }
}

TEST(CrossCheck, AKindThatNoTensorIsIsNoPassBesideDistinctTensors) {
  OnRanks(2, [](int rank, Communicator& ranks) {
    const auto check =
        *CrossCheck::Create(ranks, ConfigOf("kinds: TENSOR_KIND_PARAMETER distinct: 'd'"), kTimeout);
    const float own = static_cast<float>(rank);
    const auto verdict = check->CheckReplicas(kCheckedIteration, {ScalarAt("d", own), ScalarAt("r", own)});
    ASSERT_TRUE(verdict.has_value());
    EXPECT_EQ(verdict->outcome(), NOT_COMPARED);
    EXPECT_THAT(verdict->reason(), HasSubstr("no tensor is TENSOR_KIND_PARAMETER"));
  });
}

}  // namespace
}  // namespace ott
