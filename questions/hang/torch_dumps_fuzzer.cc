// Flight Recorder dumps, pickled or JSON: whatever the bytes, there is an error or a job that can be judged.
//
//   bazel run --config=fuzz //questions/hang:torch_dumps_fuzzer -- CORPUS -max_total_time=600

#include <cstdint>
#include <string>

#include "ott/core/base/check.h"
#include "ott/core/base/utf8.h"
#include "ott/questions/hang/diagnosis.h"
#include "ott/questions/hang/hang_report.h"
#include "ott/questions/hang/torch_dumps.h"

// The first byte says after how many bytes the second of two dumps begins, in parts of the whole.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t first = bytes.size() * data[0] / 255;
  const absl::StatusOr<ott::JobState> job =
      ott::hang::ParseTorchDumps({{0, bytes.substr(0, first)}, {1, bytes.substr(first)}});
  if (!job.ok()) {
    OTT_CHECK(!job.status().message().empty());
    return 0;
  }
  // Ranks that a dump makes up cost time, and are tried elsewhere.
  if (job->ranks.size() > 1000) return 0;
  const ott::HangVerdict verdict = ott::DiagnoseHang(*job, ott::HangOptions());
  OTT_CHECK(!verdict.verdict().empty());
  const std::string text = ott::FormatHangVerdict(verdict);
  OTT_CHECK(ott::ValidUtf8Length(text) == text.size()) << text;
  return 0;
}
