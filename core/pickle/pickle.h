// Python pickles, of which nothing is run.

#ifndef OTT_CORE_PICKLE_PICKLE_H_
#define OTT_CORE_PICKLE_PICKLE_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/pickle/plain_data.h"

namespace ott {

// A parser of our own because a pickle is a program: what reads it in general imports modules and calls what
// it names. This one knows only the opcodes by which PyTorch's pickler writes None, booleans, numbers, texts,
// lists, tuples and maps (protocol 2), and refuses all others by name: INVALID_ARGUMENT with opcode and
// offset. Memory is at most 128 times the file's size. DATA_LOSS if the file ends too early. Texts are
// views into `bytes`. Sets *root to the value that the pickle is.
absl::StatusOr<PlainData> ParsePickle(std::string_view bytes, PlainData::Index* root);

struct ObjectPickle {
  PlainData data;
  PlainData::Index root = 0;
  // The pickle's size: more may follow it.
  size_t num_bytes = 0;
};

// Does the same with objects, bytes and sets, protocols 2 to 5, as torch.save and pickle.dump write them. A
// class or function is its name, and what calling it would have made is a value with that name and what it
// would have been called with. Memory is at most 256 times the file's size.
absl::StatusOr<ObjectPickle> ParsePickleOfObjects(std::string_view bytes);

}  // namespace ott

#endif  // OTT_CORE_PICKLE_PICKLE_H_
