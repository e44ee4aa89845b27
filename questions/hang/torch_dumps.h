// Dumps of PyTorch's Flight Recorder, as ProcessGroupNCCL leaves one a rank: pickled or as JSON, format
// versions 2.x.

#ifndef OTT_QUESTIONS_HANG_TORCH_DUMPS_H_
#define OTT_QUESTIONS_HANG_TORCH_DUMPS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/pickle/plain_data.h"
#include "ott/questions/hang/job_state.h"

namespace ott::hang {

// A larger file is refused.
inline constexpr int64_t kMaxDumpBytes = int64_t{256} << 20;

// Parses JSON as plain data. INVALID_ARGUMENT with the parser's words for what is none.
absl::StatusOr<PlainData> ParseJsonData(std::string_view text, PlainData::Index* root);

// Returns the contents of dumps, by rank, as a job. Ranks that others name and that left no dump, and dumps
// that cannot be read, are ranks with a problem. INVALID_ARGUMENT if no dump can be read, with the error of
// the first.
absl::StatusOr<JobState> ParseTorchDumps(const std::map<int, std::string>& dumps);

// Returns the files of a directory whose names differ only in the number at their end, before an extension:
// _dump_0, nccl_trace_rank_0, rank_0.json. NOT_FOUND if there are none.
absl::StatusOr<JobState> ReadTorchDumps(const std::string& dir);

}  // namespace ott::hang

#endif  // OTT_QUESTIONS_HANG_TORCH_DUMPS_H_
