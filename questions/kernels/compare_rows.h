// Two captures beside each other.

#ifndef OTT_QUESTIONS_KERNELS_COMPARE_ROWS_H_
#define OTT_QUESTIONS_KERNELS_COMPARE_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "ott/questions/kernels/kernel_rows.h"
#include "ott/questions/kernels/prof_table.h"

namespace ott::kernels {

// Rows that are compared, and how many steps it is of; 0: not told.
struct ComparedRows {
  const KernelRows* rows;
  int64_t num_steps;
};

// Time of each op, and of each kernel of an op, in both: what became slower or faster, what is new and what
// is gone, the largest effects first, `limit` of each. Of the rows that pass the filters of options; says so
// if none does. By step where both tell steps and these filters leave out no part of the time.
std::string CompareRows(const ComparedRows& current, const ComparedRows& base,
                        const ProfTableOptions& options, size_t limit);

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_COMPARE_ROWS_H_
