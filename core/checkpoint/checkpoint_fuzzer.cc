// Any bytes as a checkpoint's file: an error, or a tree whose tensors can be read.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/base/file.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/tensor/scattered_elements.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // OTT_FUZZED_FILE: a file such as .metadata or mp_rank_00_model_states.pt, whose folder is read.
  static const char* const fuzzed = std::getenv("OTT_FUZZED_FILE");
  static const std::string path =
      fuzzed != nullptr ? fuzzed : "/tmp/checkpoint_fuzzer_" + std::to_string(getpid());
  static const std::string read = fuzzed != nullptr ? path.substr(0, path.rfind('/')) : path;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!ott::WriteFileAtomically(path, bytes).ok()) return 0;
  const absl::StatusOr<ott::Checkpoint> checkpoint = ott::ReadCheckpoint(read);
  if (!checkpoint.ok()) return 0;
  for (const ott::NamedTensor& named : ott::ListTensors(checkpoint->state)) {
    // A tensor that repeats its storage may be large.
    if (named.tensor.view.num_bytes() > 1 << 20) continue;
    const absl::StatusOr<ott::Tensor> gathered = ott::Gathered(named.tensor);
    if (gathered.ok()) ott::CloneToHost(gathered->view).IgnoreError();
  }
  return 0;
}
