// Why a job stands still, and which rank is to blame. docs/hang.md has the rule in words.

#ifndef OTT_DIST_HANG_DIAGNOSIS_H_
#define OTT_DIST_HANG_DIAGNOSIS_H_

#include "ott/dist/hang/hang.pb.h"
#include "ott/dist/hang/job_state.h"

namespace ott {

struct HangOptions {
  // Where times are known, a shorter wait is no hang, and a rank that began or ended something within this
  // time moves.
  double after_seconds = 60;
};

HangVerdict DiagnoseHang(const JobState& job, const HangOptions& options);

}  // namespace ott

#endif  // OTT_DIST_HANG_DIAGNOSIS_H_
