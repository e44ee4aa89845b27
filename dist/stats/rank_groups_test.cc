#include "ott/dist/stats/rank_groups.h"

#include <string>
#include <tuple>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

TEST(GroupsOfRanks, AreThoseAlongTheAxesAndEntriesAlongTheSameHaveTheirOwn) {
  const auto config = Parse<Config>("mesh { axes { name: 'data' size: 2 } axes { name: 'stage' size: 3 } }");
  const RankMeshes meshes = *RankMeshes::Create(config.mesh(), 6);
  const auto groups = GroupsOfRanks(Parse<StopwatchConfig>(R"(
      work_differs_along: 'stage'
      collective_groups { along: 'data' measurements: [ 'a', 'b' ] }
      collective_groups { along: [ 'data', 'stage' ] measurements: 'c' }
      collective_groups { along: 'data' measurements: 'd' }
      collective_groups { along: 'data' measurements: 'e' })"),
                                    meshes)
                          .value();
  EXPECT_THAT(groups.like_work,
              ElementsAre("stage 0", "stage 1", "stage 2", "stage 0", "stage 1", "stage 2"));
  ASSERT_EQ(groups.collective_groups.size(), 6);
  for (size_t rank = 0; rank < 6; ++rank) {
    const std::string group = std::to_string(rank % 3);  // ranks 1 and 4 have one
    EXPECT_THAT(groups.collective_groups[rank],
                UnorderedElementsAre(Pair("a", "data/" + group), Pair("b", "data/" + group),
                                     Pair("c", "data+stage/0"), Pair("d", "data#2/" + group),
                                     Pair("e", "data#3/" + group)));
  }
  EXPECT_THAT(GroupsOfRanks(StopwatchConfig(), meshes)->like_work, ElementsAre("", "", "", "", "", ""));
}

TEST(GroupsOfRanks, AnAxisThatIsNoneOrAMeasurementThatIsThereTwiceIsNamedWithTheField) {
  for (const auto& [config, field, name] :
       {std::tuple("work_differs_along: 'none'", "work_differs_along", "none"),
        {"collective_groups { along: 'none' }", "collective_groups", "none"},
        {"collective_groups { measurements: [ 'a', 'b' ] } collective_groups { measurements: 'b' }",
         "collective_groups", "\"b\" is there twice"}}) {
    const absl::Status status = GroupsOfRanks(Parse<StopwatchConfig>(config), RankMeshes(2)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr(field), HasSubstr(name)));
  }
}

}  // namespace
}  // namespace ott
