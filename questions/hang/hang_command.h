// `ott hang`.

#ifndef OTT_QUESTIONS_HANG_HANG_COMMAND_H_
#define OTT_QUESTIONS_HANG_HANG_COMMAND_H_

#include "CLI/CLI.hpp"

namespace ott::hang {

// Exit codes: good, not hanging; bad, hanging, and why is said; could not tell.
void AddHangCommand(CLI::App& app, int* exit_code);

}  // namespace ott::hang

#endif  // OTT_QUESTIONS_HANG_HANG_COMMAND_H_
