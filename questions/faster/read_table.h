// CSV and JSON lines of single times.

#ifndef OTT_QUESTIONS_FASTER_READ_TABLE_H_
#define OTT_QUESTIONS_FASTER_READ_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/faster/samples.h"

namespace ott::faster {

// One time of one process.
struct TableRow {
  std::string place;  // "times.csv:3"
  std::string process;
  std::string iteration;  // empty: the one after the one before
  std::string measurement = "time";
  double seconds = 0;
};

// Reads a table with a line of names first, in any order: process and seconds, and perhaps iteration and
// measurement; other columns are left out. RFC 4180, though fields do not go over lines.
absl::StatusOr<std::vector<TableRow>> ReadCsv(const std::string& path, const std::string& text);

// Collects rows of any order into processes. INVALID_ARGUMENT for times that are none, and for two of one
// iteration.
absl::StatusOr<std::vector<Process>> CollectRows(const std::string& path, std::vector<TableRow> rows);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_READ_TABLE_H_
