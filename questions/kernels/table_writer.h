// Writes rows of cells as text, CSV or JSON.

#ifndef OTT_QUESTIONS_KERNELS_TABLE_WRITER_H_
#define OTT_QUESTIONS_KERNELS_TABLE_WRITER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ott/questions/kernels/prof_column.h"

namespace ott::kernels {

struct TableLayout {
  enum class Format { kPlain, kCsv, kJson };

  Format format = Format::kPlain;
  // The width of a plain line: columns are filled and texts cut so that it fits. 0: cells are as wide as they
  // are.
  int width = 0;
};

// Returns INVALID_ARGUMENT if plain lines of these columns need more than layout.width.
absl::Status CheckWidth(const TableLayout& layout, const std::vector<std::string_view>& names);

// A header (plain and CSV), then a line a row. Numbers are never cut, and may make a line longer. Plain cells
// are words between single spaces. CSV is that of RFC 4180. JSON is one object a line; what is not known is
// null, what is not there is left out.
class TableWriter {
 public:
  // write: is handed the table a buffer at a time, the last at destruction.
  TableWriter(const TableLayout& layout, std::vector<std::string_view> names,
              std::function<void(std::string_view)> write);
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;
  ~TableWriter() { write_(buffer_); }

  // Cells in the order of the columns, then EndRow().
  void Add(const ProfCell& cell);
  void EndRow();

 private:
  void AddPlain(const ProfCell& cell);
  void AddCsv(const ProfCell& cell);
  void AddJson(const ProfCell& cell);

  const TableLayout layout_;
  const std::vector<std::string_view> names_;
  const std::vector<int> widths_;  // of plain columns, unless layout_.width is 0
  const std::function<void(std::string_view)> write_;
  std::string buffer_;
  size_t column_ = 0;
  bool first_in_object_ = true;
};

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_TABLE_WRITER_H_
