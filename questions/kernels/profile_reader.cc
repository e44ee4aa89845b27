#include "ott/questions/kernels/profile_reader.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/kernel_profile/id_index.h"
#include "ott/core/kernel_profile/label_table.h"
#include "ott/core/kernel_profile/rank_in_name.h"
#include "ott/core/kineto/kineto_profile.h"
#include "ott/core/kineto/read_trace.h"
#include "ott/questions/kernels/pyprof_reader.h"
#include "ott/questions/kernels/sqlite_table.h"

namespace ott::kernels {
namespace {

constexpr int64_t kPushPopRange = 59;
constexpr int64_t kStartEndRange = 60;
constexpr int64_t kOpen = std::numeric_limits<int64_t>::max();  // a range's end until the last time is known

// The integers of a row; remembers whether one was missing or something else.
class Integers {
 public:
  explicit Integers(const SqliteRow& row) : row_(row) {}

  int64_t Required(int column) {
    int64_t value = 0;
    if (!row_.GetInteger(column, &value)) good_ = false;
    return value;
  }
  int64_t Optional(int column, int64_t absent) {
    int64_t value = absent;
    if (!row_.GetInteger(column, &value) && row_.type(column) != SqliteRow::Type::kNull) good_ = false;
    return value;
  }
  bool good() const { return good_; }

 private:
  const SqliteRow& row_;
  bool good_ = true;
};

class ProfileReader {
 public:
  ProfileReader(const SqliteFile& file, const ReadProfileOptions& options) : file_(file), options_(options) {
    profile_.path = file.path();
    profile_.rank = RankInName(file.path());
  }

  absl::StatusOr<Profile> Read() {
    OTT_RETURN_IF_ERROR(FindSchema());
    OTT_RETURN_IF_ERROR(ReadStrings());
    if (nvprof_) {
      for (const char* table : {"CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", "CUPTI_ACTIVITY_KIND_KERNEL"}) {
        OTT_RETURN_IF_ERROR(ReadKernels(table));
      }
      SortByStart(&profile_.kernels);
      OTT_RETURN_IF_ERROR(ReadTransfers());
      for (const char* table : {"CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"}) {
        OTT_RETURN_IF_ERROR(ReadLaunches(table));
      }
      OTT_RETURN_IF_ERROR(ReadNvprofMarkers());
    } else {
      OTT_RETURN_IF_ERROR(ReadKernels("CUPTI_ACTIVITY_KIND_KERNEL"));
      SortByStart(&profile_.kernels);
      OTT_RETURN_IF_ERROR(ReadTransfers());
      OTT_RETURN_IF_ERROR(ReadLaunches("CUPTI_ACTIVITY_KIND_RUNTIME"));
      launch_of_ = {};  // its memory serves the ranges
      OTT_RETURN_IF_ERROR(ReadRanges());
      OTT_RETURN_IF_ERROR(ReadNames());
    }
    OTT_RETURN_IF_ERROR(ReadDevices());
    OTT_RETURN_IF_ERROR(ReadSessionStart());
    Finish();
    return std::move(profile_);
  }

 private:
  absl::Status FindSchema() {
    nvprof_ = file_.HasTable("StringTable");
    std::string version;
    OTT_RETURN_IF_ERROR(file_.Scan("META_DATA_EXPORT", {"name", "value"}, [&](const SqliteRow& row) {
      if (row.bytes(0) == "EXPORT_SCHEMA_VERSION") version = row.bytes(1);
    }));
    profile_.schema = nvprof_ ? "nvprof" : absl::StrCat("Nsight Systems ", version.empty() ? "?" : version);
    const bool known =
        nvprof_ || file_.HasColumns("NVTX_EVENTS", {"start", "end", "eventType", "globalTid"}) ||
        file_.HasColumns("CUPTI_ACTIVITY_KIND_KERNEL", {"start", "end", "correlationId"}) || !version.empty();
    if (known) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(file_.path(),
                     ": has neither kernels nor NVTX ranges of Nsight Systems' or nvprof's schema; export a "
                     ".nsys-rep with `nsys export --type sqlite`, or capture with `ott profile`"));
  }

