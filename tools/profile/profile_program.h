// Runs a program and captures what it and its children do.

#ifndef OTT_TOOLS_PROFILE_PROFILE_PROGRAM_H_
#define OTT_TOOLS_PROFILE_PROFILE_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/profile/capture_session.h"

namespace ott::profile {

struct ProfileOptions {
  std::string output;      // as in CapturePath
  bool overwrite = false;  // files that are there
  // When events are recorded: "none": always; "cudaProfilerApi": between cudaProfilerStart and
  // cudaProfilerStop; "profiler": between the marks "start" and "stop" in the NVTX domain "ott.profiler".
  std::string capture_range = "none";
  int64_t buffer_mib = 64;  // of each process
  std::string library;      // libott_capture.so
  std::vector<std::string> command;
};

struct ProfiledProgram {
  int start_error = 0;  // errno, where the program could not be executed
  int wait_status = 0;  // of waitpid(2)
  std::vector<CaptureSummary> captures;
  // Files that were there before and have names as captures have, but are not of this run. Empty for a rank
  // of a job, whose other ranks have files of their own.
  std::vector<std::string> other_files;
};

// Signals sent to this process go to the program. An error if there is nowhere to write, or another profiler:
// then the program was not started.
absl::StatusOr<ProfiledProgram> ProfileProgram(const ProfileOptions& options);

// libott_capture.so: from OTT_CAPTURE_LIBRARY, or beside the running executable. NOT_FOUND says where it was
// looked for.
absl::StatusOr<std::string> FindCaptureLibrary();

// Returns true if this machine has an NVIDIA device with its driver.
bool HasCudaDevice();

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_PROFILE_PROGRAM_H_
