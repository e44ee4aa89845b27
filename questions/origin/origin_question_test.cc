// Asks about runs, and runs `ott origin`.

#include "ott/questions/origin/origin_question.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/command_for_test.h"
#include "ott/questions/origin/origin_command.h"
#include "ott/questions/origin/origin_for_test.h"

namespace ott::origin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class OriginQuestionTest : public OriginOfHandWrittenLogs {
 protected:
  void SetUp() override {
    OriginOfHandWrittenLogs::SetUp();
    WriteRun(dir_ + "/a", {"f 10 > 30; g 1 > 2", "f 10 > 30; g 1 > 2"});
    WriteRun(dir_ + "/b", {"f 10 > 31; g 1 > 2", "f 10 > 30; g 1 > 2"});
    WriteRun(dir_ + "/like_a", {"f 10 > 30; g 1 > 2", "f 10 > 30; g 1 > 2"});
    WriteRun(dir_ + "/longer", {"f 10 > 30; g 1 > 2; h 1 > 2", "f 10 > 30; g 1 > 2"});
    WriteRun(dir_ + "/cut", {"f 10 > 30; @1; f 1 > 2", "f 10 > 30; g 1 > 2"});
    WriteRun(dir_ + "/perturbed", {"f 10.00001 > 30.00003; g 1 > 2", "f 10.00001 > 30.00003; g 1 > 2"});
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  Findings Ask(const std::string& reference, const std::string& run, const std::string& perturbed = "") {
    AskedRun asked;
    asked.run_dir = dir_ + run;
    if (!reference.empty()) asked.reference = dir_ + reference;
    if (!perturbed.empty()) asked.perturbed = dir_ + perturbed;
    return OriginQuestion().ask(asked).value();
  }

  // Returns the exit code and what was printed, without the folder.
  std::pair<int, std::string> Run(std::vector<std::string> words) {
    for (std::string& word : words)
      if (word[0] == '/') word = dir_ + word;
    words.insert(words.begin(), "origin");
    return RunForTest(&AddOriginCommand, words);
  }
};

TEST_F(OriginQuestionTest, IsAskedWhereThereAreLogsToCompare) {
  EXPECT_THAT(Ask("", "/b").answers, IsEmpty());
  EXPECT_TRUE(OriginQuestion().is_about_tensors);
  const Findings bad = Ask("/a", "/b");
  ASSERT_EQ(bad.answers.size(), 1);
  EXPECT_TRUE(bad.is_news);
  EXPECT_EQ(bad.answers[0].finding(), Answer::BAD);
  EXPECT_THAT(bad.answers[0].next(), ElementsAre(absl::StrCat("ott compare ", dir_, "/a ", dir_, "/b")));
  ASSERT_EQ(bad.details.size(), 1);
  EXPECT_THAT(bad.details[0].text, HasSubstr("compared 4 operations on 2 ranks"));
  Document document;
  bad.draw({}, &document);
  EXPECT_EQ(document.pictures["origin"]["operation"], "f");
  const Findings good = Ask("/a", "/like_a");
  EXPECT_EQ(good.answers[0].finding(), Answer::GOOD);
  EXPECT_THAT(good.answers[0].next(), IsEmpty());
  EXPECT_EQ(Ask("/a", "/like_a", "/perturbed").answers[0].how_sure(),
            "4 operations on 2 ranks were compared within what rounding explains");
  // Problems are said elsewhere.
  Document untold;
  const Findings cut = Ask("/a", "/cut");
  EXPECT_EQ(cut.answers[0].finding(), Answer::CANNOT_TELL);
  cut.draw({}, &untold);
  EXPECT_EQ(untold.pictures["origin"].count("problems"), 0);
  const Findings none = Ask("/none", "/b");
  EXPECT_EQ(none.answers[0].finding(), Answer::CANNOT_TELL);
  EXPECT_TRUE(none.is_news);
  EXPECT_THAT(none.details, IsEmpty());
  // Dumps alone are compared elsewhere.
  std::filesystem::create_directories(dir_ + "/dumped/rank_00000/dumps/0");
  EXPECT_EQ(Ask("/dumped", "/b").answers.size(), HasDumps(dir_ + "/dumped") ? 0 : 1);
}

TEST_F(OriginQuestionTest, TheCommandSaysWhatItFinds) {
  const auto [bad, said] = Run({"/a", "/b"});
  EXPECT_EQ(bad, 1);
  EXPECT_THAT(said, AllOf(StartsWith("origin: iteration 0, on rank 0 alone, forward: f: "),
                          Not(HasSubstr("deterministic"))));
  EXPECT_EQ(Run({"/a", "/like_a"}).first, 0);
  EXPECT_EQ(Run({"/a", "/cut"}).first, 2);
  EXPECT_EQ(Run({"/a", "/b", "--perturbed", "/perturbed"}).first, 1);
  EXPECT_THAT(Run({"/a", "/like_a", "--repeat"}).second,
              HasSubstr("deterministic: all that was logged repeats bit for bit\n"));
  EXPECT_THAT(Run({"/a", "/b", "--repeat"}).second,
              HasSubstr("not deterministic: above is the first that does not repeat\n"));
  EXPECT_EQ(Run({"/a", "/longer"}).first, 0);
  for (const auto& [one, other] : {std::pair("/a", "/longer"), {"/longer", "/a"}}) {
    const auto [longer, more] = Run({one, other, "--repeat"});
    EXPECT_EQ(longer, 2);
    EXPECT_THAT(more, HasSubstr("cannot be told: what both logged repeats, and one run logged more\n"));
  }
  EXPECT_THAT(Run({"/a", "/cut", "--repeat"}).second,
              HasSubstr("whether it is deterministic cannot be told\n"));
  const auto [exit_code, json] = Run({"/a", "/b", "--format", "json", "--repeat"});
  EXPECT_EQ(exit_code, 1);
  EXPECT_THAT(json,
              AllOf(StartsWith("{"), HasSubstr("\"operation\": \"f\""), Not(HasSubstr("deterministic"))));
  // Both ranks are of one run, or each is of one.
  EXPECT_EQ(Run({"/b", "--ranks", "1,0"}).first, 1);
  EXPECT_EQ(Run({"/a", "--ranks", "1,0"}).first, 0);
  EXPECT_EQ(Run({"/a", "/b", "--ranks", "0,1"}).first, 0);
  EXPECT_EQ(Run({"/a", "/b", "--ranks", "1,0"}).first, 1);
  const auto [error, message] = Run({"/a"});
  EXPECT_EQ(error, 2);
  EXPECT_THAT(message, HasSubstr("a second run is needed, or --ranks for two ranks of one"));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {"/a", "/b", "--perturbed", "/perturbed", "--repeat"},
                                                {"/a", "--ranks", "1"},
                                                {"/a", "/b", "--format", "xml"}}) {
    EXPECT_EQ(Run(wrong).first, -2);
  }
}

}  // namespace
}  // namespace ott::origin
