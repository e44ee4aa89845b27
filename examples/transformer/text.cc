#include "examples/transformer/text.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/status_macros.h"

namespace ott::examples {

absl::StatusOr<std::string> ReadText(const std::string& path, int64_t min_bytes) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(
        path,
        ": no such text; Debian's package base-files has licences in /usr/share/common-licenses, and --text "
        "takes any other file"));
  }
  OTT_RETURN_IF_ERROR(text.status());
  if (static_cast<int64_t>(text->size()) < min_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", text->size(), " bytes, and a sequence takes ", min_bytes));
  }
  for (char& byte : *text) {
    if (static_cast<unsigned char>(byte) >= kVocabulary) byte = '?';
  }
  return text;
}

Batch DrawBatch(const std::string& text, int64_t context, int64_t batch_size, uint64_t seed,
                int64_t iteration, int part, int num_parts) {
  Batch batch;
  batch.first_sequence = part * batch_size / num_parts;
  batch.num_sequences = (part + 1) * batch_size / num_parts - batch.first_sequence;
  for (int64_t i = 0; i < batch.num_sequences; ++i) {
    const uint64_t random = Mix(Mix(seed, iteration), batch.first_sequence + i);
    const size_t begin = random % (text.size() - context);
    for (int64_t j = 0; j < context; ++j) {
      batch.tokens.push_back(text[begin + j]);
      batch.targets.push_back(text[begin + j + 1]);
    }
  }
  return batch;
}

uint64_t Mix(uint64_t seed, uint64_t value) {
  uint64_t z = seed + (value + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace ott::examples
