// Reads the scalars of TensorBoard's event files.

#ifndef OTT_QUESTIONS_LEARNING_EVENT_FILE_H_
#define OTT_QUESTIONS_LEARNING_EVENT_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "questions/learning/metric_rows.h"

namespace ott::learning {

// Returns true if a file begins as one does: with a record of a length and its checksum.
bool IsEventFile(std::string_view bytes);

// Adds the scalars of all records: length, checksum of it, event, checksum of it (TFRecord). DATA_LOSS, with
// the byte, for a record that is damaged; one that is cut off at the end is of a run that goes on. over_time:
// x is wall_time, in seconds since the run's first event, else the step.
absl::Status ReadEventFile(const std::string& path, std::string_view bytes, bool over_time, MetricRows* rows);

// Returns the CRC32C with TFRecord's mask, of a record's length or event.
uint32_t MaskedChecksum(std::string_view bytes);

}  // namespace ott::learning

#endif  // OTT_QUESTIONS_LEARNING_EVENT_FILE_H_
