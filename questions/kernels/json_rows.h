// Rows that `ott prof --json` wrote, read back.

#ifndef OTT_QUESTIONS_KERNELS_JSON_ROWS_H_
#define OTT_QUESTIONS_KERNELS_JSON_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ott/questions/kernels/kernel_rows.h"

namespace ott::kernels {

class JsonRows : public KernelRows {
 public:
  // Reads one object a line. Columns that are not there stay unknown. `first` is a line before `lines`.
  explicit JsonRows(std::istream& lines, const std::string& first = "");

  size_t size() const override { return rows_.size(); }
  void Get(size_t index, KernelRow* row) const override { *row = rows_[index]; }

  // Lines that are no object with one of the columns.
  int64_t num_bad_lines() const { return num_bad_lines_; }

 private:
  std::string_view Interned(const std::string& text);

  std::vector<KernelRow> rows_;
  std::unordered_set<std::string> texts_;  // stay where they are
  int64_t num_bad_lines_ = 0;
};

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_JSON_ROWS_H_
