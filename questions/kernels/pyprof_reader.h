// PyProf's dictionaries: what `python -m pyprof.parse` prints, a kernel a line, and `python -m pyprof.prof`
// reads.

#ifndef OTT_QUESTIONS_KERNELS_PYPROF_READER_H_
#define OTT_QUESTIONS_KERNELS_PYPROF_READER_H_

#include <istream>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ott/core/kernel_profile/profile.h"

namespace ott::kernels {

// Returns true if a line is such a dictionary, by its names: Python's or JSON's, with the name and duration
// of a kernel.
bool IsPyProfDictionary(std::string_view line);

// Reads a capture in which kernels run one after the other, since dictionaries tell durations and no times,
// each within ranges of its layers, markers and sequence numbers. Kernels of one call of an op are those
// whose subSeqId counts on. `first` is a line before `lines`. INVALID_ARGUMENT for lines of which none is a
// dictionary; others are counted in the notes.
absl::StatusOr<Profile> ReadPyProf(std::istream& lines, const std::string& path,
                                   const std::string& first = "");

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_PYPROF_READER_H_
