#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tools/launched.h"

namespace ott {

// Returns only if that fails.
absl::StatusOr<Connect> ConnectorOfMpi(char** argv) {
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "ott-mpi";
  execv(program.c_str(), argv);
  return absl::UnimplementedError(absl::StrCat("was started by MPI's launcher, which needs ",
                                               program.string(), ": ", std::strerror(errno),
                                               "; build optim_test_tools with MPI, or start it by srun"));
}

}  // namespace ott
