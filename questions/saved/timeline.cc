#include "ott/questions/saved/timeline.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/chrome_trace/byte_source.h"
#include "ott/core/chrome_trace/read_events.h"
#include "ott/core/json/json_cursor.h"

namespace ott::saved {
namespace {

using chrome_trace::Event;
using chrome_trace::kNoNumber;

constexpr std::array<std::string_view, kNumOperationTypes> kTypeNames = {
    "forward-compute",
    "backward-compute",
    "forward-send",
    "forward-recv",
    "backward-send",
    "backward-recv",
    "params-all-gather",
    "grads-reduce-scatter",
    "separate-grads-all-reduce",
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    "optimizer-clip-main-grad",
    "optimizer",
    "gc",
};

// Tracks that a worker has, one for each kind of operation: its rank is their number divided by this.
constexpr int64_t kTracksPerWorker = 5;
constexpr double kNanosecond = 1e-9;
// A larger size of a job is damage.
constexpr int kMaxParallel = 1 << 20;

std::optional<OperationType> FindType(std::string_view name) {
  const auto found = std::find(kTypeNames.begin(), kTypeNames.end(), name);
  if (found == kTypeNames.end()) return std::nullopt;
  return static_cast<OperationType>(found - kTypeNames.begin());
}

// Takes operations and names out of events.
class EventHandler {
 public:
  struct Track {
    // The stage and tensor-parallel rank that the name says; -1: not named.
    int stage = -1;
    int tensor = 0;
  };

  void Add(const Event& event) {
    if (event.phase == 'M') return AddName(event);
    if (event.phase == 'X') AddOperation(event);
  }

  // The file's; Timeline::Event::worker is the track.
  std::vector<Timeline::Event> events;
  std::map<std::pair<int64_t, int64_t>, int32_t> tracks;  // by process and thread
  std::map<std::pair<int64_t, int64_t>, Track> names;
  std::map<int64_t, int> replicas;  // by process
  std::map<std::string, int64_t> unknown;
  int64_t num_unusable = 0;

 private:
  // The place that the arguments of an operation say.
  struct Place {
    std::optional<int64_t> step, chunk, sequence;
  };

  static std::optional<int64_t> Integer(const JsonScalar& scalar) {
    const bool is_number =
        scalar.kind == JsonScalar::Kind::kInteger || scalar.kind == JsonScalar::Kind::kFloat;
    const int64_t number = is_number ? chrome_trace::ParseInteger(scalar.text) : kNoNumber;
    return number == kNoNumber ? std::nullopt : std::optional<int64_t>(number);
  }

  static Place ParsePlace(std::string_view args) {
    Place place;
    JsonCursor cursor(args, JsonDialect::kPython);
    cursor.Object([&](std::string_view key) {
      std::optional<int64_t>* const number = key == "step"          ? &place.step
                                             : key == "model_chunk" ? &place.chunk
                                             : key == "seq_id"      ? &place.sequence
                                                                    : nullptr;
      const char first = cursor.Peek();
      std::string_view other;
      if (number == nullptr || first == '"' || first == '{' || first == '[') return cursor.Value(&other);
      JsonScalar scalar;
      if (!cursor.Scalar(&scalar)) return false;
      *number = Integer(scalar);
      return true;
    });
    return place;
  }

  void AddOperation(const Event& from) {
    if (from.process == kNoNumber) {
      ++num_unusable;
      return;
    }
    const std::string_view name = FindType(from.category).has_value() ? from.category : from.name;
    const std::optional<OperationType> type = FindType(name);
    if (!type.has_value()) {
      ++unknown[std::string(name)];
      return;
    }
    const Place place = ParsePlace(from.all);
    const auto is_small = [](int64_t number) { return number >= -kMaxParallel && number <= kMaxParallel; };
    if (!place.step || !place.sequence || !is_small(*place.sequence) || from.start == kNoNumber ||
        from.duration == kNoNumber) {
      ++num_unusable;
      return;
    }
    const std::pair<int64_t, int64_t> track = {from.process, from.thread == kNoNumber ? -1 : from.thread};
    Timeline::Event& event = events.emplace_back();
    event.worker = tracks.try_emplace(track, static_cast<int32_t>(tracks.size())).first->second;
    event.type = *type;
    event.sequence = static_cast<int32_t>(*place.sequence);
    event.chunk = place.chunk && is_small(*place.chunk) ? static_cast<int32_t>(*place.chunk) : -1;
    event.step = *place.step;
    event.start = static_cast<double>(from.start) * kNanosecond;
    event.duration = static_cast<double>(from.duration) * kNanosecond;
  }