  absl::Status ReadStrings() {
    const auto read = [&](const SqliteRow& row) {
      int64_t id;
      if (!row.GetInteger(0, &id)) return Skip("the table of strings");
      strings_.emplace(id, row.bytes(1));
    };
    return nvprof_ ? file_.Scan("StringTable", {"_id_", "value"}, read)
                   : file_.Scan("StringIds", {"id", "value"}, read);
  }

  absl::Status ReadKernels(const std::string& table) {
    kernels_tell_process_ |= file_.HasColumns(table, {"globalPid"});
    profile_.kernels.reserve(file_.RowsAtMost(table));
    profile_.launches.reserve(file_.RowsAtMost(table));
    return file_.Scan(table,
                      {"start", "end", "correlationId", "globalPid", "deviceId", "streamId", "gridX", "gridY",
                       "gridZ", "blockX", "blockY", "blockZ", nvprof_ ? "name" : "demangledName", "shortName",
                       "graphNodeId", "graphId"},
                      [&](const SqliteRow& row) { AddKernel(row, table); });
  }

  // Before the ranges are read: sorting takes half as much memory again.
  template <typename Activity>
  static void SortByStart(std::vector<Activity>* activities) {
    const auto by_start = [](const Activity& a, const Activity& b) { return a.start < b.start; };
    if (!std::is_sorted(activities->begin(), activities->end(), by_start))
      std::stable_sort(activities->begin(), activities->end(), by_start);
  }

  // The columns that kernels, copies and memsets have first. Returns correlation id and process.
  template <typename Activity>
  static std::pair<int64_t, uint64_t> ReadActivity(Integers* integers, Activity* activity) {
    activity->start = integers->Required(0);
    activity->end = integers->Required(1);
    activity->device = static_cast<int16_t>(integers->Optional(4, -1));
    activity->stream = static_cast<int32_t>(integers->Optional(5, -1));
    return {integers->Optional(2, -1), static_cast<uint64_t>(integers->Optional(3, 0))};
  }

  void AddKernel(const SqliteRow& row, const std::string& table) {
    Integers integers(row);
    Profile::Kernel kernel;
    const auto [correlation_id, global_pid] = ReadActivity(&integers, &kernel);
    std::array<int64_t, 6> sizes;
    for (int i = 0; i < 6; ++i) sizes[static_cast<size_t>(i)] = integers.Optional(6 + i, 0);
    const int64_t short_name = integers.Optional(13, -1);
    const int64_t name = integers.Optional(12, short_name);
    kernel.in_graph = integers.Optional(14, 0) != 0 || integers.Optional(15, 0) != 0;
    if (!integers.good() || kernel.end < kernel.start) return Skip(table);
    kernel.process = ProcessOf(global_pid);
    kernel.geometry = GeometryOf(sizes);
    kernel.name = KernelName(name);
    kernel.launch = LaunchOf(kernel.process, correlation_id);
    ExtendSpan(kernel.start, kernel.end);
    profile_.kernels.push_back(kernel);
  }

  uint32_t LaunchOf(uint16_t process, int64_t correlation_id) {
    if (correlation_id < 0) return kNone;
    uint32_t& launch = launch_of_.At(kernels_tell_process_ ? process : 0, correlation_id);
    if (launch == kNone) {
      launch = static_cast<uint32_t>(profile_.launches.size());
      profile_.launches.emplace_back();
    }
    return launch;
  }

