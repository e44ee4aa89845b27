#include "ott/core/chrome_trace/read_events.h"

#include "absl/strings/str_cat.h"
#include "ott/core/chrome_trace/trace_splitter.h"

namespace ott::chrome_trace {
namespace {

// Counts how often something was wrong, and keeps where it was first.
struct Trouble {
  const char* what;
  int64_t count = 0;
  int64_t first = 0;

  void Add(int64_t offset) {
    if (count++ == 0) first = offset;
  }
  void AddNote(std::vector<std::string>* notes) const {
    if (count > 0) notes->push_back(absl::StrCat(count, " ", what, ", the first at byte ", first));
  }
};

}  // namespace

Reading ReadEvents(ByteSource& source, const Visitor& visitor) {
  TraceSplitter splitter(source);
  TraceSplitter::Part part;
  EventParser parser;
  Event event;
  Reading reading;
  Trouble no_json{"events are no JSON and were left out"};
  Trouble repaired{"events have bytes that are no UTF-8, or control characters, which were replaced"};
  Trouble bad_numbers{"events have a number that is NaN, infinite or none, which was left out"};
  int64_t one_by_one_until = 0;
  for (;;) {
    TraceSplitter::Batch batch;
    if (splitter.position() >= one_by_one_until && splitter.NextBatch(&batch)) {
      const size_t done = parser.ParseBatch(batch.begin, batch.size, TraceSplitter::kPadding,
                                            [&](const Event& of_batch, size_t offset) {
                                              ++reading.num_events;
                                              if (of_batch.has_bad_number)
                                                bad_numbers.Add(batch.offset + static_cast<int64_t>(offset));
                                              visitor.event(of_batch);
                                            });
      splitter.Skip(done);
      if (done == batch.size) continue;
      one_by_one_until = batch.offset + static_cast<int64_t>(batch.size);
    }
    if (!splitter.Next(&part)) break;
    if (!part.member.empty()) {
      visitor.member(part.member, part.text);
      continue;
    }
    bool was_repaired;
    if (!parser.Parse(part.text, TraceSplitter::kPadding, &event, &was_repaired)) {
      no_json.Add(part.offset);
      continue;
    }
    ++reading.num_events;
    if (was_repaired) repaired.Add(part.offset);
    if (event.has_bad_number) bad_numbers.Add(part.offset);
    visitor.event(event);
  }
  const std::string error = source.error();
  reading.began = splitter.began();
  reading.num_bytes = splitter.position();
  if (splitter.truncated() || !error.empty()) {
    reading.cut =
        absl::StrCat("truncated", error.empty() ? "" : " (" + error + ")", " at byte ", splitter.position(),
                     " of the JSON; the ", reading.num_events, " whole events before it are used");
  }
  no_json.AddNote(&reading.notes);
  repaired.AddNote(&reading.notes);
  bad_numbers.AddNote(&reading.notes);
  if (splitter.num_stray_bytes() > 0) {
    reading.notes.push_back(absl::StrCat(splitter.num_stray_bytes(), " bytes between events are no JSON"));
  }
  if (splitter.num_too_long() > 0) {
    reading.notes.push_back(
        absl::StrCat(splitter.num_too_long(), " parts of more than 64 MiB were left out"));
  }
  reading.num_left_out = no_json.count + splitter.num_stray_bytes() + splitter.num_too_long();
  return reading;
}

void ReadMembersBeforeEvents(
    ByteSource& source, const std::function<void(std::string_view name, std::string_view json)>& member) {
  TraceSplitter splitter(source);
  TraceSplitter::Part part;
  while (splitter.Next(&part) && !part.member.empty()) member(part.member, part.text);
}

bool IsOfTorch(ByteSource& source) {
  constexpr int kFirstEvents = 1000;
  TraceSplitter splitter(source);
  TraceSplitter::Part part;
  EventParser parser;
  Event event;
  bool repaired;
  for (int i = 0; i < kFirstEvents && splitter.Next(&part);) {
    if (part.member == "otherData") return false;  // ours
    if (!part.member.empty()) continue;
    ++i;
    if (parser.Parse(part.text, TraceSplitter::kPadding, &event, &repaired) &&
        event.kind != Event::Kind::kOther && event.kind != Event::Kind::kMetadata) {
      return true;
    }
  }
  return false;
}

}  // namespace ott::chrome_trace
