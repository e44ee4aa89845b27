// A file of any content is a capture or a Status, and a capture can be joined.

#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_reader.h"
#include "ott/questions/kernels/profile_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string& path =
      *new std::string(absl::StrCat("/dev/shm/profile_reader_fuzzer.", getpid()));
  OTT_CHECK(ott::WriteFileAtomically(path, {reinterpret_cast<const char*>(data), size}).ok());
  ott::kernels::ReadProfileOptions read;
  read.transfers = true;
  auto profile = ott::kernels::ReadProfile(path, read);
  if (!profile.ok()) return 0;
  for (const ott::kernels::Profile::Transfer& transfer : profile->transfers) {
    OTT_CHECK(transfer.end >= transfer.start && transfer.name < profile->transfer_names.size() &&
              transfer.process < profile->processes.size() &&
              (transfer.launch == ott::kernels::kNone || transfer.launch < profile->launches.size()));
  }
  const ott::kernels::KernelJoin join = ott::kernels::JoinKernels(&*profile);
  ott::kernels::ProfTableOptions options;
  options.columns = "all";
  OTT_CHECK(ott::kernels::WriteProfTable(ott::kernels::ProfileRows(*profile, join, std::nullopt), options,
                                         [](std::string_view) {})
                .ok());
  return 0;
}
