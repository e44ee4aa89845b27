#include "ott/core/kineto/read_trace.h"

#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/chrome_trace/byte_source.h"
#include "ott/core/chrome_trace/read_events.h"
#include "simdjson.h"

namespace ott::kineto {
namespace {

using chrome_trace::ByteSource;

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

  void Add(std::string_view name, std::string_view json) {
    const bool is_known = name == "deviceProperties" || name == "distributedInfo";
    if (name == "baseTimeNanoseconds") {
      const int64_t base = chrome_trace::ParseInteger(json);
      // Anything but a time since 1970 would shift this trace against others.
      if (base > 0) {
        header_->base_nanoseconds = base;
      } else {
        header_->notes.push_back("baseTimeNanoseconds is no time");
      }
    }
    if (!is_known) return;
    dom::element value;
    if (parser_.parse(json.data(), json.size(), true).get(value) != simdjson::SUCCESS) {
      header_->notes.push_back(absl::StrCat(std::string(name), " is no JSON"));
    } else if (name == "deviceProperties") {
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
      group.size = ToInt(from, "pg_size", -1);
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

}  // namespace

absl::StatusOr<TraceHeader> ReadTrace(const std::string& path,
                                      const std::function<void(const Event&)>& visitor) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source, ByteSource::Open(path));
  TraceHeader header;
  HeaderReader header_reader(&header);
  chrome_trace::Reading reading = chrome_trace::ReadEvents(
      *source,
      {visitor, [&](std::string_view name, std::string_view json) { header_reader.Add(name, json); }});
  if (!reading.began) {
    const std::string error = source->error();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", error.empty() ? "" : error + "; ",
                     "is no JSON of torch.profiler: begins with neither { nor ["));
  }
  if (reading.num_events == 0) {
    const std::string where = absl::StrCat(" (", reading.num_bytes, " bytes were read)");
    if (!reading.cut.empty())
      return absl::DataLossError(absl::StrCat(path, ": ends before its first event", where));
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has no traceEvents, so it is no trace of torch.profiler", where));
  }
  if (!reading.cut.empty()) header.notes.push_back(std::move(reading.cut));
  for (std::string& note : reading.notes) header.notes.push_back(std::move(note));
  return header;
}

bool IsTorchTrace(const std::string& path) {
  const auto source = ByteSource::Open(path);
  return source.ok() && chrome_trace::IsOfTorch(**source);
}

}  // namespace ott::kineto
