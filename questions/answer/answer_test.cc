#include "ott/questions/answer/answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/proto_json.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/answer/display_text.h"
#include "ott/questions/answer/document.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/answer/picture_for_test.pb.h"
#include "ott/questions/answer/question.h"

namespace ott {
namespace {

constexpr QuestionId kQuestion = {"hang", "Does it hang?", "hang"};

Answer AnswerOf(Answer::Finding finding) {
  Answer answer = MakeAnswer(kQuestion);
  answer.set_finding(finding);
  return answer;
}

TEST(Answer, TheWorstFindingIsThatOfAllAndHasAnExitCode) {
  // The best comes first.
  const std::vector<Answer::Finding> order = {Answer::NOT_ASKED, Answer::GOOD, Answer::CANNOT_TELL,
                                              Answer::BAD};
  const int codes[] = {0, 0, 2, 1};
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(ExitCodeOf(order[i]), codes[i]);
  EXPECT_EQ(ExitCodeOf(static_cast<Answer::Finding>(7)), 2);
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    Document document;
    size_t worst = 0;
    for (size_t left = random() % 4; left > 0; --left) {
      const size_t finding = random() % order.size();
      worst = std::max(worst, finding);
      document.answers.push_back(AnswerOf(order[finding]));
    }
    EXPECT_EQ(FindingOf(document.answers), order[worst]);
    std::string sentences;
    for (Answer& answer : document.answers) {
      answer.add_sentences(absl::StrCat("says ", trial));
      if (answer.finding() != Answer::NOT_ASKED) absl::StrAppend(&sentences, "says ", trial, "\n");
    }
    EXPECT_EQ(FormatSentences(document.answers), sentences);
    if (random() % 2 == 0) document.problems.emplace_back("a file is missing");
    EXPECT_EQ(document.finding(), order[document.problems.empty() ? worst : std::max<size_t>(worst, 2)]);
  }
}

TEST(Answer, ItsJsonHasAllFieldsAndTheEvidenceByTheNamesOfItsMessage) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 50; ++trial) {
    Answer answer = AnswerOf(static_cast<Answer::Finding>(random() % 4));
    std::vector<std::string> sentences, pictures, next;
    std::vector<int> ranks;
    for (size_t i = random() % 3; i > 0; --i)
      sentences.push_back(absl::StrCat("S\u00e9ntence \xff", random() % 9));
    AddSentences(sentences, &answer);
    EXPECT_EQ(TextOf(answer), absl::StrJoin(sentences, "\n"));
    for (size_t i = random() % 3; i > 0; --i)
      answer.add_pictures(pictures.emplace_back(absl::StrCat("p", i)));
    for (size_t i = random() % 6; i > 0; --i) {
      const int rank = static_cast<int>(random() % 4);
      NameRank(rank, &answer);
      if (std::count(ranks.begin(), ranks.end(), rank) == 0) ranks.push_back(rank);
    }
    for (size_t i = random() % 3; i > 0; --i) {
      AddNext({"hang", absl::StrCat(i)}, &answer);
      next.push_back(absl::StrCat("ott hang ", i));
    }
    Json evidence;
    if (random() % 2 == 0) {
      SetEvidence(AnswerOf(Answer::GOOD), &answer);
      evidence = Json::parse(ProtoToJson(AnswerOf(Answer::GOOD), JsonLayout::kOneLine));
    }
    answer.set_how_sure(absl::StrCat("by ", random() % 9, " checks"));
    const Json expected = {{"question", "hang"},
                           {"title", "Does it hang?"},
                           {"finding", Answer::Finding_Name(answer.finding())},
                           {"sentences", sentences},
                           {"how_sure", answer.how_sure()},
                           {"evidence_type", evidence.is_null() ? "" : "ott.Answer"},
                           {"evidence", evidence},
                           {"pictures", pictures},
                           {"next", next},
                           {"ranks", ranks}};
    EXPECT_EQ(
        AnswersToJsonText({answer, answer}),
        Json({{"answers", {expected, expected}}}).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    // A picture that is not there is no link.
    Document document;
    document.answers = {answer};
    document.pictures["p1"] = 1;
    RemoveLinksToNothing(&document);
    pictures.erase(std::remove(pictures.begin(), pictures.end(), "p2"), pictures.end());
    EXPECT_EQ(AnswerToJson(document.answers[0]).at("pictures"), Json(pictures));
  }
}

TEST(NumberFrom, TakesBothBounds) {
  const CLI::Validator from_0_to_1 = NumberFrom(0, 1);
  for (std::string number : {"0", "0.5", "1"}) EXPECT_EQ(from_0_to_1(number), "");
  for (std::string number : {"-0.1", "1.1", "nan", "", "1x"})
    EXPECT_EQ(from_0_to_1(number), number + " is not a finite number from 0 to 1");
  EXPECT_EQ(NumberFrom(0)("1e300"), "");
  EXPECT_EQ(NumberFrom(0)("inf"), "inf is not a finite number from 0 on");
}

TEST(AskedRun, BeginsWhereItWentOnLast) {
  AskedRun run;
  EXPECT_EQ(run.start_iteration(), 0);
  run.info.emplace().mutable_config()->set_start_iteration(5);
  EXPECT_EQ(run.start_iteration(), 5);
  for (const int64_t start : {20, 10}) {
    run.info->add_resumptions()->set_start_iteration(start);
    EXPECT_EQ(run.start_iteration(), start);
  }
}

