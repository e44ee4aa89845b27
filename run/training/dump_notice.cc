#include "ott/run/training/dump_notice.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace ott {
namespace {

constexpr int64_t kForeseenIterations = 1000;

std::string FormatBytes(double bytes) {
  const char* unit = "B";
  for (const char* const larger : {"kB", "MB", "GB", "TB", "PB", "EB"}) {
    // More would be rounded to 1e+03.
    if (bytes < 999.5) break;
    bytes /= 1000;
    unit = larger;
  }
  return absl::StrFormat("%.3g %s", bytes, unit);
}

}  // namespace

std::string FormatDumpNotice(const DumpSize& size, const Selection& selection, int64_t first_iteration,
                             int world_size) {
  int64_t num_dumps = 0;
  for (int64_t i = 0; i < kForeseenIterations; ++i)
    num_dumps += selection.WantsIteration(first_iteration + i);
  const auto bytes = static_cast<double>(size.file_bytes);
  std::string text = absl::StrCat("ott: dumps: ", FormatBytes(bytes), " an iteration",
                                  world_size > 1 ? absl::StrCat(" on each of ", world_size, " ranks") : "",
                                  ", in ", num_dumps, " of the first ", kForeseenIterations,
                                  " iterations: ", FormatBytes(bytes * static_cast<double>(num_dumps)),
                                  world_size > 1 ? " a rank\n" : "\n");
  if (size.json_bytes >= kLargeJsonBytes) {
    absl::StrAppend(&text, "ott: dumps: ", FormatBytes(static_cast<double>(size.json_bytes)),
                    " of that is JSON, the default format; dump { format_for_all: FORMAT_BINARY } in the "
                    "configuration makes it some ",
                    FormatBytes(static_cast<double>(size.tensor_bytes)),
                    ", takes a small part of the time, and is read by the same tools, Python's included\n");
  }
  return text;
}

}  // namespace ott
