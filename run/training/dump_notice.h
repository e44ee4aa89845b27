// Says how much the dumps of a run will take, as the first one is written.

#ifndef OTT_RUN_TRAINING_DUMP_NOTICE_H_
#define OTT_RUN_TRAINING_DUMP_NOTICE_H_

#include <cstdint>
#include <string>

#include "ott/core/dump/selection.h"
#include "ott/core/dumper/tensor_dumper.h"

namespace ott {

// A dump that has more text than this gets a line about its format.
inline constexpr int64_t kLargeJsonBytes = int64_t{10} << 20;

// Lines that say how much a dump of one rank takes, and 1000 iterations from `first_iteration` on; and where
// much of that is text, how to have it written as numbers. Each ends with a newline.
//
//   ott: dumps: 48.0 MB an iteration on each of 4 ranks, in 100 of the first 1000 iterations: 4.80 GB a rank
std::string FormatDumpNotice(const DumpSize& size, const Selection& selection, int64_t first_iteration,
                             int world_size);

}  // namespace ott

#endif  // OTT_RUN_TRAINING_DUMP_NOTICE_H_
