// Reads captures: SQLite exports of Nsight Systems, what `ott profile` writes, files of nvprof, and traces of
// torch.profiler.

#ifndef OTT_QUESTIONS_KERNELS_PROFILE_READER_H_
#define OTT_QUESTIONS_KERNELS_PROFILE_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "ott/core/kernel_profile/profile.h"

namespace ott::kernels {

struct ReadProfileOptions {
  // Memory copies and memsets as well as kernels.
  bool transfers = false;
};

// Reads a trace of torch.profiler, see core/kineto/kineto_profile.h. Of databases:
//
// Schemas 3.16 to 3.28 of Nsight Systems, and nvprof's: tables and columns are looked for, not assumed. Rows
// with a text where a number belongs, or without what they cannot do without, are left out and counted in
// notes. A rank is taken from the file's name (rank_00003), else from the order of the process ids where
// several processes have kernels.
//
// NOT_FOUND, INVALID_ARGUMENT (no database, or one of something else), UNAVAILABLE (locked), DATA_LOSS (cut).
absl::StatusOr<Profile> ReadProfile(const std::string& path, const ReadProfileOptions& options = {});

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_PROFILE_READER_H_