  absl::Status ReadTransfers() {
    if (!options_.transfers) return absl::OkStatus();
    absl::flat_hash_map<int64_t, uint32_t> name_of;
    profile_.transfer_names = {"memset", "memcpy"};
    OTT_RETURN_IF_ERROR(file_.Scan("ENUM_CUDA_MEMCPY_OPER", {"id", "label"}, [&](const SqliteRow& row) {
      int64_t kind;
      if (!row.GetInteger(0, &kind) || row.bytes(1).empty()) return;
      name_of.emplace(kind, static_cast<uint32_t>(profile_.transfer_names.size()));
      profile_.transfer_names.push_back(absl::StrCat("memcpy ", std::string(row.bytes(1))));
    }));
    for (const char* table : {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"}) {
      const bool is_copy = file_.HasColumns(table, {"copyKind"});
      kernels_tell_process_ |= file_.HasColumns(table, {"globalPid"});
      OTT_RETURN_IF_ERROR(file_.Scan(
          table, {"start", "end", "correlationId", "globalPid", "deviceId", "streamId", "bytes", "copyKind"},
          [&](const SqliteRow& row) {
            Integers integers(row);
            Profile::Transfer transfer;
            const auto [correlation_id, global_pid] = ReadActivity(&integers, &transfer);
            transfer.bytes = integers.Optional(6, 0);
            const auto name = name_of.find(integers.Optional(7, -1));
            if (!integers.good() || transfer.end < transfer.start) return Skip(table);
            transfer.name = name != name_of.end() ? name->second : is_copy ? 1 : 0;
            transfer.process = ProcessOf(global_pid);
            transfer.launch = LaunchOf(transfer.process, correlation_id);
            ExtendSpan(transfer.start, transfer.end);
            profile_.transfers.push_back(transfer);
          }));
    }
    SortByStart(&profile_.transfers);
    return absl::OkStatus();
  }

  absl::Status ReadSessionStart() {
    return file_.Scan("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs", "systemClockNs"},
                      [&](const SqliteRow& row) {
                        int64_t begin;
                        if (row.GetInteger(0, &begin)) profile_.begin_unix_nanoseconds = begin;
                        if (row.GetInteger(1, &begin)) profile_.begin_monotonic_nanoseconds = begin;
                      });
  }

  absl::Status ReadLaunches(const std::string& table) {
    return file_.Scan(
        table, {"correlationId", "start", "end", "globalTid", "processId", "threadId"},
        [&](const SqliteRow& row) {
          Integers integers(row);
          const int64_t correlation_id = integers.Optional(0, -1);
          Profile::Launch launch;
          launch.start = integers.Required(1);
          const int64_t end = integers.Required(2);
          const int64_t global_tid = integers.Optional(3, 0);
          const int64_t pid = integers.Optional(4, 0);
          const int64_t tid = integers.Optional(5, 0);
          if (!integers.good()) return Skip(table);
          ExtendSpan(launch.start, end);
          if (correlation_id < 0) return;
          launch.nanoseconds = static_cast<uint32_t>(std::clamp<int64_t>(end - launch.start, 0, kNone));
          launch.thread = nvprof_ ? NvprofThread(pid, tid) : ThreadOf(static_cast<uint64_t>(global_tid));
          const uint16_t process = profile_.threads[launch.thread].process;
          const uint32_t index = launch_of_.Find(kernels_tell_process_ ? process : 0, correlation_id);
          if (index == kNone) return;
          Profile::Launch& known = profile_.launches[index];
          if (known.thread == kNone) known = launch;
        });
  }

  absl::Status ReadRanges() {
    return file_.Scan("NVTX_EVENTS", {"eventType", "start", "end", "globalTid", "text", "textId"},
                      [&](const SqliteRow& row) { AddRange(row); });
  }

  void AddRange(const SqliteRow& row) {
    Integers integers(row);
    const int64_t type = integers.Required(0);
    if (integers.good() && type != kPushPopRange) {
      if (type == kStartEndRange) ++num_start_end_ranges_;
      return;
    }
    Profile::Range range;
    range.start = integers.Required(1);
    range.end = integers.Optional(2, kOpen);
    const int64_t global_tid = integers.Required(3);
    const int64_t text_id = integers.Optional(5, -1);
    const SqliteRow::Type text = row.type(4);
    if (!integers.good() || range.end < range.start || text == SqliteRow::Type::kInteger ||
        text == SqliteRow::Type::kReal) {
      return Skip("NVTX_EVENTS");
    }
    if (text != SqliteRow::Type::kNull) {
      SetLabel(row.bytes(4), &range);
    } else {
      SetLabel(text_id, &range);
    }
    AddRange(ThreadOf(static_cast<uint64_t>(global_tid)), range);
  }

  void AddRange(uint32_t thread, const Profile::Range& range) {
    ExtendSpan(range.start, range.end == kOpen ? range.start : range.end);
    if (range.end == kOpen) ++num_open_ranges_;
    profile_.threads[thread].ranges.push_back(range);
    ++profile_.num_ranges;
  }

