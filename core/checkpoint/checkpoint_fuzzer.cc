// Any bytes as a checkpoint's file: an error, or a tree whose tensors can be read.

#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/base/file.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/tensor/scattered_elements.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = "/tmp/checkpoint_fuzzer_" + std::to_string(getpid());
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!ott::WriteFileAtomically(path, bytes).ok()) return 0;
  const absl::StatusOr<ott::Checkpoint> checkpoint = ott::ReadCheckpoint(path);
  if (!checkpoint.ok()) return 0;
  for (const ott::NamedTensor& named : ott::ListTensors(checkpoint->state)) {
    // A tensor that repeats its storage may be large.
    if (named.tensor.view.num_bytes() > 1 << 20) continue;
    const absl::StatusOr<ott::Tensor> gathered = ott::Gathered(named.tensor);
    if (gathered.ok()) ott::CloneToHost(gathered->view).IgnoreError();
  }
  return 0;
}
