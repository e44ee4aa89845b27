// JSON that benchmarks write.

#ifndef OTT_QUESTIONS_FASTER_READ_JSON_H_
#define OTT_QUESTIONS_FASTER_READ_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "ott/questions/faster/read_samples.h"

namespace ott::faster {

// text: of Google Benchmark, nvbench, hyperfine, or lines of JSON; the contents of `path`, which nvbench's
// samples lie beside. No exception leaves this function.
absl::StatusOr<SideSamples> ReadJson(const std::string& path, const std::string& text, ClockKind clock);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_READ_JSON_H_