  // nvprof writes a row where a range begins and one where it ends, with one id.
  absl::Status ReadNvprofMarkers() {
    constexpr int64_t kStart = 2;
    constexpr int64_t kEnd = 4;
    struct OpenRange {
      Profile::Range range;
      uint32_t thread;
    };
    absl::flat_hash_map<int64_t, OpenRange> open;
    const std::string table = "CUPTI_ACTIVITY_KIND_MARKER";
    OTT_RETURN_IF_ERROR(
        file_.Scan(table, {"flags", "timestamp", "id", "objectId", "name"}, [&](const SqliteRow& row) {
          Integers integers(row);
          const int64_t flags = integers.Required(0);
          const int64_t time = integers.Required(1);
          const int64_t id = integers.Required(2);
          const int64_t name = integers.Optional(4, -1);
          const std::string_view object = row.bytes(3);
          int32_t pid;
          int64_t tid;
          if (!integers.good() || object.size() < sizeof(pid) + sizeof(tid)) return Skip(table);
          std::memcpy(&pid, object.data(), sizeof(pid));
          std::memcpy(&tid, object.data() + sizeof(pid), sizeof(tid));
          if ((flags & kStart) != 0) {
            OpenRange& started = open[id];
            started.thread = NvprofThread(pid, tid);
            started.range.start = time;
            started.range.end = kOpen;
            SetLabel(name, &started.range);
          } else if ((flags & kEnd) != 0) {
            const auto found = open.find(id);
            if (found == open.end() || time < found->second.range.start) return Skip(table);
            found->second.range.end = time;
            AddRange(found->second.thread, found->second.range);
            open.erase(found);
          }
        }));
    for (const auto& [id, started] : open) AddRange(started.thread, started.range);
    return absl::OkStatus();
  }

  absl::Status ReadNames() {
    OTT_RETURN_IF_ERROR(file_.Scan("ThreadNames", {"globalTid", "nameId"}, [&](const SqliteRow& row) {
      int64_t global_tid;
      int64_t name;
      if (!row.GetInteger(0, &global_tid) || !row.GetInteger(1, &name)) return;
      const auto thread = thread_of_.find(static_cast<uint64_t>(global_tid));
      if (thread != thread_of_.end()) profile_.threads[thread->second].name = Text(name);
    }));
    return file_.Scan("PROCESSES", {"globalPid", "name"}, [&](const SqliteRow& row) {
      int64_t global_pid;
      if (!row.GetInteger(0, &global_pid)) return;
      const auto process = process_of_.find(static_cast<uint64_t>(global_pid));
      if (process != process_of_.end()) profile_.processes[process->second].name = row.bytes(1);
    });
  }

  absl::Status ReadDevices() {
    OTT_RETURN_IF_ERROR(ReadDevices(
        "TARGET_INFO_GPU",
        {"id", "smCount", "clockRate", "memoryBandwidth", "computeMajor", "computeMinor", "name", "cuDevice"},
        1));
    return ReadDevices("CUPTI_ACTIVITY_KIND_DEVICE",
                       {"id", "numMultiprocessors", "coreClockRate", "globalMemoryBandwidth",
                        "computeCapabilityMajor", "computeCapabilityMinor", "name", "id"},
                       1e3);
  }

  // unit: of both rates, a second.
  absl::Status ReadDevices(const char* table, const std::vector<std::string>& columns, double unit) {
    return file_.Scan(table, columns, [&](const SqliteRow& row) {
      Integers integers(row);
      Profile::Device device;
      const int64_t id = integers.Required(0);
      device.sm_count = static_cast<int>(integers.Optional(1, 0));
      device.clock_hz = unit * static_cast<double>(integers.Optional(2, 0));
      device.memory_bytes_per_second = unit * static_cast<double>(integers.Optional(3, 0));
      device.compute_major = static_cast<int>(integers.Optional(4, 0));
      device.compute_minor = static_cast<int>(integers.Optional(5, 0));
      int64_t text;
      device.name = row.GetInteger(6, &text) ? Text(text) : row.bytes(6);
      const int64_t number = integers.Optional(7, id);  // as CUDA counts devices
      if (!integers.good()) return Skip(table);
      profile_.devices.emplace(static_cast<int>(number), std::move(device));
    });
  }

