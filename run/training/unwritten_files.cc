#include "ott/run/training/unwritten_files.h"

#include <cstdio>
#include <string>

namespace ott {

void UnwrittenFiles::Note(int rank, const absl::Status& written) {
  if (written.ok()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (count_++ > 0) return;
  std::fprintf(stderr, "ott: rank %d: %s; training goes on without it, and further files are only counted\n",
               rank, std::string(written.message()).c_str());
}

void UnwrittenFiles::NoteLost(int rank, const absl::Status& written) {
  Note(rank, written);
  const std::lock_guard<std::mutex> lock(mutex_);
  lost_.Update(written);
}

absl::Status UnwrittenFiles::Finish(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (count_ > 1) {
    std::fprintf(stderr, "ott: rank %d: %lld times a file could not be written\n", rank,
                 static_cast<long long>(count_));
  }
  return lost_;
}

}  // namespace ott
