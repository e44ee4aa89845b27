// What the exit codes of all subcommands mean.

#ifndef OTT_TOOLS_EXIT_CODE_H_
#define OTT_TOOLS_EXIT_CODE_H_

namespace ott {

inline constexpr int kExitGood = 0;
// The question was answered, and the answer is bad news: a difference, say.
inline constexpr int kExitBad = 1;
// The question could not be answered in full: missing or unreadable data, a wrong command line.
inline constexpr int kExitCouldNotTell = 2;

}  // namespace ott

#endif  // OTT_TOOLS_EXIT_CODE_H_