  void Finish() {
    profile_.labels = labels_.TakeLabels();
    if (num_open_ranges_ > 0) {
      for (Profile::Thread& thread : profile_.threads) {
        for (Profile::Range& range : thread.ranges) {
          if (range.end == kOpen) range.end = profile_.last_time;
        }
      }
      Note(num_open_ranges_, "ranges were open when the capture ended");
    }
    if (num_start_end_ranges_ > 0) {
      Note(num_start_end_ranges_,
           "ranges that were started and ended, not pushed and popped, enclose no kernels");
    }
    if (num_large_sequence_numbers_ > 0) {
      Note(num_large_sequence_numbers_, "ranges have a sequence number beyond 32 bits, which is left out");
    }
    for (const auto& [table, count] : skipped_) {
      Note(count, absl::StrCat("rows of ", table, " were left out: not what belongs there"));
    }
    SetRanks();
  }

  void SetRanks() {
    const int named = profile_.rank;
    std::vector<bool> has_kernels(profile_.processes.size(), false);
    for (const Profile::Kernel& kernel : profile_.kernels) has_kernels[kernel.process] = true;
    for (const Profile::Transfer& transfer : profile_.transfers) has_kernels[transfer.process] = true;
    std::vector<Profile::Process*> by_pid;
    for (size_t i = 0; i < profile_.processes.size(); ++i) {
      profile_.processes[i].rank = named;
      if (has_kernels[i]) by_pid.push_back(&profile_.processes[i]);
    }
    if (named >= 0 || by_pid.size() < 2) return;
    std::sort(by_pid.begin(), by_pid.end(),
              [](const Profile::Process* a, const Profile::Process* b) { return a->pid < b->pid; });
    for (size_t i = 0; i < by_pid.size(); ++i) by_pid[i]->rank = static_cast<int>(i);
  }

  void Note(int64_t count, const std::string& what) {
    profile_.notes.push_back(absl::StrCat(count, " ", what));
  }

  void Skip(const std::string& table) { ++skipped_[table]; }

  void ExtendSpan(int64_t start, int64_t end) {
    if (!saw_time_) profile_.first_time = start;
    saw_time_ = true;
    profile_.first_time = std::min(profile_.first_time, start);
    profile_.last_time = std::max(profile_.last_time, end);
  }

  std::string Text(int64_t id) const {
    const auto found = strings_.find(id);
    return found == strings_.end() ? std::string() : found->second;
  }

  // Ids: hardware, virtual machine, process and thread take 8, 8, 24 and 24 bits from the top.
  uint16_t ProcessOf(uint64_t global_id) {
    const uint64_t global_pid = global_id & ~uint64_t{0xffffff};
    const auto [entry, added] =
        process_of_.try_emplace(global_pid, static_cast<uint16_t>(process_of_.size()));
    if (added) profile_.processes.emplace_back().pid = static_cast<int64_t>((global_pid >> 24) & 0xffffff);
    return entry->second;
  }

  uint32_t ThreadOf(uint64_t global_tid) {
    if (global_tid == last_global_tid_ && !profile_.threads.empty()) return last_thread_;
    const auto [entry, added] =
        thread_of_.try_emplace(global_tid, static_cast<uint32_t>(profile_.threads.size()));
    if (added) {
      Profile::Thread& thread = profile_.threads.emplace_back();
      thread.tid = static_cast<int64_t>(global_tid & 0xffffff);
      thread.process = ProcessOf(global_tid);
    }
    last_global_tid_ = global_tid;
    return last_thread_ = entry->second;
  }

  // nvprof's tables tell the lower 32 bits of a thread id, or all of them.
  uint32_t NvprofThread(int64_t pid, int64_t tid) {
    const uint64_t key = (static_cast<uint64_t>(pid) << 32) | (static_cast<uint64_t>(tid) & 0xffffffff);
    const auto [entry, added] = thread_of_.try_emplace(key, static_cast<uint32_t>(profile_.threads.size()));
    if (added) {
      Profile::Thread& thread = profile_.threads.emplace_back();
      thread.tid = tid & 0xffffffff;
      thread.process = ProcessOf(0);  // kernels do not tell theirs
      profile_.processes[thread.process].pid = pid;
    }
    return entry->second;
  }

