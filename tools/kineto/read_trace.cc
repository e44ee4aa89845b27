#include "tools/kineto/read_trace.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "simdjson.h"
#include "tools/kineto/byte_source.h"
#include "tools/kineto/trace_splitter.h"

namespace ott::kineto {
namespace {

namespace dom = simdjson::dom;

int ToInt(dom::element object, const char* name, int otherwise) {
  int64_t value;
  if (object[name].get(value) != simdjson::SUCCESS || value < 0 || value > (1 << 30)) return otherwise;
  return static_cast<int>(value);
}

std::string ToText(dom::element object, const char* name) {
  std::string_view text;
  return object[name].get(text) == simdjson::SUCCESS ? std::string(text) : "";
}

class HeaderReader {
 public:
  explicit HeaderReader(TraceHeader* header) : header_(header) {}

  void Add(const TraceSplitter::Part& part) {
    const bool is_known = part.member == "deviceProperties" || part.member == "distributedInfo";
    if (part.member == "baseTimeNanoseconds") {
      const int64_t base = ParseInteger(part.text);
      // Anything but a time since 1970 would shift this trace against others.
      if (base > 0) {
        header_->base_nanoseconds = base;
      } else {
        header_->notes.push_back("baseTimeNanoseconds is no time");
      }
    }
    if (!is_known) return;
    dom::element value;
    if (parser_.parse(part.text.data(), part.text.size(), true).get(value) != simdjson::SUCCESS) {
      header_->notes.push_back(absl::StrCat(std::string(part.member), " is no JSON"));
    } else if (part.member == "deviceProperties") {
      AddDevices(value);
    } else {
      AddRanks(value);
    }
  }

 private:
  void AddDevices(dom::element list) {
    dom::array devices;
    if (list.get(devices) != simdjson::SUCCESS) return;
    for (const dom::element from : devices) {
      TraceHeader::Device device;
      device.id = ToInt(from, "id", 0);
      device.name = ToText(from, "name");
      device.sm_count = ToInt(from, "numSms", 0);
      device.compute_major = ToInt(from, "computeMajor", 0);
      device.compute_minor = ToInt(from, "computeMinor", 0);
      header_->devices.push_back(std::move(device));
    }
  }

  void AddRanks(dom::element info) {
    header_->rank = ToInt(info, "rank", -1);
    dom::array groups;
    if (info["pg_config"].get(groups) != simdjson::SUCCESS) return;
    for (const dom::element from : groups) {
      TraceHeader::Group group;
      group.name = ToText(from, "pg_name");
      group.description = ToText(from, "pg_desc");
      dom::element ranks;
      std::string_view text;
      if (from["ranks"].get(ranks) == simdjson::SUCCESS) {
        group.ranks = ranks.get(text) == simdjson::SUCCESS ? std::string(text) : simdjson::minify(ranks);
      }
      header_->groups.push_back(std::move(group));
    }
  }

  TraceHeader* header_;
  dom::parser parser_;
};

// How often something was wrong, and where first.
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

absl::StatusOr<TraceHeader> ReadTrace(const std::string& path,
                                      const std::function<void(const Event&)>& visitor) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  TraceSplitter splitter(*source);
  TraceSplitter::Part part;
  TraceHeader header;
  HeaderReader header_reader(&header);
  EventParser parser;
  Event event;
  Trouble no_json{"events are no JSON and were left out"};
  Trouble repaired{"events have bytes that are no UTF-8, or control characters, which were replaced"};
  Trouble bad_numbers{"events have a number that is NaN, infinite or none, which was left out"};
  int64_t num_events = 0;
  int64_t one_by_one_until = 0;
  for (;;) {
    TraceSplitter::Batch batch;
    if (splitter.position() >= one_by_one_until && splitter.NextBatch(&batch)) {
      const size_t done = parser.ParseBatch(batch.begin, batch.size, TraceSplitter::kPadding,
                                            [&](const Event& of_batch, size_t offset) {
                                              ++num_events;
                                              if (of_batch.has_bad_number)
                                                bad_numbers.Add(batch.offset + static_cast<int64_t>(offset));
                                              visitor(of_batch);
                                            });
      splitter.Skip(done);
      if (done == batch.size) continue;
      one_by_one_until = batch.offset + static_cast<int64_t>(batch.size);
    }
    if (!splitter.Next(&part)) break;
    if (!part.member.empty()) {
      header_reader.Add(part);
      continue;
    }
    bool was_repaired;
    if (!parser.Parse(part.text, TraceSplitter::kPadding, &event, &was_repaired)) {
      no_json.Add(part.offset);
      continue;
    }
    ++num_events;
    if (was_repaired) repaired.Add(part.offset);
    if (event.has_bad_number) bad_numbers.Add(part.offset);
    visitor(event);
  }
  const std::string error = source->error();
  if (!splitter.began()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", error.empty() ? "" : error + "; ",
                     "is no JSON of torch.profiler: begins with neither { nor ["));
  }
  if (num_events == 0) {
    const std::string where = absl::StrCat(" (", splitter.position(), " bytes were read)");
    if (splitter.truncated() || !error.empty())
      return absl::DataLossError(absl::StrCat(path, ": ends before its first event", where));
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has no traceEvents, so it is no trace of torch.profiler", where));
  }
  if (splitter.truncated() || !error.empty()) {
    header.notes.push_back(absl::StrCat("truncated", error.empty() ? "" : " (" + error + ")", " at byte ",
                                        splitter.position(), " of the JSON; the ", num_events,
                                        " whole events before it are used"));
  }
  no_json.AddNote(&header.notes);
  repaired.AddNote(&header.notes);
  bad_numbers.AddNote(&header.notes);
  if (splitter.num_stray_bytes() > 0) {
    header.notes.push_back(absl::StrCat(splitter.num_stray_bytes(), " bytes between events are no JSON"));
  }
  if (splitter.num_too_long() > 0) {
    header.notes.push_back(absl::StrCat(splitter.num_too_long(), " parts of more than 64 MiB were left out"));
  }
  return header;
}

bool IsTorchTrace(const std::string& path) {
  constexpr int kFirstEvents = 1000;
  const auto source = ByteSource::Open(path);
  if (!source.ok()) return false;
  TraceSplitter splitter(**source);
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

}  // namespace ott::kineto
