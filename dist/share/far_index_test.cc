#include "ott/dist/share/far_index.h"

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"

namespace ott::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Folder(const std::string& name) {
  return std::filesystem::path(absl::StrCat(testing::TempDir(), "/far_index/", name)).lexically_normal();
}

class FarIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(Folder(""));
    // Dumps and the tensors of operations are whole folders; and nothing lies deeper than 4.
    for (const char* file : {"run/a/b/c/d", "run/a/b/c/e/f", "run/rank/dumps/7/tensors", "run/op_tensors/3/x",
                             "run/x", "dumps/x", "other/y"}) {
      const std::string path = Folder(file);
      ASSERT_TRUE(MakeDirectories(path.substr(0, path.rfind('/'))).ok());
      ASSERT_TRUE(WriteFileAtomically(path, "text").ok());
    }
  }
};

TEST_F(FarIndexTest, ListsWhatLiesBelowButNotInsideOfDumps) {
  ListingRequest request = AskForListing({Folder("run") + "//", Folder("") + "./dumps", Folder("none")});
  EXPECT_THAT(request.paths(), ElementsAre(Folder("run"), Folder("dumps"), Folder("none")));
  EXPECT_THAT(AskForListing({"/"}).paths(), ElementsAre("/"));
  EXPECT_TRUE(ListBelow(request).is_same());
  EXPECT_THAT(ListBelow(request).entries(), IsEmpty());
  request.set_names(request.names() + 1);
  const Listing listing = ListBelow(request);
  EXPECT_FALSE(listing.is_same());
  std::map<std::string, bool> found, expected;
  for (const Listing::Entry& entry : listing.entries()) found[entry.path()] = entry.is_directory();
  for (const char* folder :
       {"run", "run/a", "run/a/b", "run/a/b/c", "run/a/b/c/e", "run/rank", "run/rank/dumps",
        "run/rank/dumps/7", "run/op_tensors", "run/op_tensors/3", "dumps"}) {
    expected[Folder(folder)] = true;
  }
  for (const char* file : {"run/a/b/c/d", "run/x", "dumps/x"}) expected[Folder(file)] = false;
  EXPECT_EQ(found, expected);
}

TEST_F(FarIndexTest, OtherNamesOrKindsAreOtherFolders) {
  const std::vector<std::string> paths = {Folder("run"), Folder("other"), Folder("late")};
  std::set<uint64_t> seen = {AskForListing(paths).names()};
  const auto is_new = [&] { return seen.insert(AskForListing(paths).names()).second; };
  EXPECT_FALSE(is_new());
  ASSERT_TRUE(WriteFileAtomically(Folder("other/z"), "").ok());
  EXPECT_TRUE(is_new());
  std::filesystem::rename(Folder("other/z"), Folder("run/z"));
  EXPECT_TRUE(is_new());
  ASSERT_TRUE(WriteFileAtomically(Folder("late"), "").ok());
  EXPECT_TRUE(is_new());
  std::filesystem::remove(Folder("late"));
  ASSERT_TRUE(MakeDirectories(Folder("late")).ok());
  EXPECT_TRUE(is_new());
}

Listing ListingOf(const std::vector<std::pair<std::string, bool>>& entries) {
  Listing listing;
  for (const auto& [path, is_directory] : entries) {
    Listing::Entry& entry = *listing.add_entries();
    entry.set_path(path);
    entry.set_is_directory(is_directory);
  }
  return listing;
}

TEST_F(FarIndexTest, KnowsOfEachPathWhoHasIt) {
  FarIndex index([](int process) { return absl::StrCat("node", process); },
                 [](const std::string& path, int64_t max_bytes) -> absl::StatusOr<std::string> {
                   return absl::StrCat(path, " ", max_bytes);
                 });
  index.Add(2, ListingOf({{"run", true}, {"run/b", false}, {"run/a", true}}));
  index.Add(1, ListingOf({{"run", true}, {"run/c", false}, {"run/a", false}}));
  EXPECT_THAT(index.Owners("./run/"), ElementsAre(2, 1));
  EXPECT_THAT(index.Owners("run/c"), ElementsAre(1));
  EXPECT_THAT(index.Owners("run/d"), IsEmpty());
  EXPECT_EQ(index.HostOf("run"), "node2");
  EXPECT_EQ(index.HostOf("run//c"), "node1");
  EXPECT_EQ(index.HostOf("run/d"), "");
  EXPECT_EQ(index.KindOf("run/a"), FarFiles::Kind::kDirectory) << "as the first has it";
  EXPECT_EQ(index.KindOf("run/b"), FarFiles::Kind::kFile);
  EXPECT_EQ(index.KindOf("run/d"), FarFiles::Kind::kNone);
  EXPECT_THAT(index.List("run/"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(index.List("run/a"), IsEmpty());
  EXPECT_EQ(*index.Read("run/b", 7), "run/b 7");
}

}  // namespace
}  // namespace ott::internal
