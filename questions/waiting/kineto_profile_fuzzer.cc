// A file of any content is a trace or a Status, and a trace can be joined, printed and put beside another.

#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_rows.h"
#include "ott/questions/waiting/job.h"
#include "tools/kineto/kineto_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string& path =
      *new std::string(absl::StrCat("/dev/shm/kineto_profile_fuzzer.", getpid(), ".json"));
  OTT_CHECK(ott::WriteFileAtomically(path, {reinterpret_cast<const char*>(data), size}).ok());
  auto profile = ott::kineto::ReadKinetoProfile(path);
  if (!profile.ok()) return 0;
  const ott::ranks::Job job = ott::ranks::DescribeJob({{0, &*profile}, {1, &*profile}});
  for (const ott::ranks::Job::Rank& rank : job.ranks) {
    OTT_CHECK(rank.split.compute + rank.split.exposed_communication + rank.split.exposed_copies +
                  rank.split.idle ==
              rank.split.total);
  }
  (void)ott::ranks::FormatCollectives(job, 100);
  (void)ott::ranks::FormatHoldUps(job);
  const ott::prof::KernelJoin join = ott::prof::JoinKernels(&*profile);
  ott::prof::ProfTableOptions options;
  options.columns = "all";
  OTT_CHECK(ott::prof::WriteProfTable(ott::prof::ProfileRows(*profile, join, std::nullopt, "*"), options,
                                      [](std::string_view) {})
                .ok());
  return 0;
}
