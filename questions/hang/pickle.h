// Python pickles of plain data, and nothing else.

#ifndef OTT_QUESTIONS_HANG_PICKLE_H_
#define OTT_QUESTIONS_HANG_PICKLE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/questions/hang/plain_data.h"

namespace ott::hang {

// A parser of our own because a pickle is a program: what reads it in general imports modules and calls what
// it names. This one knows only the opcodes by which PyTorch's pickler writes None, booleans, numbers, texts,
// lists, tuples and maps (protocol 2), and refuses all others by name: INVALID_ARGUMENT with opcode and
// offset. Memory is at most 128 times the file's size. DATA_LOSS where the file ends too early. Texts are
// views into `bytes`. Sets *root to the value that the pickle is.
absl::StatusOr<PlainData> ParsePickle(std::string_view bytes, PlainData::Index* root);

}  // namespace ott::hang

#endif  // OTT_QUESTIONS_HANG_PICKLE_H_
