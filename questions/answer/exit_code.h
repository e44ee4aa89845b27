// The exit codes of all subcommands.

#ifndef OTT_QUESTIONS_ANSWER_EXIT_CODE_H_
#define OTT_QUESTIONS_ANSWER_EXIT_CODE_H_

namespace ott {

inline constexpr int kExitGood = 0;
// The question was answered, and the answer is bad news: a difference, say.
inline constexpr int kExitBad = 1;
// The question could not be answered in full: missing or unreadable data, a wrong command line.
inline constexpr int kExitCouldNotTell = 2;

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_EXIT_CODE_H_
