// Why a job stands still, and which rank is to blame. docs/hang.md has the rule in words.

#ifndef OTT_QUESTIONS_HANG_DIAGNOSIS_H_
#define OTT_QUESTIONS_HANG_DIAGNOSIS_H_

#include "ott/questions/hang/hang.pb.h"
#include "ott/questions/hang/job_state.h"

namespace ott {

struct HangOptions {
  // If times are known, a shorter wait is no hang, and a rank that began or ended something within this time
  // moves.
  double after_seconds = 60;
};

HangVerdict DiagnoseHang(const JobState& job, const HangOptions& options);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_DIAGNOSIS_H_
