#include "ott/dist/mesh/rank_mesh.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Config Parse(const std::string& text) {
  Config config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

absl::StatusOr<RanksAlong> Along(const std::string& meshes, const std::vector<std::string>& axes,
                                 int num_ranks) {
  const Config config = Parse(meshes);
  const absl::StatusOr<RankMeshes> created = RankMeshes::Create(config.mesh(), num_ranks);
  if (!created.ok()) return created.status();
  const google::protobuf::RepeatedPtrField<std::string> names(axes.begin(), axes.end());
  return created->Along(names, "field");
}

std::string ErrorOf(const std::string& meshes, const std::vector<std::string>& axes = {}, int num_ranks = 4) {
  return std::string(Along(meshes, axes, num_ranks).status().message());
}

constexpr char kDataAndTensor[] = R"(mesh { axes { name: "data" size: 2 } axes { name: "tensor" size: 3 } })";

// The ranks are counted up, the last axis fastest.
TEST(RankMesh, EveryRankLiesWhereCountingPutsIt) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    DeviceMesh proto;
    int num_ranks = 1;
    for (const char* name : {"a", "b", "c"}) {
      if (proto.axes_size() > 0 && random() % 4 == 0) continue;
      proto.add_axes()->set_name(name);
      proto.mutable_axes()->rbegin()->set_size(1 + static_cast<int>(random() % 3));
      num_ranks *= proto.axes().rbegin()->size();
    }
    const int num_axes = proto.axes_size();
    std::vector<int> ranks(num_ranks);
    std::iota(ranks.begin(), ranks.end(), 0);
    if (trial % 2 == 0) {
      std::shuffle(ranks.begin(), ranks.end(), random);
      for (const int rank : ranks) proto.add_ranks(rank);
    }
    const RankMesh mesh = RankMesh::Create(proto, num_ranks).value();
    std::vector<std::vector<int>> of_rank(num_ranks);
    std::vector<int> counted(num_axes);
    for (const int rank : ranks) {
      of_rank[rank] = counted;
      std::string expected = absl::StrCat("rank ", rank);
      for (int axis = 0; axis < num_axes; ++axis) {
        EXPECT_EQ(mesh.Position(rank, axis), counted[axis]);
        absl::StrAppend(&expected, axis == 0 ? " (" : ", ", proto.axes(axis).name(), " ", counted[axis]);
      }
      EXPECT_EQ(mesh.Describe(rank), num_axes == 1 ? absl::StrCat("rank ", rank) : expected + ")");
      for (int axis = num_axes - 1; axis >= 0 && ++counted[axis] == proto.axes(axis).size(); --axis)
        counted[axis] = 0;
    }

    // Along some axes in any order, ranks are ordered as their positions on these are, and those that agree
    // in all other positions are a group.
    std::vector<int> axes(num_axes);
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random);
    axes.resize(1 + random() % axes.size());
    Config config;
    *config.add_mesh() = proto;
    google::protobuf::RepeatedPtrField<std::string> names;
    for (const int axis : axes) *names.Add() = proto.axes(axis).name();
    const RanksAlong along = RankMeshes::Create(config.mesh(), num_ranks)->Along(names, "field").value();
    std::set<std::vector<int>> positions;
    const auto position_of = [&](int rank) {
      std::vector<int> position;
      for (const int axis : axes) position.push_back(of_rank[rank][axis]);
      return position;
    };
    for (int rank = 0; rank < num_ranks; ++rank) positions.insert(position_of(rank));
    EXPECT_EQ(along.num_positions, positions.size());
    for (int rank = 0; rank < num_ranks; ++rank) {
      EXPECT_EQ(along.positions[rank], std::distance(positions.begin(), positions.find(position_of(rank))));
      for (int other = 0; other < num_ranks; ++other) {
        bool agree = true;
        for (int axis = 0; axis < num_axes; ++axis) {
          const bool is_along = std::find(axes.begin(), axes.end(), axis) != axes.end();
          agree = agree && (is_along || of_rank[rank][axis] == of_rank[other][axis]);
        }
        EXPECT_EQ(along.groups[rank] == along.groups[other], agree);
      }
    }
  }
}

TEST(RankMesh, WithoutAxesEachRankIsAGroupOfItsOwn) {
  const auto none = Along("", {}, 3).value();
  EXPECT_EQ(none.num_positions, 1);
  EXPECT_THAT(none.positions, ElementsAre(0, 0, 0));
  EXPECT_THAT(none.groups, ElementsAre(0, 1, 2));
}

