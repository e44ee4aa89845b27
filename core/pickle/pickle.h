// Python pickles, of which nothing is run.

#ifndef OTT_CORE_PICKLE_PICKLE_H_
#define OTT_CORE_PICKLE_PICKLE_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/pickle/plain_data.h"

namespace ott {

struct Pickle {
  PlainData data;
  PlainData::Index root = 0;
  // The pickle's size: more may follow it.
  size_t num_bytes = 0;
};

// Parses a pickle of protocol 2 to 5, as torch.save, PyTorch's Flight Recorder and pickle.dump write them. It
// is a parser of our own because a pickle is a program: what reads it in general imports modules and calls
// what it names. Here a class or function is its name, and what calling it would have made is a value with
// that name and what it would have been called with. INVALID_ARGUMENT with the byte of what is no pickle;
// DATA_LOSS if the file ends too early. Memory is at most 256 times the file's size. Texts are views into
// `bytes`.
absl::StatusOr<Pickle> ParsePickle(std::string_view bytes);

}  // namespace ott

#endif  // OTT_CORE_PICKLE_PICKLE_H_
