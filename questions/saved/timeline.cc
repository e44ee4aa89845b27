#include "ott/questions/saved/timeline.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
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
#include "rapidjson/error/en.h"
#include "rapidjson/reader.h"

namespace ott::whatif {
namespace {

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
constexpr double kMicrosecond = 1e-6;
// A larger size of a job is damage.
constexpr int kMaxParallel = 1 << 20;

std::optional<OperationType> FindType(std::string_view name) {
  const auto found = std::find(kTypeNames.begin(), kTypeNames.end(), name);
  if (found == kTypeNames.end()) return std::nullopt;
  return static_cast<OperationType>(found - kTypeNames.begin());
}

// A file, compressed or not, as rapidjson reads it.
class GzipStream {
 public:
  using Ch = char;

  static absl::StatusOr<std::unique_ptr<GzipStream>> Open(const std::string& path) {
    // Opening something else may wait for ever.
    struct stat info;
    if (stat(path.c_str(), &info) != 0) return absl::NotFoundError(absl::StrCat(path, ": no such file"));
    if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": is no file"));
    gzFile file = gzopen(path.c_str(), "rb");
    if (file == nullptr) return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be opened"));
    gzbuffer(file, 1 << 18);
    return std::unique_ptr<GzipStream>(new GzipStream(file));
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  ~GzipStream() { gzclose(file_); }

  // 0 at the end.
  char Peek() {
    if (next_ == end_) Fill();
    return next_ == end_ ? '\0' : *next_;
  }
  char Take() {
    const char taken = Peek();
    if (next_ != end_) ++next_;
    return taken;
  }
  size_t Tell() const { return before_ + static_cast<size_t>(next_ - buffer_.data()); }
  // What ended the file, if it is not its end.
  const std::string& error() const { return error_; }

  // Only for streams that are written.
  void Put(char) {}
  void Flush() {}
  char* PutBegin() { return nullptr; }
  size_t PutEnd(char*) { return 0; }

 private:
  explicit GzipStream(gzFile file) : file_(file), buffer_(size_t{1} << 18) {}

  void Fill() {
    if (at_end_) return;
    before_ += static_cast<size_t>(end_ - buffer_.data());
    const int count = gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
    next_ = buffer_.data();
    end_ = next_ + std::max(count, 0);
    if (count > 0) return;
    at_end_ = true;
    int code = Z_OK;
    const char* const message = gzerror(file_, &code);
    if (code != Z_OK) error_ = message;
  }

  gzFile file_;
  std::vector<char> buffer_;
  const char* next_ = buffer_.data();
  const char* end_ = buffer_.data();
  size_t before_ = 0;
  bool at_end_ = false;
  std::string error_;
};

// Takes events out of what rapidjson reads.
class EventHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, EventHandler> {
 public:
  struct Track {
    // Of the name's pipeline and tensor-parallel rank; -1: not named.
    int stage = -1;
    int tensor = 0;
  };

  bool Null() { return true; }
  bool Bool(bool) { return true; }
  bool Int(int value) { return Double(value); }
  bool Uint(unsigned value) { return Double(value); }
  bool Int64(int64_t value) { return Double(static_cast<double>(value)); }
  bool Uint64(uint64_t value) { return Double(static_cast<double>(value)); }
  bool Double(double value) {
    double* const field = event_depth_ == 0 ? nullptr : FindNumber();
    if (field != nullptr) *field = value;
    return true;
  }

  bool String(const char* text, rapidjson::SizeType size, bool) {
    if (event_depth_ == 0) return true;
    const std::string_view value(text, size);
    if (depth_ == event_depth_) {
      if (key_ == "ph") phase_ = size == 1 ? text[0] : ' ';
      if (key_ == "name") name_.assign(value);
      if (key_ == "cat") category_.assign(value);
    } else if (in_args_ && depth_ == event_depth_ + 1 && key_ == "name") {
      label_.assign(value);
    }
    return true;
  }

  bool Key(const char* text, rapidjson::SizeType size, bool) {
    key_.assign(text, size);
    if (depth_ == event_depth_) in_args_ = key_ == "args";
    return true;
  }

  bool StartObject() {
    ++depth_;
    if (depth_ == events_depth_ + 1 && events_depth_ > 0) {
      event_depth_ = depth_;
      phase_ = ' ';
      name_.clear();
      category_.clear();
      label_.clear();
      in_args_ = false;
      numbers_.fill(std::numeric_limits<double>::quiet_NaN());
    }
    return true;
  }

  bool EndObject(rapidjson::SizeType) {
    if (depth_-- == event_depth_) {
      event_depth_ = 0;
      EndEvent();
    }
    return true;
  }

  bool StartArray() {
    ++depth_;
    // The document itself, or what it calls its events.
    if (events_depth_ == 0 && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) {
      events_depth_ = depth_;
    }
    return true;
  }