// Megatron-LM's order "tp-cp-ep-dp-pp" names the fastest axis first. For 16 ranks with tp 2, pp 2, dp 4 its
// documentation lists the tensor groups [0, 1], [2, 3], ..., the data groups [0, 2, 4, 6], [1, 3, 5, 7], ...
// and the pipeline groups [0, 8], [1, 9], ...
TEST(RankMesh, MegatronsOrderIsReadFromRightToLeft) {
  const std::string mesh =
      R"(mesh { axes { name: "pp" size: 2 } axes { name: "dp" size: 4 } axes { name: "tp" size: 2 } })";
  const auto members = [&](const std::string& axis, int rank) {
    const auto along = Along(mesh, {axis}, 16);
    std::set<int> ranks;
    for (int other = 0; other < 16; ++other) {
      if (along->groups[other] == along->groups[rank]) ranks.insert(other);
    }
    return ranks;
  };
  EXPECT_THAT(members("tp", 3), ElementsAre(2, 3));
  EXPECT_THAT(members("dp", 1), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(members("pp", 1), ElementsAre(1, 9));
}

// Mixture of experts: the same ranks in a second grid.
TEST(RankMesh, SeveralMeshesCutTheSameRanks) {
  const std::string meshes = R"(mesh { axes { name: "data" size: 2 } axes { name: "tensor" size: 2 } }
                                mesh { axes { name: "expert" size: 4 } })";
  EXPECT_THAT(Along(meshes, {"expert"}, 4)->positions, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Along(meshes, {"data"}, 4)->positions, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(ErrorOf(meshes, {"data", "expert"}),
              HasSubstr("field: there is no axis \"expert\", only data 2 x tensor 2"));
}

TEST(RankMesh, AnErrorNamesWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf(kDataAndTensor),
              HasSubstr("the axes make up 6 ranks (data 2 x tensor 3), the run has 4"));
  EXPECT_THAT(ErrorOf(kDataAndTensor, {"pipeline"}, 6),
              HasSubstr("field: there is no axis \"pipeline\", only data 2 x tensor 3"));
  EXPECT_THAT(ErrorOf("", {"data"}), HasSubstr("field: there is no axis \"data\"; `mesh` declares none"));
  EXPECT_THAT(ErrorOf(kDataAndTensor, {"data", "data"}, 6),
              HasSubstr("ott.Config: field: the axis \"data\" stands there twice"));
  EXPECT_THAT(ErrorOf(R"(mesh { axes { size: 4 } })"), HasSubstr("an axis has no name"));
  EXPECT_THAT(ErrorOf(R"(mesh { axes { name: "a" size: 0 } })"), HasSubstr("the axis \"a\" has the size 0"));
  EXPECT_THAT(ErrorOf(R"(mesh { axes { name: "a" size: 4 } ranks: [0] })"), HasSubstr("ranks has 1 entries"));
  EXPECT_THAT(ErrorOf(R"(mesh { axes { name: "a" size: 4 } } mesh { axes { name: "a" size: 4 } })"),
              HasSubstr("two meshes have an axis \"a\""));
  std::string beyond_any_number;
  for (int i = 0; i < 70; ++i) absl::StrAppend(&beyond_any_number, "axes { name: 'a", i, "' size: 4 } ");
  EXPECT_THAT(ErrorOf(absl::StrCat("mesh { ", beyond_any_number, "}")), HasSubstr("the axes make up"));
  for (const char* others : {"", R"(axes { name: "b" size: 1 })"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("mesh { ", others,
                                     R"(axes { name: "a" size: 2 } axes { name: "a" size: 2 } })")),
                HasSubstr("two axes \"a\""));
  }
}

TEST(RankMesh, EachRankStandsOnceInItsRanks) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 3000; ++trial) {
    const int num_ranks = 1 + static_cast<int>(random() % 4);
    DeviceMesh proto;
    std::string expected;
    for (int i = 0; i < num_ranks; ++i) {
      const int rank = static_cast<int>(random() % (num_ranks + 2)) - 1;
      const auto& before = proto.ranks();
      const bool is_rank = rank >= 0 && rank < num_ranks;
      const bool is_twice = std::find(before.begin(), before.end(), rank) != before.end();
      if (expected.empty() && (!is_rank || is_twice))
        expected = absl::StrCat("ranks has ", rank, is_rank ? " twice" : ", which is no rank");
      proto.add_ranks(rank);
    }
    // Behind its ranks lies what this one leaves in memory: no rank at any place.
    DeviceMesh larger;
    for (int i = 0; i <= num_ranks; ++i) larger.add_ranks(-1);
    EXPECT_FALSE(RankMesh::Create(larger, num_ranks + 1).ok());
    EXPECT_EQ(RankMesh::Create(proto, num_ranks).status().message(), expected);
  }
}

}  // namespace
}  // namespace ott
