#include "ott/questions/answer/answer.h"

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/answer/answer_json.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/answer/picture_for_test.pb.h"

namespace ott {
namespace {

constexpr QuestionId kQuestion = {"hang", "Does it hang?", "hang"};

Answer AnswerOf(Answer::Finding finding) {
  Answer answer = MakeAnswer(kQuestion);
  answer.set_finding(finding);
  return answer;
}

TEST(Answer, TheSameFindingHasTheSameExitCode) {
  EXPECT_EQ(ExitCodeOf(Answer::NOT_ASKED), 0);
  EXPECT_EQ(ExitCodeOf(Answer::GOOD), 0);
  EXPECT_EQ(ExitCodeOf(Answer::BAD), 1);
  EXPECT_EQ(ExitCodeOf(Answer::CANNOT_TELL), 2);
  // This finding is of a later version.
  EXPECT_EQ(ExitCodeOf(static_cast<Answer::Finding>(7)), 2);
}

TEST(Answer, BadNewsOutweighsWhatCannotBeToldAndThatOutweighsGoodNews) {
  EXPECT_EQ(FindingOf({}), Answer::NOT_ASKED);
  EXPECT_EQ(FindingOf({AnswerOf(Answer::NOT_ASKED), AnswerOf(Answer::GOOD)}), Answer::GOOD);
  EXPECT_EQ(FindingOf({AnswerOf(Answer::GOOD), AnswerOf(Answer::CANNOT_TELL)}), Answer::CANNOT_TELL);
  EXPECT_EQ(FindingOf({AnswerOf(Answer::BAD), AnswerOf(Answer::CANNOT_TELL)}), Answer::BAD);
}

TEST(Answer, ItsTextIsALineASentence) {
  Answer answer = AnswerOf(Answer::GOOD);
  AddSentences({"one", "two"}, &answer);
  EXPECT_EQ(TextOf(answer), "one\ntwo");
}

TEST(Answer, ItsJsonHasTheEvidenceByTheNamesOfItsMessage) {
  Answer answer = AnswerOf(Answer::BAD);
  SetEvidence(AnswerOf(Answer::GOOD), &answer);
  const Json json = Json::parse(AnswersToJsonText({answer})).at("answers").at(0);
  EXPECT_EQ(json.at("question"), "hang");
  EXPECT_EQ(json.at("finding"), "BAD");
  EXPECT_EQ(json.at("evidence_type"), "ott.Answer");
  EXPECT_EQ(json.at("evidence").at("finding"), "GOOD");
}

TEST(Answer, AnObjectOfACommandGetsItsAnswers) {
  const Json json = Json::parse(WithAnswers("{\n  \"a\": [1]\n}\n", {AnswerOf(Answer::BAD)}));
  EXPECT_EQ(json.at("a").at(0), 1);
  EXPECT_EQ(json.at("answers").at(0).at("finding"), "BAD");
}

TEST(Answer, TheNextCommandIsQuotedForAShell) {
  Answer answer = AnswerOf(Answer::BAD);
  EXPECT_EQ(FormatNext(answer), "");
  AddNext({"whatif", "out/a run's\033", ""}, &answer);
  EXPECT_EQ(FormatNext(answer), "next: ott whatif 'out/a run'\\''s\\x1b' ''\n");
}

TEST(Answer, AnErrorIsPrintedEscapedAndCouldNotTell) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(FinishCommand("hang", absl::NotFoundError("out/\033[2Ja\nb: no run")), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "ott hang: out/\\x1b[2Ja\nb: no run\n");
  EXPECT_EQ(FinishCommand("hang", 1), 1);
}

TEST(Picture, HasTheNamesOfItsMessageAndNullForWhatIsNotKnown) {
  PictureForTest message;
  message.set_not_finite(std::nan(""));
  message.set_seconds(1.0 / 3);
  message.set_name("a\n");
  message.add_parts()->set_kind(PictureForTest::BLAMED);
  message.add_ranks(3);
  EXPECT_EQ(
      DrawMessage(message).dump(),
      R"({"seconds":0.33333,"not_finite":null,"absent":null,"name":"a\\n","ranks":[3],"kind":"UNKNOWN",)"
      R"("parts":[{"seconds":0.0,"not_finite":0.0,"absent":null,"name":"","ranks":[],"kind":"BLAMED","parts":[],)"
      R"("part":null}],"part":null})");
}

}  // namespace
}  // namespace ott
