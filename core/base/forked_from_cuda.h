// The child of a fork cannot use the CUDA of its parent: what measures in both must leave CUDA alone there.

#ifndef OTT_CORE_BASE_FORKED_FROM_CUDA_H_
#define OTT_CORE_BASE_FORKED_FROM_CUDA_H_

namespace ott {

// Whether this is the child of a fork of a process that had called this, as it does before each use of CUDA.
// Thread-safe.
bool IsForkedFromCuda();

}  // namespace ott

#endif  // OTT_CORE_BASE_FORKED_FROM_CUDA_H_
