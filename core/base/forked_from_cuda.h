// The child of a fork cannot use its parent's CUDA: code that runs in both must not call CUDA in the child.

#ifndef OTT_CORE_BASE_FORKED_FROM_CUDA_H_
#define OTT_CORE_BASE_FORKED_FROM_CUDA_H_

namespace ott {

// Returns true if this process was forked from one that used CUDA. To be called before each use of CUDA: a
// process that has called it counts as one that used CUDA. Thread-safe.
bool IsForkedFromCuda();

}  // namespace ott

#endif  // OTT_CORE_BASE_FORKED_FROM_CUDA_H_