TEST(DisplayText, NamesKeepBothEndsAndNumbersTheirFirstDigits) {
  const std::vector<std::string> characters = {"a", "\u00e9", "\u4e2d", "\U0001f600", "\xff"};
  std::mt19937 random(3);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::string> name(random() % 4 == 0 ? random() % 3000 : random() % 140);
    for (std::string& character : name) character = characters[random() % characters.size()];
    const std::string all = absl::StrJoin(name, ""), shown = DisplayName(all);
    EXPECT_EQ(FirstBytes(all, 5),
              absl::StrJoin(name.begin(), name.begin() + std::min<size_t>(name.size(), 5), "").size());
    std::replace(name.begin(), name.end(), characters[4], std::string("\ufffd"));
    const bool is_cut = name.size() > 120;
    EXPECT_EQ(shown, is_cut ? absl::StrCat(absl::StrJoin(name.begin(), name.begin() + 80, ""), "\u2026",
                                           absl::StrJoin(name.end() - 39, name.end(), ""))
                            : absl::StrJoin(name, ""));
    const int digits = 2 + static_cast<int>(random() % 5);
    const double number =
        std::ldexp(static_cast<double>(random()) - 2e9, static_cast<int>(random() % 1900) - 1000);
    double expected = 0;
    ASSERT_TRUE(absl::SimpleAtod(absl::StrFormat("%.*e", digits - 1, number), &expected));
    EXPECT_DOUBLE_EQ(Rounded(number, digits), expected) << number;
  }
  // There is no factor to round these by.
  for (const double number : {0.0, 4e-320, -4e-320, 1e-305, std::numeric_limits<double>::max()})
    EXPECT_EQ(Rounded(number), number);
  EXPECT_TRUE(std::isnan(Rounded(HUGE_VAL)));
  EXPECT_EQ(DisplayLines("a\nbcd", 3), "a\nb\n... and 2 more bytes\n");
  EXPECT_EQ(DisplayLines("a\nb", 3), "a\nb");
  EXPECT_THAT(DisplayLines("a\u202eb", 9), testing::Not(testing::HasSubstr("\u202e")));
}

TEST(Answer, AnObjectOfACommandGetsItsAnswers) {
  EXPECT_EQ(WithAnswers("{\n  \"a\": [1]\n}\n", {}), "{\n  \"a\": [1],\n \"answers\": []\n}\n");
}

TEST(Answer, TheNextCommandIsQuotedForAShell) {
  Answer answer = AnswerOf(Answer::BAD);
  EXPECT_EQ(FormatNext(answer), "");
  AddNext({"whatif", "out/a run's\033", ""}, &answer);
  EXPECT_EQ(FormatNext(answer), "next: ott whatif 'out/a run'\\''s\\x1b' ''\n");
  for (const char special : std::string(" !\"#$&()*;<>?[]^`{|}~")) {
    answer.clear_next();
    AddNext({std::string(1, special), "_./=:,@%+-\u0100Z9"}, &answer);
    EXPECT_EQ(FormatNext(answer),
              absl::StrCat("next: ott '", std::string(1, special), "' _./=:,@%+-\u0100Z9\n"));
  }
}

TEST(Answer, AnErrorIsPrintedEscapedAndCouldNotTell) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(FinishCommand("hang", absl::NotFoundError("out/\033[2Ja\nb: no run")), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "ott hang: out/\\x1b[2Ja\nb: no run\n");
  EXPECT_EQ(FinishCommand("hang", 1), 1);
}

// Draws a message that holds others, to so many levels.
PictureForTest AnyPicture(std::mt19937& random, int levels, Json* expected) {
  const auto below = [&](uint32_t bound) { return static_cast<int>(random() % bound); };
  PictureForTest message;
  const double seconds = below(999) / 1000.0, not_finite = below(2) == 0 ? std::nan("") : 0.5;
  message.set_seconds(seconds);
  message.set_not_finite(not_finite);
  *expected = {{"seconds", seconds},     {"not_finite", std::isnan(not_finite) ? Json() : Json(not_finite)},
               {"absent", Json()},       {"name", absl::StrCat("a", below(9), "\\n")},
               {"ranks", Json::array()}, {"kind", "UNKNOWN"},
               {"parts", Json::array()}, {"part", Json()}};
  Json& drawn = *expected;
  message.set_name(drawn.at("name").get<std::string>().substr(0, 2) + "\n");
  if (below(2) == 0) {
    message.set_absent(below(3));
    drawn["absent"] = message.absent();
  }
  if (below(2) == 0) {
    message.set_kind(PictureForTest::BLAMED);
    drawn["kind"] = "BLAMED";
  }
  for (int left = below(4); left > 0; --left) {
    message.add_ranks(below(9));
    drawn["ranks"].push_back(*message.ranks().rbegin());
  }
  for (int left = levels == 0 ? 0 : below(4); left > 0; --left)
    *message.add_parts() = AnyPicture(random, levels - 1, &drawn["parts"].emplace_back());
  if (levels > 0 && below(2) == 0) *message.mutable_part() = AnyPicture(random, levels - 1, &drawn["part"]);
  return message;
}

TEST(Picture, HasTheNamesOfItsMessageAndNullForWhatIsNotKnown) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    Json expected;
    const PictureForTest message = AnyPicture(random, 2, &expected);
    EXPECT_EQ(DrawMessage(message).dump(), expected.dump());
  }
  PictureForTest third;
  third.set_seconds(1.0 / 3);
  EXPECT_EQ(DrawMessage(third).at("seconds").dump(), "0.33333");
}

}  // namespace
}  // namespace ott
