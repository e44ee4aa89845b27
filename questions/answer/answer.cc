#include "ott/questions/answer/answer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/text_table.h"
#include "ott/questions/answer/exit_code.h"

namespace ott {
namespace {

// A word as a shell reads it back. Control characters are escaped, so that a terminal shows them.
std::string Quote(const std::string& word) {
  const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || std::strchr("_./=:,@%+-", c) != nullptr || c >= 0x80;
  });
  if (is_plain) return word;
  return absl::StrCat("'", absl::StrReplaceAll(EscapeControlCharacters(word), {{"'", "'\\''"}}), "'");
}

// Bad news outweighs what cannot be told, and that outweighs good news.
int WeightOf(Answer::Finding finding) {
  switch (finding) {
    case Answer::BAD:
      return 3;
    case Answer::CANNOT_TELL:
      return 2;
    case Answer::GOOD:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

Answer MakeAnswer(const QuestionId& question) {
  Answer answer;
  answer.set_question(question.id);
  answer.set_title(question.title);
  return answer;
}

void AddSentences(const std::vector<std::string>& sentences, Answer* answer) {
  for (const std::string& sentence : sentences) answer->add_sentences(sentence);
}

void AddNext(const std::vector<std::string>& words, Answer* answer) {
  std::string line = "ott";
  for (const std::string& word : words) absl::StrAppend(&line, " ", Quote(word));
  answer->add_next(line);
}

std::string FormatNext(const Answer& answer) {
  std::string text;
  for (const std::string& line : answer.next()) absl::StrAppend(&text, "next: ", line, "\n");
  return text;
}

std::string TextOf(const Answer& answer) { return absl::StrJoin(answer.sentences(), "\n"); }

std::string FormatSentences(const std::vector<Answer>& answers) {
  std::string text;
  for (const Answer& answer : answers) {
    if (answer.finding() != Answer::NOT_ASKED) absl::StrAppend(&text, TextOf(answer), "\n");
  }
  return text;
}

void NameRank(int rank, Answer* answer) {
  const auto& ranks = answer->ranks();
  if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) answer->add_ranks(rank);
}

void SetEvidence(const google::protobuf::Message& evidence, Answer* answer) {
  answer->set_evidence_type(evidence.GetDescriptor()->full_name());
  answer->set_evidence(evidence.SerializeAsString());
}

int ExitCodeOf(Answer::Finding finding) {
  switch (finding) {
    case Answer::NOT_ASKED:
    case Answer::GOOD:
      return kExitGood;
    case Answer::BAD:
      return kExitBad;
    default:
      return kExitCouldNotTell;
  }
}

Answer::Finding FindingOf(const std::vector<Answer>& answers) {
  Answer::Finding worst = Answer::NOT_ASKED;
  for (const Answer& answer : answers) {
    if (WeightOf(answer.finding()) > WeightOf(worst)) worst = answer.finding();
  }
  return worst;
}

void PrintError(const std::string& command, const absl::Status& error) {
  // Lines stay apart: some errors quote what a program said.
  std::string message;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(error.message(), '\n'))) {
    absl::StrAppend(&message, message.empty() ? "" : "\n", EscapeControlCharacters(line));
  }
  std::fprintf(stderr, "ott %s: %s\n", command.c_str(), message.c_str());
}

int FinishCommand(const std::string& command, const absl::StatusOr<int>& exit_code) {
  if (exit_code.ok()) return *exit_code;
  PrintError(command, exit_code.status());
  return kExitCouldNotTell;
}

}  // namespace ott
