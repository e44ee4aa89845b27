#include "ott/core/base/misuse_log.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "ott/core/base/misuse_capture.h"

namespace ott::internal {
namespace {

bool EnvironmentAsksToAbort() {
  const char* const asked = std::getenv("OTT_ON_MISUSE");
  return asked != nullptr && std::string_view(asked) == "abort";
}

bool IsPowerOfTen(int64_t count) {
  while (count % 10 == 0) count /= 10;
  return count == 1;
}

// Returns how many there were.
int64_t CountOne(std::string_view kind, std::vector<MisuseCount>& counts) {
  const auto known = std::find_if(counts.begin(), counts.end(),
                                  [&](const MisuseCount& count) { return count.kind == kind; });
  if (known != counts.end()) return ++known->count;
  if (counts.size() > MisuseLog::kMaxKinds) return ++counts.back().count;
  counts.push_back({counts.size() == MisuseLog::kMaxKinds ? "other misuses" : std::string(kind), 1});
  return 1;
}

}  // namespace

void MisuseLog::Report(OnMisuse on_misuse, std::string_view kind, std::string_view message) {
  const bool aborts = on_misuse == OnMisuse::kAbort || EnvironmentAsksToAbort();
  int64_t count;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    count = CountOne(kind, counts_);
  }
  const bool is_printed = aborts || IsPowerOfTen(count);
  std::string line(helper_);
  line.append(": ").append(message);
  if (!aborts && count > 1) absl::StrAppend(&line, " (", count, " times so far)");
  if (MisuseCapture* const capture = MisuseCapture::Innermost())
    return capture->Add(line, is_printed, aborts);
  if (is_printed) PrintMisuse(line);
  if (aborts) std::abort();
}

std::vector<MisuseCount> MisuseLog::Counts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

int64_t MisuseLog::total() const {
  int64_t total = 0;
  for (const MisuseCount& kind : Counts()) total += kind.count;
  return total;
}

void MisuseLog::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  counts_.clear();
}

}  // namespace ott::internal