  bool EndArray(rapidjson::SizeType) {
    if (depth_-- == events_depth_) events_depth_ = 0;
    return true;
  }

  // The file's; Timeline::Event::worker is the track.
  std::vector<Timeline::Event> events;
  std::map<std::pair<int64_t, int64_t>, int32_t> tracks;  // by process and thread
  std::map<std::pair<int64_t, int64_t>, Track> names;
  std::map<int64_t, int> replicas;  // by process
  std::map<std::string, int64_t> unknown;
  int64_t num_unusable = 0;

 private:
  enum Number { kProcess, kThread, kStart, kDuration, kStep, kChunk, kSequence, kNumNumbers };

  double* FindNumber() {
    static constexpr std::array<std::pair<std::string_view, Number>, 4> kOfEvent = {
        {{"pid", kProcess}, {"tid", kThread}, {"ts", kStart}, {"dur", kDuration}}};
    static constexpr std::array<std::pair<std::string_view, Number>, 3> kOfArgs = {
        {{"step", kStep}, {"model_chunk", kChunk}, {"seq_id", kSequence}}};
    const auto find = [this](const auto& names) -> double* {
      for (const auto& [name, number] : names) {
        if (key_ == name) return &numbers_[number];
      }
      return nullptr;
    };
    if (depth_ == event_depth_) return find(kOfEvent);
    return in_args_ && depth_ == event_depth_ + 1 ? find(kOfArgs) : nullptr;
  }

  // Whether a number can be a small integer.
  static bool IsInteger(double value) { return std::abs(value) < 1e15 && value == std::floor(value); }

  void EndEvent() {
    const double process = numbers_[kProcess];
    if (phase_ != 'X' && phase_ != 'M') return;
    if (!IsInteger(process)) {
      num_unusable += phase_ == 'X';
      return;
    }
    const std::pair<int64_t, int64_t> track = {
        static_cast<int64_t>(process),
        IsInteger(numbers_[kThread]) ? static_cast<int64_t>(numbers_[kThread]) : -1};
    if (phase_ == 'M') return EndName(track);
    const std::string& name = FindType(category_).has_value() ? category_ : name_;
    const std::optional<OperationType> type = FindType(name);
    if (!type.has_value()) {
      ++unknown[name];
      return;
    }
    const double seconds = numbers_[kDuration] * kMicrosecond;
    if (!IsInteger(numbers_[kStep]) || !IsInteger(numbers_[kSequence]) ||
        std::abs(numbers_[kSequence]) > kMaxParallel || !std::isfinite(numbers_[kStart]) ||
        !std::isfinite(seconds)) {
      ++num_unusable;
      return;
    }
    Timeline::Event& event = events.emplace_back();
    event.worker = tracks.try_emplace(track, static_cast<int32_t>(tracks.size())).first->second;
    event.type = *type;
    event.sequence = static_cast<int32_t>(numbers_[kSequence]);
    const double chunk = numbers_[kChunk];
    event.chunk = IsInteger(chunk) && std::abs(chunk) < kMaxParallel ? static_cast<int32_t>(chunk) : -1;
    event.step = static_cast<int64_t>(numbers_[kStep]);
    event.start = numbers_[kStart] * kMicrosecond;
    event.duration = seconds;
  }

  void EndName(std::pair<int64_t, int64_t> track) {
    int number = 0;
    Track named;
    if (name_ == "thread_name" &&
        std::sscanf(label_.c_str(), "PP rank %d, TP rank %d", &named.stage, &named.tensor) >= 1) {
      if (named.stage >= 0 && named.stage < kMaxParallel) names[track] = named;
    } else if (name_ == "process_name" && std::sscanf(label_.c_str(), "DP rank [%d]", &number) == 1) {
      replicas[track.first] = number;
    }
  }

  int depth_ = 0;
  // Of the array of events, and of an event; 0 outside.
  int events_depth_ = 0;
  int event_depth_ = 0;
  bool in_args_ = false;
  std::string key_;
  char phase_ = ' ';
  std::string name_;
  std::string category_;
  std::string label_;
  std::array<double, kNumNumbers> numbers_ = {};
};

absl::Status Parse(const std::string& path, EventHandler& handler) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<GzipStream> stream, GzipStream::Open(path));
  rapidjson::Reader reader;
  constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(*stream, handler);
  if (!stream->error().empty()) {
    return absl::DataLossError(absl::StrCat(path, ": cut or damaged: ", stream->error()));
  }
  if (result.IsError()) {
    return absl::DataLossError(absl::StrCat(path, ": byte ", result.Offset(),
                                            ": no JSON: ", rapidjson::GetParseError_En(result.Code())));
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

}  // namespace ott::whatif