  uint32_t KernelName(int64_t id) {
    const auto [entry, added] =
        kernel_name_of_.try_emplace(id, static_cast<uint32_t>(profile_.kernel_names.size()));
    if (added) profile_.kernel_names.push_back(Text(id));
    return entry->second;
  }

  uint32_t GeometryOf(const std::array<int64_t, 6>& sizes) {
    if (sizes == last_sizes_ && !profile_.geometries.empty()) return last_geometry_;
    const auto [entry, added] =
        geometry_of_.try_emplace(sizes, static_cast<uint32_t>(profile_.geometries.size()));
    if (added) {
      profile_.geometries.push_back({{sizes[0], sizes[1], sizes[2]}, {sizes[3], sizes[4], sizes[5]}});
    }
    last_sizes_ = sizes;
    return last_geometry_ = entry->second;
  }

  void SetLabel(std::string_view text, Profile::Range* range) {
    const auto [label, sequence_number] = labels_.Find(text);
    range->label = label;
    range->sequence_number = kNone;
    if (sequence_number < kNone) {
      range->sequence_number = static_cast<uint32_t>(sequence_number);
    } else if (sequence_number != kNoSequenceNumber) {
      ++num_large_sequence_numbers_;
    }
  }

  void SetLabel(int64_t text_id, Profile::Range* range) {
    const auto [entry, added] = label_of_text_id_.try_emplace(text_id);
    if (added) SetLabel(Text(text_id), &entry->second);
    range->label = entry->second.label;
    range->sequence_number = entry->second.sequence_number;
  }

  const SqliteFile& file_;
  const ReadProfileOptions options_;
  Profile profile_;
  bool nvprof_ = false;
  bool kernels_tell_process_ = false;
  bool saw_time_ = false;
  absl::flat_hash_map<int64_t, std::string> strings_;
  absl::flat_hash_map<uint64_t, uint16_t> process_of_;
  absl::flat_hash_map<uint64_t, uint32_t> thread_of_;
  uint64_t last_global_tid_ = 0;
  uint32_t last_thread_ = 0;
  absl::flat_hash_map<int64_t, uint32_t> kernel_name_of_;
  absl::flat_hash_map<std::array<int64_t, 6>, uint32_t> geometry_of_;
  std::array<int64_t, 6> last_sizes_ = {};
  uint32_t last_geometry_ = 0;
  LabelTable labels_;
  absl::flat_hash_map<int64_t, Profile::Range> label_of_text_id_;
  IdIndex launch_of_;
  std::map<std::string, int64_t> skipped_;
  int64_t num_open_ranges_ = 0;
  int64_t num_start_end_ranges_ = 0;
  int64_t num_large_sequence_numbers_ = 0;
};

// The first line of a regular file, if it is not as long as none of PyProf's is.
std::string FirstLine(const std::string& path) {
  constexpr size_t kLongest = size_t{1} << 20;
  std::string line(kLongest, '\0');
  std::ifstream file;
  if (IsRegularFile(path)) file.open(path, std::ios::binary);
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const size_t end = line.find('\n');
  return end == std::string::npos && line.size() == kLongest ? "" : line.substr(0, end);
}

absl::StatusOr<Profile> ReadAnyProfile(const std::string& path, const ReadProfileOptions& options) {
  OTT_RETURN_IF_ERROR(CheckIsHere(path));
  if (IsPyProfDictionary(FirstLine(path))) {
    std::ifstream file(path);
    return ReadPyProf(file, path);
  }
  if (kineto::IsTorchTrace(path)) {
    OTT_ASSIGN_OR_RETURN(Profile profile, kineto::ReadKinetoProfile(path));
    if (!options.transfers) profile.transfers = {};
    return profile;
  }
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<SqliteFile> file, SqliteFile::Open(path));
  return ProfileReader(*file, options).Read();
}

}  // namespace

absl::StatusOr<Profile> ReadProfile(const std::string& path, const ReadProfileOptions& options) {
  absl::StatusOr<Profile> profile = ReadAnyProfile(path, options);
  // Reading needed memory in small pieces, which the allocator would keep.
  malloc_trim(0);
  return profile;
}

}  // namespace ott::kernels
