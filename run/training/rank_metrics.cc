#include "ott/run/training/rank_metrics.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/json/json_string.h"

namespace ott {

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
  if (!file_.is_open()) file_.open(path_, std::ios::app);
  file_ << line << "}\n" << std::flush;
  if (file_) return absl::OkStatus();
  file_.clear();
  return absl::UnavailableError(
      absl::StrCat(path_, ": metrics of iteration ", iteration, " cannot be written"));
}

}  // namespace ott
