// Says what stands out in a capture, and what to do about it.

#ifndef OTT_QUESTIONS_KERNELS_SUMMARY_H_
#define OTT_QUESTIONS_KERNELS_SUMMARY_H_

#include <string>

#include "ott/questions/kernels/kernel_rows.h"
#include "ott/questions/kernels/prof_table.h"

namespace ott::kernels {

// Returns a page of text about the kernels that pass options' filters: time, idle time, the ops (options'
// limit, or 10) that take most of it, the share of Tensor Cores in the time of kernels that multiply
// matrices, and advice, each piece with the time it is about: float32 or 16-bit types on CUDA cores, sizes
// not divisible by 8 (16-bit types) or 16 (8-bit types), grids too small for the GPU, a GPU that waits for
// launches, kernels too short to be worth a launch, labels without sizes.
std::string Summarize(const KernelRows& rows, const ProfTableOptions& options);

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_SUMMARY_H_
