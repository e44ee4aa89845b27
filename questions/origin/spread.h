// Describes how a difference goes on from the operation that made it.

#ifndef OTT_QUESTIONS_ORIGIN_SPREAD_H_
#define OTT_QUESTIONS_ORIGIN_SPREAD_H_

#include <cstddef>

#include "ott/questions/origin/aligned_ops.h"
#include "ott/questions/origin/origin.pb.h"

namespace ott::origin {

// Sets spread, num_differ_after, num_swallow_after, differences and origin_part of what follows
// pairs[origin], which are the operations that read what it wrote, or what those wrote.
void DescribeSpread(const AlignedOps& aligned, size_t origin, OriginVerdict* verdict);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_SPREAD_H_
