#include "ott/run/training/rank_metrics.h"

#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file_limit.h"
#include "ott/core/json/json_string.h"

namespace ott {

namespace {

// What a full disk, or a run that was killed, left of a line would make the next one unreadable.
void CutUnfinishedLine(const std::string& path) {
  std::ifstream file(path, std::ios::ate);
  const std::streamoff size = file.tellg();
  std::streamoff end = size;
  while (end > 0 && file.seekg(end - 1).peek() != '\n') --end;
  std::error_code error;
  if (end < size) std::filesystem::resize_file(path, static_cast<uintmax_t>(end), error);
}

}  // namespace

absl::Status RankMetrics::FinishIter(int64_t iteration) {
  if (values_.empty()) return absl::OkStatus();
  std::string line = absl::StrCat("{\"step\": ", iteration);
  for (const auto& [name, value] : values_) {
    line += ", ";
    AppendJsonString(name, line);
    if (std::isfinite(value)) {
      absl::StrAppendFormat(&line, ": %.17g", value);
    } else {
      absl::StrAppend(&line, std::isnan(value) ? ": \"NaN\""
                             : value > 0       ? ": \"Infinity\""
                                               : ": \"-Infinity\"");
    }
  }
  values_.clear();
  const FileLimitIsAnError no_signal;
  if (!file_.is_open()) {
    CutUnfinishedLine(path_);
    file_.open(path_, std::ios::app);
  }
  file_ << line << "}\n" << std::flush;
  if (file_) return absl::OkStatus();
  file_.close();
  file_.clear();
  return absl::UnavailableError(
      absl::StrCat(path_, ": metrics of iteration ", iteration, " cannot be written"));
}

}  // namespace ott
