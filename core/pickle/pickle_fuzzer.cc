// Pickles: whatever the bytes, there is an error or values that refer to each other.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ott/core/pickle/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<ott::Pickle> pickle =
      ott::ParsePickle(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!pickle.ok()) return 0;
  for (size_t i = 0; i < pickle->data.size(); ++i) {
    for (const ott::PlainData::Index item : pickle->data[static_cast<ott::PlainData::Index>(i)].items) {
      if (item != ott::PlainData::kNoValue && item >= pickle->data.size()) std::abort();
    }
  }
  return 0;
}