  void AddName(const Event& event) {
    if (event.process == kNoNumber) return;
    const std::string label(event.metadata_name);
    int number = 0;
    Track named;
    if (event.name == "thread_name" &&
        std::sscanf(label.c_str(), "PP rank %d, TP rank %d", &named.stage, &named.tensor) >= 1) {
      if (named.stage >= 0 && named.stage < kMaxParallel) names[{event.process, event.thread}] = named;
    } else if (event.name == "process_name" && std::sscanf(label.c_str(), "DP rank [%d]", &number) == 1) {
      replicas[event.process] = number;
    }
  }
};

absl::Status Parse(const std::string& path, EventHandler& handler) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<chrome_trace::ByteSource> source,
                       chrome_trace::ByteSource::Open(path));
  const chrome_trace::Reading reading =
      chrome_trace::ReadEvents(*source, {[&](const Event& event) { handler.Add(event); }});
  if (!reading.began)
    return absl::DataLossError(absl::StrCat(path, ": no JSON: begins with neither { nor ["));
  if (!reading.cut.empty()) return absl::DataLossError(absl::StrCat(path, ": cut or damaged: ", reading.cut));
  if (reading.num_left_out > 0) {
    return absl::DataLossError(absl::StrCat(path, ": damaged: ", absl::StrJoin(reading.notes, "; ")));
  }
  return absl::OkStatus();
}

// Finds the workers, and replaces the events' tracks by them.
void FindWorkers(const EventHandler& handler, Timeline& timeline) {
  // By replica, stage and tensor-parallel rank: the rank by the number of its tracks.
  std::map<std::tuple<int, int, int>, int64_t> found;
  std::vector<std::tuple<int, int, int>> of_track(handler.tracks.size(), {-1, -1, -1});
  for (const auto& [track, index] : handler.tracks) {
    const auto name = handler.names.find(track);
    if (name == handler.names.end()) continue;
    const auto named = handler.replicas.find(track.first);
    const int64_t replica = named != handler.replicas.end() ? named->second : track.first;
    if (replica < 0 || replica >= kMaxParallel) continue;
    const std::tuple<int, int, int> worker = {static_cast<int>(replica), name->second.stage,
                                              name->second.tensor};
    of_track[index] = worker;
    const auto [known, is_new] = found.emplace(worker, track.second / kTracksPerWorker);
    if (!is_new && known->second != track.second / kTracksPerWorker) known->second = -1;
  }
  std::set<int64_t> ranks;
  for (const auto& [unused, rank] : found) ranks.insert(rank);
  const bool have_ranks = ranks.size() == found.size() && (ranks.empty() || *ranks.begin() >= 0);
  std::map<int64_t, Timeline::Worker> workers;
  for (const auto& [worker, rank] : found) {
    const int64_t number = have_ranks ? rank : static_cast<int64_t>(workers.size());
    workers[number] = {static_cast<int>(number), std::get<0>(worker), std::get<1>(worker),
                       std::get<2>(worker)};
  }
  std::map<std::tuple<int, int, int>, int32_t> index;
  for (const auto& [unused, worker] : workers) {
    index[{worker.replica, worker.stage, worker.tensor}] = static_cast<int32_t>(timeline.workers.size());
    timeline.workers.push_back(worker);
  }
  const size_t num_events = timeline.events.size();
  const auto is_unnamed = [&](Timeline::Event& event) {
    const auto known = index.find(of_track[event.worker]);
    if (known == index.end()) return true;
    event.worker = known->second;
    return false;
  };
  timeline.events.erase(std::remove_if(timeline.events.begin(), timeline.events.end(), is_unnamed),
                        timeline.events.end());
  if (timeline.events.size() < num_events) {
    timeline.notes.push_back(absl::StrCat(num_events - timeline.events.size(),
                                          " operations not used: no thread_name says whose they are"));
  }
}

