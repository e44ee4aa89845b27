// `ott hang` without the other commands.

#include "CLI/CLI.hpp"
#include "ott/questions/hang/hang_command.h"

int main(int argc, char** argv) {
  CLI::App app;
  int exit_code = 0;
  ott::hang::AddHangCommand({app, &exit_code, nullptr});
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
