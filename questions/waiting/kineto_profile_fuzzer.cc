// A file of any content is a trace or a Status, and a trace can be joined, printed and put beside another.

#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/core/kineto/kineto_profile.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_rows.h"
#include "ott/questions/waiting/traced_job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string& path =
      *new std::string(absl::StrCat("/dev/shm/kineto_profile_fuzzer.", getpid(), ".json"));
  OTT_CHECK(ott::WriteFileAtomically(path, {reinterpret_cast<const char*>(data), size}).ok());
  auto profile = ott::kineto::ReadKinetoProfile(path);
  if (!profile.ok()) return 0;
  const ott::waiting::TracedJob job = ott::waiting::DescribeJob({{0, &*profile}, {1, &*profile}});
  for (const ott::waiting::TracedJob::Rank& rank : job.ranks) {
    OTT_CHECK(rank.split.compute + rank.split.exposed_communication + rank.split.exposed_copies +
                  rank.split.idle ==
              rank.split.total);
  }
  (void)ott::waiting::FormatCollectives(job, 100);
  (void)ott::waiting::FormatHoldUps(job);
  const ott::kernels::KernelJoin join = ott::kernels::JoinKernels(&*profile);
  ott::kernels::ProfTableOptions options;
  options.columns = "all";
  OTT_CHECK(ott::kernels::WriteProfTable(ott::kernels::ProfileRows(*profile, join, std::nullopt, "*"),
                                         options, [](std::string_view) {})
                .ok());
  return 0;
}
