// Tables of kernels, and of groups of kernels.

#ifndef OTT_QUESTIONS_KERNELS_PROF_TABLE_H_
#define OTT_QUESTIONS_KERNELS_PROF_TABLE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ott/questions/kernels/kernel_rows.h"
#include "ott/questions/kernels/table_writer.h"

namespace ott::kernels {

struct ProfTableOptions {
  std::string columns = "idx,dir,sub,mod,op,kernel,params,sil";
  TableLayout layout;
  std::string group_by;  // columns, by commas; "": one row a kernel
  std::string sort;      // a column (numbers: largest first); "": by start, groups by duration
  int64_t limit = -1;    // rows; -1: all

  // Filters, all of which a kernel must pass. Globs as in ott/core/base/glob.h, "" for any.
  std::string op, layer, kernel, phase;
  std::string direction;       // fprop or bprop
  std::vector<int64_t> ranks;  // empty: all
  double begin_seconds = 0;    // of the start, since the beginning of the capture
  double end_seconds = -1;     // -1: to the end
};

// Returns true for the kernels that pass the filters.
bool PassesFilters(const ProfTableOptions& options, const KernelRow& row);

// Hands the table to write, a buffer at a time. INVALID_ARGUMENT for columns there are not.
absl::Status WriteProfTable(const KernelRows& rows, const ProfTableOptions& options,
                            const std::function<void(std::string_view)>& write);

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_PROF_TABLE_H_
