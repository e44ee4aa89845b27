// TraceSummary as bytes (dist/share/archive.h).

#ifndef OTT_QUESTIONS_WAITING_TRACE_ARCHIVE_H_
#define OTT_QUESTIONS_WAITING_TRACE_ARCHIVE_H_

#include <vector>

#include "ott/dist/share/archive.h"
#include "ott/questions/waiting/collectives.h"

namespace ott::waiting {

template <typename Archive>
void Fields(Archive& archive, TimeSplit& split) {
  archive(split.total, split.compute, split.communication, split.exposed_communication, split.copies,
          split.exposed_copies, split.memsets, split.busy, split.idle, split.idle_host, split.idle_collective,
          split.idle_launch, split.idle_queued, split.of_host, split.num_left_out);
}

template <typename Archive>
void Fields(Archive& archive, TraceSummary::Part& part) {
  archive(part.kind, part.sequence_number, part.step, part.start, part.end);
}

// Each collective as what it has more than the one before, which is little.
template <typename Archive>
void Fields(Archive& archive, TraceSummary& summary) {
  archive(summary.rank, summary.path, summary.first_time, summary.last_time, summary.num_steps, summary.split,
          summary.kinds);
  std::vector<TraceSummary::Part> parts = summary.collectives;
  TraceSummary::Part before = {};
  const auto more = [&](TraceSummary::Part& part, int sign) {
    const TraceSummary::Part whole = part;
    part.sequence_number += sign * before.sequence_number;
    part.step += sign * before.step;
    part.start += sign * before.start;
    part.end += sign * (sign < 0 ? whole.start : part.start);
    before = sign < 0 ? whole : part;
  };
  if (!Archive::kReads) {
    for (TraceSummary::Part& part : parts) more(part, -1);
  }
  archive(parts);
  if (Archive::kReads) {
    for (TraceSummary::Part& part : parts) more(part, 1);
    summary.collectives = std::move(parts);
  }
}

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_TRACE_ARCHIVE_H_
