// Reads what one process appends to its SharedBuffer and writes the capture file: joins pushes with pops and
// starts with ends, gives names to ids, and times from the session's start.

#ifndef OTT_TOOLS_PROFILE_CAPTURE_SESSION_H_
#define OTT_TOOLS_PROFILE_CAPTURE_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "tools/profile/capture_file.h"
#include "tools/profile/records.h"
#include "tools/profile/shared_buffer.h"

namespace ott::profile {

// One moment on two clocks; all times in a file count from it.
struct SessionStart {
  uint64_t monotonic_ns;  // CLOCK_MONOTONIC
  uint64_t utc_ns;        // CLOCK_REALTIME
};

struct CaptureSummary {
  std::string path;
  std::string program;
  int pid = 0;
  int rank = -1;  // -1: none
  int64_t num_ranges = 0;
  int64_t num_marks = 0;
  int64_t num_kernels = 0;
  int64_t num_dropped = 0;    // events for which the buffer had no room
  int64_t num_truncated = 0;  // texts cut to the longest there can be
  int64_t num_lost_rows = 0;  // that could not be written
  bool has_cuda = false;      // CUPTI recorded
  std::vector<std::string> problems;
};

// Not thread-safe.
class CaptureSession {
 public:
  // command: what the user started.
  CaptureSession(std::unique_ptr<SharedBuffer> buffer, std::unique_ptr<CaptureFile> file, std::string path,
                 SessionStart start, std::string_view command);

  // Takes what is in the buffer. Returns whether there is more.
  bool Drain();

  // Makes the file hold all that was taken. Ranges that are still open are in it, without an end.
  void Flush();

  // After the process's last event. Nothing else may be called then.
  CaptureSummary Finish();

 private:
  struct OpenRange {
    uint64_t start;
    uint32_t level;
    uint8_t has, payload_type;
    EventAttributes attributes;
    std::string text;
    int64_t global_tid;
    uint32_t domain;
    int64_t event_id = 0;  // 0: not in the file yet
  };

  struct Stream {
    StreamReader reader;
    int64_t global_tid = 0;
    // The first `depth` are open; the rest keep their memory.
    struct Stack {
      std::vector<OpenRange> ranges;
      size_t depth = 0;
    };
    std::vector<Stack> stacks;  // of each domain
  };

  struct RangeEnd {
    uint64_t time;
    int64_t global_tid;
    int64_t drain = 0;  // in which it was read
  };

  struct KernelNames {
    std::string demangled;
    std::string short_name;
  };

  void WriteAbout(SessionStart start, std::string_view command);
  bool DrainStream(Stream& stream);
  void DrainNames();
  void TakeName(const NameRecord& record);
  void Take(Stream& stream, const Record& record);
  void TakeEvent(Stream& stream, const NvtxEventRecord& record);
  void Push(Stream& stream, const NvtxEventRecord& record, const EventAttributes& attributes,
            std::string_view text);
  void Pop(Stream& stream, const NvtxEventRecord& record);
  // Ranges of the stack from this level inwards, whose ends are not known.
  void LeaveOpen(Stream::Stack& stack, uint32_t level);
  void TakeStart(int64_t global_tid, const NvtxEventRecord& record, const EventAttributes& attributes,
                 std::string_view text);
  void EndRange(const OpenRange& range, NvtxEventType type, RangeEnd end);
  void WriteOpenRange(OpenRange& range, NvtxEventType type);
  void WriteNvtx(const OpenRange& range, NvtxEventType type, std::optional<RangeEnd> end, int64_t event_id);
  void WriteName(NvtxEventType type, uint64_t time, std::optional<int64_t> category, std::string_view text,
                 std::optional<int64_t> text_id, int64_t global_tid, std::optional<int64_t> domain);
  // The program's own name for a thread wins over the system's.
  void NameThread(uint32_t thread, std::string_view name, bool by_program);
  // Returns null if the record is too short for a T.
  template <typename T>
  void TakeAs(const Record& record);
  // A row whose first columns are those of the span.
  template <typename... Values>
  void InsertOnDevice(Table table, const DeviceSpan& span, const Column<Values>&... columns);
  void Take(const ApiRecord& record);
  void Take(const KernelRecord& record);
  void Take(const MemcpyRecord& record);
  void Take(const MemsetRecord& record);
  void Take(const SynchronizationRecord& record);
  void Take(const GraphNodeRecord& record);
  void WriteNewNodes();
  void Take(const DeviceRecord& record);
  void Diagnose(int64_t severity, std::string_view text);

  std::string_view TextOfString(uint32_t id);
  int64_t GlobalTid(uint32_t thread) const { return global_pid_ | (thread & 0xffffff); }
  int64_t Since(uint64_t time) const { return static_cast<int64_t>(time - start_ns_); }

  const std::unique_ptr<SharedBuffer> buffer_;
  const std::unique_ptr<CaptureFile> file_;
  const uint64_t start_ns_;
  const int64_t global_pid_;
  CaptureSummary summary_;
  StreamReader names_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::string> strings_;  // by id
  std::unordered_map<uint32_t, KernelNames> kernel_names_;
  std::unordered_map<uint64_t, OpenRange> started_;
  // Ends that were read before their starts, which were on other threads. Those that the next drain does not
  // join are of no range.
  std::unordered_map<uint64_t, RangeEnd> ended_;
  int64_t num_drains_ = 0;
  // Since the last flush: CUPTI tells of a copied node as of one that is created, and then once more.
  std::unordered_map<uint64_t, GraphNodeRecord> new_nodes_;
  std::unordered_set<uint32_t> named_threads_;
  bool is_blocked_ = false;  // by a reader of the file, at the last flush
  int64_t last_event_id_ = 0;
  uint64_t last_time_ = 0;
};

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_CAPTURE_SESSION_H_
