// Flight recorders' files: whatever the bytes, there is an error or a job that can be judged.
//
//   bazel run --config=fuzz //questions/hang:flight_record_fuzzer -- CORPUS -max_total_time=600

#include <cstdint>
#include <string>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/core/base/utf8.h"
#include "ott/core/flight/flight_record.h"
#include "ott/questions/hang/diagnosis.h"
#include "ott/questions/hang/hang_report.h"
#include "ott/questions/hang/run_state.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<absl::StatusOr<ott::FlightRecord>> records = {
      ott::ParseFlightRecord(bytes.substr(0, size / 2)), ott::ParseFlightRecord(bytes.substr(size / 2))};
  for (const absl::StatusOr<ott::FlightRecord>& record : records) {
    if (!record.ok()) OTT_CHECK(!record.status().message().empty());
  }
  ott::RunStateEnvironment environment;
  environment.now_ns = int64_t{1700000000} * 1000000000;
  environment.read_process = [](int64_t process) {
    return ott::ProcessStatus{process % 2 == 0 ? 'R' : 'T', 1};
  };
  const ott::HangVerdict verdict =
      ott::DiagnoseHang(ott::MakeJobState(records, environment), ott::HangOptions());
  OTT_CHECK(!verdict.verdict().empty());
  const std::string text = ott::FormatHangVerdict(verdict);
  OTT_CHECK(ott::ValidUtf8Length(text) == text.size()) << text;
  return 0;
}