// `pp_size: 4` and the like.
std::map<std::string, int> ReadSizes(const std::string& path, std::vector<std::string>& notes) {
  std::map<std::string, int> sizes;
  std::error_code error;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) file.open(path);
  if (!file.is_open()) {
    notes.push_back(absl::StrCat(path, ": cannot be read; the job's size is taken from its timeline"));
    return sizes;
  }
  constexpr int kMaxLines = 1000;
  std::string line;
  for (int i = 0; i < kMaxLines && std::getline(file, line); ++i) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 1));
    int size = 0;
    if (parts.size() == 2 && absl::SimpleAtoi(parts[1], &size) && size > 0 && size <= kMaxParallel) {
      sizes[std::string(absl::StripAsciiWhitespace(parts[0]))] = size;
    }
  }
  return sizes;
}

// dir/timeline-NAME.json.gz -> dir/meta-NAME.yaml, or empty.
std::string SizesBeside(const std::string& path) {
  const std::filesystem::path file(path);
  std::string name = file.filename().string();
  if (!absl::StartsWith(name, "timeline-")) return "";
  name = name.substr(0, name.find('.')).replace(0, 8, "meta") + ".yaml";
  std::error_code error;
  const std::filesystem::path beside = file.parent_path() / name;
  return std::filesystem::is_regular_file(beside, error) ? beside.string() : "";
}

void CheckCompleteness(const std::string& sizes_path, Timeline& timeline) {
  std::set<std::pair<int, int>> there;
  int num_replicas = 0;
  int num_stages = 0;
  for (const Timeline::Worker& worker : timeline.workers) {
    there.insert({worker.stage, worker.replica});
    num_replicas = std::max(num_replicas, worker.replica + 1);
    num_stages = std::max(num_stages, worker.stage + 1);
  }
  if (!sizes_path.empty()) {
    std::map<std::string, int> sizes = ReadSizes(sizes_path, timeline.notes);
    num_replicas = std::max(num_replicas, sizes["dp_size"]);
    num_stages = std::max(num_stages, sizes["pp_size"]);
  }
  const int64_t num_missing = int64_t{num_stages} * num_replicas - static_cast<int64_t>(there.size());
  if (num_missing == 0) return;
  timeline.incomplete = true;
  constexpr int kMaxNamed = 8;
  std::vector<std::string> missing;
  for (int stage = 0; stage < num_stages && missing.size() < kMaxNamed; ++stage) {
    for (int replica = 0; replica < num_replicas && missing.size() < kMaxNamed; ++replica) {
      if (there.count({stage, replica}) > 0) continue;
      missing.push_back(absl::StrCat("stage ", stage, " of replica ", replica));
    }
  }
  timeline.notes.push_back(absl::StrCat(
      num_missing, num_missing == 1 ? " rank is" : " ranks are", " missing: ", absl::StrJoin(missing, ", "),
      num_missing > kMaxNamed ? ", ..." : "", "; what waits for them is not known"));
}

}  // namespace

std::string_view OperationTypeName(OperationType type) { return kTypeNames[static_cast<int>(type)]; }

absl::StatusOr<Timeline> ReadTimeline(const std::string& path, const std::string& sizes) {
  EventHandler handler;
  OTT_RETURN_IF_ERROR(Parse(path, handler));
  Timeline timeline;
  timeline.events = std::move(handler.events);
  FindWorkers(handler, timeline);
  for (const auto& [name, count] : handler.unknown) {
    constexpr size_t kMaxNotes = 16;
    if (timeline.notes.size() >= kMaxNotes) break;
    timeline.notes.push_back(absl::StrCat(count, " operations not used: \"", name.substr(0, 100),
                                          "\" is no operation of a training step"));
  }
  if (handler.num_unusable > 0) {
    timeline.notes.push_back(absl::StrCat(
        handler.num_unusable, " operations not used: without pid, ts, dur, args.step or args.seq_id"));
  }
  if (timeline.events.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no operations of a training step",
                     timeline.notes.empty() ? "" : absl::StrCat(": ", timeline.notes.front())));
  }
  CheckCompleteness(sizes.empty() ? SizesBeside(path) : sizes, timeline);
  return timeline;
}

}  // namespace ott::saved
