// The answer that every question about a run gives, and what follows from it.

#ifndef OTT_QUESTIONS_ANSWER_ANSWER_H_
#define OTT_QUESTIONS_ANSWER_ANSWER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "ott/questions/answer/answer.pb.h"

namespace ott {

// The question that an answer is to.
struct QuestionId {
  const char* id;       // "hang"
  const char* title;    // "Does it hang?"
  const char* command;  // `ott COMMAND` answers it alone: "hang"
};

// Not asked yet.
Answer MakeAnswer(const QuestionId& question);

void AddSentences(const std::vector<std::string>& sentences, Answer* answer);

// Adds the command line `ott WORDS...`, quoted for a shell where that is needed.
void AddNext(const std::vector<std::string>& words, Answer* answer);

// Returns "next: ott whatif out/run" for each command line. Ends with a newline, unless there is none.
std::string FormatNext(const Answer& answer);

// Returns the sentences, a line each, without a newline at the end.
std::string TextOf(const Answer& answer);

// Returns the sentences of the answers that were asked, a line each. Ends with a newline, unless there is
// none.
std::string FormatSentences(const std::vector<Answer>& answers);

// Adds the rank to those that it names, unless it names it already.
void NameRank(int rank, Answer* answer);

void SetEvidence(const google::protobuf::Message& evidence, Answer* answer);

// The exit code of every command: 0 good or not asked, 1 bad, 2 cannot tell (questions/answer/exit_code.h).
int ExitCodeOf(Answer::Finding finding);

// Combines several answers: BAD if one is, else CANNOT_TELL if one is, else GOOD if one is.
Answer::Finding FindingOf(const std::vector<Answer>& answers);

// Prints "ott COMMAND: ..." to standard error, with control characters other than newlines escaped.
void PrintError(const std::string& command, const absl::Status& error);

// Ends a command: returns its exit code, or prints an error and returns that of could not tell.
int FinishCommand(const std::string& command, const absl::StatusOr<int>& exit_code);

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_ANSWER_H_
