#include "tools/profile/capture_session.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/op_cost/kernel_name.h"

namespace ott::profile {
namespace {

// The values are NVTX's (nvtxPayloadType_t).
enum PayloadType : uint8_t { kUint64 = 1, kInt64, kDouble, kUint32, kInt32, kFloat };

// The values are those of ENUM_DIAGNOSTIC_SEVERITY_LEVEL, ENUM_DIAGNOSTIC_SOURCE_TYPE and
// ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE.
constexpr int64_t kInfo = 1, kWarning = 2, kFromInjection = 1, kTargetTimestamp = 1;

// The bits of a global id above those of the process: hardware 0, virtual machine 1.
constexpr int64_t kGlobalVm = int64_t{1} << 48;

// So many rows are written before the flush is due: a disk that is full costs no more. While the file cannot
// be written, because somebody reads it, no more than the second number are kept.
constexpr int64_t kRowsOfFlush = 20'000, kMaxPendingRows = 200'000;

// Ids and levels beyond this come from a buffer that was overwritten.
constexpr uint32_t kMaxId = 1 << 24;

std::string TimeText(const tm& time) {
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &time);
  return text;
}

std::string UuidText(const uint8_t (&uuid)[16]) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

template <typename T>
std::optional<int64_t> UnlessZero(T value) {
  return value == 0 ? std::nullopt : std::optional<int64_t>(static_cast<int64_t>(value));
}

template <typename T>
T BitsOf(uint64_t payload) {
  T value;
  std::memcpy(&value, &payload, sizeof(value));
  return value;
}

// Null if the record is too short for one.
template <typename T>
const T* As(const Record& record) {
  return record.size >= sizeof(T) ? reinterpret_cast<const T*>(&record) : nullptr;
}

// From CUPTI's count (CUpti_ActivityMemoryKind, 0: unknown) to that of ENUM_CUDA_MEM_KIND (7: unknown).
int64_t MemoryKind(uint32_t cupti) { return (cupti + 7) % 8; }

}  // namespace

CaptureSession::CaptureSession(std::unique_ptr<SharedBuffer> buffer, std::unique_ptr<CaptureFile> file,
                               std::string path, SessionStart start, std::string_view command)
    : buffer_(std::move(buffer)),
      file_(std::move(file)),
      start_ns_(start.monotonic_ns),
      global_pid_(kGlobalVm | static_cast<int64_t>(buffer_->header().pid & 0xffffff) << 24),
      names_(buffer_.get(), 0) {
  const SharedBuffer::Header& header = buffer_->header();
  summary_.path = std::move(path);
  summary_.program.assign(header.program, strnlen(header.program, sizeof(header.program)));
  summary_.pid = header.pid;
  summary_.rank = header.rank;
  WriteAbout(start, command);
}

void CaptureSession::WriteAbout(SessionStart start, std::string_view command) {
  const auto seconds = static_cast<time_t>(start.utc_ns / 1'000'000'000);
  tm utc, local;
  gmtime_r(&seconds, &utc);
  localtime_r(&seconds, &local);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  file_->Insert(Table::kSessionStartTime, Column{"utcEpochNs", start.utc_ns},
                Column{"utcTime", TimeText(utc)}, Column{"localTime", TimeText(local)},
                Column{"systemClockNs", start.monotonic_ns});
  file_->Insert(Table::kProcesses, Column{"globalPid", global_pid_}, Column{"pid", summary_.pid},
                Column{"name", summary_.program});
  int major = 0, minor = 0, micro = 0;
  std::sscanf(kSchemaVersion, "%d.%d.%d", &major, &minor, &micro);
  const std::pair<const char*, std::string> of_export[] = {
      {"EXPORT_PRODUCT_NAME", "optim_test_tools"},
      {"EXPORT_SCHEMA_VERSION", kSchemaVersion},
      {"EXPORT_SCHEMA_VERSION_MAJOR", std::to_string(major)},
      {"EXPORT_SCHEMA_VERSION_MINOR", std::to_string(minor)},
      {"EXPORT_SCHEMA_VERSION_MICRO", std::to_string(micro)},
      {"EXPORT_HOST", host},
      {"EXPORT_TIME_UTC", TimeText(utc)},
  };
  for (const auto& [name, value] : of_export)
    file_->Insert(Table::kMetaDataExport, Column{"name", std::string_view(name)}, Column{"value", value});
  file_->Insert(Table::kMetaDataCapture, Column{"name", "CAPTURE_EVENT_TYPE"}, Column{"value", "NvtxEvents"});
  file_->Insert(Table::kMetaDataCapture, Column{"name", "PROCESS_0:COMMAND"}, Column{"value", command});
  file_->Insert(Table::kMetaDataCapture, Column{"name", "PROCESS_0:PID"},
                Column{"value", std::to_string(summary_.pid)});
  if (summary_.rank >= 0) {
    file_->Insert(Table::kMetaDataCapture, Column{"name", "PROCESS_0:RANK"},
                  Column{"value", std::to_string(summary_.rank)});
  }
}

bool CaptureSession::Drain() {
  DrainNames();
  const uint32_t num_streams =
      std::min(buffer_->header().num_streams.load(std::memory_order_acquire), SharedBuffer::kMaxStreams);
  for (auto i = static_cast<uint32_t>(streams_.size()) + 1; i < num_streams; ++i) {
    streams_.push_back(std::unique_ptr<Stream>(new Stream{StreamReader(buffer_.get(), i), GlobalTid(0), {}}));
  }
  bool has_more = false;
  for (const auto& stream : streams_) has_more |= DrainStream(*stream);
  if (has_more) return true;
  for (auto end = ended_.begin(); end != ended_.end();) {
    end = end->second.drain < num_drains_ ? ended_.erase(end) : std::next(end);
  }
  ++num_drains_;
  return false;
}

bool CaptureSession::DrainStream(Stream& stream) {
  // A bound, so that a busy thread does not keep the others waiting.
  for (int i = 0; i < 10'000; ++i) {
    if (file_->num_pending_rows() >= kRowsOfFlush && !is_blocked_) Flush();
    if (file_->num_pending_rows() >= kMaxPendingRows) return false;
    const Record* const record = stream.reader.Next();
    if (record == nullptr) return false;
    Take(stream, *record);
  }
  return true;
}

void CaptureSession::DrainNames() {
  while (const Record* const record = names_.Next()) {
    if (const auto* const name = As<NameRecord>(*record)) TakeName(*name);
  }
}

void CaptureSession::TakeName(const NameRecord& record) {
  const std::string_view text = TextOf(record);
  if (record.id > kMaxId && record.record.kind != RecordKind::kCategory) return;
  switch (record.record.kind) {
    case RecordKind::kDomain:
      WriteName(kNvtxDomainCreate, record.time, std::nullopt, {}, file_->StringId(text), global_pid_,
                record.id);
      break;
    case RecordKind::kDomainEnd:
      WriteName(kNvtxDomainDestroy, record.time, std::nullopt, {}, std::nullopt, global_pid_, record.id);
      break;
    case RecordKind::kString:
      if (record.id >= strings_.size()) strings_.resize(record.id + 1);
      strings_[record.id] = text;
      break;
    case RecordKind::kCategory:
      WriteName(kNvtxCategory, record.time, record.id, text, std::nullopt, global_pid_, record.owner);
      break;
    case RecordKind::kThreadName:
      WriteName(kNvtxThread, record.time, std::nullopt, text, std::nullopt, GlobalTid(record.id),
                std::nullopt);
      NameThread(record.id, text, true);
      break;
    case RecordKind::kCudaDeviceName:
      file_->Insert(Table::kNvtxCudaDevice, Column{"name", text}, Column{"hwId", 0}, Column{"vmId", 1},
                    Column{"deviceId", record.id});
      break;
    case RecordKind::kProblem:
      summary_.problems.emplace_back(text);
      Diagnose(kWarning, text);
      break;
    default:
      break;
  }
}

void CaptureSession::WriteName(NvtxEventType type, uint64_t time, std::optional<int64_t> category,
                               std::string_view text, std::optional<int64_t> text_id, int64_t global_tid,
                               std::optional<int64_t> domain) {
  const std::optional<std::string_view> explicit_text =
      text_id.has_value() || text.empty() ? std::nullopt : std::optional<std::string_view>(text);
  file_->Insert(Table::kNvtxEvents, Column{"start", Since(time)}, Column{"eventType", type},
                Column{"category", category}, Column{"text", explicit_text}, Column{"globalTid", global_tid},
                Column{"textId", text_id}, Column{"domainId", domain}, Column{"eventId", ++last_event_id_});
}

void CaptureSession::NameThread(uint32_t thread, std::string_view name, bool by_program) {
  if (named_threads_.insert(thread).second) {
    file_->Insert(Table::kThreadNames, Column{"nameId", file_->StringId(name)},
                  Column{"globalTid", GlobalTid(thread)});
  } else if (by_program) {
    file_->Update("UPDATE ThreadNames SET nameId = ? WHERE globalTid = ?", file_->StringId(name),
                  GlobalTid(thread));
  }
}

template <typename T>
void CaptureSession::TakeAs(const Record& record) {
  if (const T* const whole = As<T>(record)) Take(*whole);
}

template <typename... Values>
void CaptureSession::InsertOnDevice(Table table, const DeviceSpan& span, const Column<Values>&... columns) {
  last_time_ = std::max(last_time_, span.end);
  file_->Insert(table, Column{"start", Since(span.start)}, Column{"end", Since(span.end)},
                Column{"deviceId", span.device}, Column{"contextId", span.context},
                Column{"streamId", span.stream}, Column{"correlationId", span.correlation},
                Column{"globalPid", global_pid_}, columns...);
}

void CaptureSession::Take(Stream& stream, const Record& record) {
  switch (record.kind) {
    case RecordKind::kThread:
      if (const auto* const thread = As<NameRecord>(record)) {
        for (Stream::Stack& stack : stream.stacks) LeaveOpen(stack, 0);
        stream.global_tid = GlobalTid(thread->id);
        NameThread(thread->id, TextOf(*thread), false);
      }
      break;
    case RecordKind::kPush:
    case RecordKind::kPop:
    case RecordKind::kMark:
    case RecordKind::kRangeStart:
    case RecordKind::kRangeEnd:
      if (const auto* const event = As<NvtxEventRecord>(record)) TakeEvent(stream, *event);
      break;
    case RecordKind::kApi:
      return TakeAs<ApiRecord>(record);
    case RecordKind::kKernel:
      return TakeAs<KernelRecord>(record);
    case RecordKind::kMemcpy:
      return TakeAs<MemcpyRecord>(record);
    case RecordKind::kMemset:
      return TakeAs<MemsetRecord>(record);
    case RecordKind::kSynchronization:
      return TakeAs<SynchronizationRecord>(record);
    case RecordKind::kGraphNode:
      return TakeAs<GraphNodeRecord>(record);
    case RecordKind::kDevice:
      return TakeAs<DeviceRecord>(record);
    default:
      break;
  }
}

void CaptureSession::TakeEvent(Stream& stream, const NvtxEventRecord& record) {
  EventAttributes attributes{};
  uint32_t attributes_size = 0;
  if (record.record.has & NvtxEventRecord::kAttributes) {
    attributes_size = sizeof(EventAttributes);
    if (record.record.size < sizeof(NvtxEventRecord) + attributes_size) return;
    std::memcpy(&attributes, &record + 1, sizeof(attributes));
  }
  if (record.domain > kMaxId || record.level > kMaxId) return;
  last_time_ = std::max(last_time_, record.time);
  const std::string_view text = TextOf(record, attributes_size);
  switch (record.record.kind) {
    case RecordKind::kPush:
      Push(stream, record, attributes, text);
      break;
    case RecordKind::kPop:
      Pop(stream, record);
      break;
    case RecordKind::kMark:
      ++summary_.num_marks;
      WriteNvtx({record.time, 0, record.record.has, record.record.payload_type, attributes, std::string(text),
                 stream.global_tid, record.domain},
                kNvtxMark, std::nullopt, ++last_event_id_);
      break;
    case RecordKind::kRangeStart:
      TakeStart(stream.global_tid, record, attributes, text);
      break;
    default:
      if (const auto started = started_.find(attributes.range); started != started_.end()) {
        EndRange(started->second, kNvtxStartEndRange, {record.time, stream.global_tid});
        started_.erase(started);
      } else {
        ended_[attributes.range] = {record.time, stream.global_tid, num_drains_};
      }
  }
}

void CaptureSession::Push(Stream& stream, const NvtxEventRecord& record, const EventAttributes& attributes,
                          std::string_view text) {
  if (record.domain >= stream.stacks.size()) stream.stacks.resize(record.domain + 1);
  Stream::Stack& stack = stream.stacks[record.domain];
  // Still there only if their pops were dropped.
  LeaveOpen(stack, record.level);
  if (stack.depth == stack.ranges.size()) stack.ranges.emplace_back();
  OpenRange& range = stack.ranges[stack.depth++];
  range.start = record.time;
  range.level = record.level;
  range.has = record.record.has;
  range.payload_type = record.record.payload_type;
  range.attributes = attributes;
  range.text = text;
  range.global_tid = stream.global_tid;
  range.domain = record.domain;
  range.event_id = 0;
}

void CaptureSession::Pop(Stream& stream, const NvtxEventRecord& record) {
  if (record.domain >= stream.stacks.size()) return;
  Stream::Stack& stack = stream.stacks[record.domain];
  LeaveOpen(stack, record.level + 1);
  if (stack.depth == 0 || stack.ranges[stack.depth - 1].level != record.level) return;
  EndRange(stack.ranges[--stack.depth], kNvtxPushPopRange, {record.time, stream.global_tid});
}

void CaptureSession::LeaveOpen(Stream::Stack& stack, uint32_t level) {
  for (; stack.depth > 0 && stack.ranges[stack.depth - 1].level >= level; --stack.depth) {
    WriteOpenRange(stack.ranges[stack.depth - 1], kNvtxPushPopRange);
  }
}

void CaptureSession::TakeStart(int64_t global_tid, const NvtxEventRecord& record,
                               const EventAttributes& attributes, std::string_view text) {
  OpenRange range{record.time,       0,          record.record.has, record.record.payload_type, attributes,
                  std::string(text), global_tid, record.domain};
  if (const auto ended = ended_.find(attributes.range); ended != ended_.end()) {
    EndRange(range, kNvtxStartEndRange, ended->second);
    ended_.erase(ended);
  } else {
    started_[attributes.range] = std::move(range);
  }
}

void CaptureSession::EndRange(const OpenRange& range, NvtxEventType type, RangeEnd end) {
  if (range.event_id != 0) {
    const auto end_tid = type == kNvtxStartEndRange ? std::optional<int64_t>(end.global_tid) : std::nullopt;
    if (file_->Update("UPDATE NVTX_EVENTS SET end = ?, endGlobalTid = ? WHERE eventId = ?", Since(end.time),
                      end_tid, range.event_id) == 1) {
      return;
    }
  } else {
    ++summary_.num_ranges;
  }
  WriteNvtx(range, type, end, ++last_event_id_);
}

void CaptureSession::WriteOpenRange(OpenRange& range, NvtxEventType type) {
  if (range.event_id != 0) return;
  ++summary_.num_ranges;
  range.event_id = ++last_event_id_;
  WriteNvtx(range, type, std::nullopt, range.event_id);
}

std::string_view CaptureSession::TextOfString(uint32_t id) {
  // Its name was appended before any use, but is read from another stream.
  if (id >= strings_.size()) DrainNames();
  return id < strings_.size() ? strings_[id] : std::string_view("<unnamed>");
}

void CaptureSession::WriteNvtx(const OpenRange& range, NvtxEventType type, std::optional<RangeEnd> end,
                               int64_t event_id) {
  const auto payload = [&](PayloadType payload_type, auto value) {
    return range.payload_type == payload_type ? std::optional(value) : std::nullopt;
  };
  const EventAttributes& attributes = range.attributes;
  const bool is_start_end = type == kNvtxStartEndRange;
  file_->Insert(
      Table::kNvtxEvents, Column{"start", Since(range.start)},
      Column{"end", end.has_value() ? std::optional<int64_t>(Since(end->time)) : std::nullopt},
      Column{"eventType", type},
      Column{"rangeId", is_start_end ? std::optional<uint64_t>(attributes.range) : std::nullopt},
      Column{"category", range.has & NvtxEventRecord::kCategory ? std::optional<uint32_t>(attributes.category)
                                                                : std::nullopt},
      Column{"color",
             range.has & NvtxEventRecord::kColor ? std::optional<uint32_t>(attributes.color) : std::nullopt},
      Column{"text",
             range.has & NvtxEventRecord::kText ? std::optional<std::string_view>(range.text) : std::nullopt},
      Column{"globalTid", range.global_tid},
      Column{"endGlobalTid",
             is_start_end && end.has_value() ? std::optional<int64_t>(end->global_tid) : std::nullopt},
      Column{"textId", range.has & NvtxEventRecord::kString
                           ? std::optional<int64_t>(file_->StringId(TextOfString(attributes.string)))
                           : std::nullopt},
      Column{"domainId", range.domain}, Column{"uint64Value", payload(kUint64, attributes.payload)},
      Column{"int64Value", payload(kInt64, attributes.payload)},
      Column{"doubleValue", payload(kDouble, BitsOf<double>(attributes.payload))},
      Column{"uint32Value", payload(kUint32, BitsOf<uint32_t>(attributes.payload))},
      Column{"int32Value", payload(kInt32, BitsOf<int32_t>(attributes.payload))},
      Column{"floatValue", payload(kFloat, static_cast<double>(BitsOf<float>(attributes.payload)))},
      Column{"eventId", event_id});
}

void CaptureSession::Take(const ApiRecord& record) {
  last_time_ = std::max(last_time_, record.end);
  file_->Insert(Table::kRuntime, Column{"start", Since(record.start)}, Column{"end", Since(record.end)},
                Column{"eventClass", record.event_class}, Column{"globalTid", GlobalTid(record.thread)},
                Column{"correlationId", record.correlation},
                Column{"nameId", file_->StringId(TextOfString(record.name))},
                Column{"returnValue", record.return_value});
}

void CaptureSession::Take(const KernelRecord& record) {
  const DeviceSpan& span = record.span;
  ++summary_.num_kernels;
  const std::string mangled(TextOfString(record.name));
  const auto [names, is_new] = kernel_names_.try_emplace(record.name);
  if (is_new) {
    names->second.demangled = DemangledKernelName(mangled);
    names->second.short_name = ShortKernelName(names->second.demangled);
  }
  InsertOnDevice(
      Table::kKernel, span, Column{"demangledName", file_->StringId(names->second.demangled)},
      Column{"shortName", file_->StringId(names->second.short_name)},
      Column{"mangledName", file_->StringId(mangled)},
      Column{"launchType", record.launch_type <= 2 ? record.launch_type + 1 : 0},
      Column{"cacheConfig", record.cache_config}, Column{"registersPerThread", record.registers_per_thread},
      Column{"gridX", record.grid[0]}, Column{"gridY", record.grid[1]}, Column{"gridZ", record.grid[2]},
      Column{"blockX", record.block[0]}, Column{"blockY", record.block[1]}, Column{"blockZ", record.block[2]},
      Column{"staticSharedMemory", record.static_shared_memory},
      Column{"dynamicSharedMemory", record.dynamic_shared_memory},
      Column{"localMemoryPerThread", record.local_memory_per_thread},
      Column{"localMemoryTotal", record.local_memory_total}, Column{"gridId", record.grid_id},
      Column{"sharedMemoryExecuted", record.executed_shared_memory},
      Column{"graphNodeId", UnlessZero(span.graph_node)},
      Column{"sharedMemoryLimitConfig", record.shared_memory_limit},
      Column{"graphId", UnlessZero(record.graph)}, Column{"clusterX", record.cluster[0]},
      Column{"clusterY", record.cluster[1]}, Column{"clusterZ", record.cluster[2]},
      Column{"clusterSchedulingPolicy", record.cluster_scheduling_policy},
      Column{"maxPotentialClusterSize", record.max_potential_cluster_size},
      Column{"maxActiveClusters", record.max_active_clusters}, Column{"tensorSizeMinusOneElements", "[]"});
}

void CaptureSession::Take(const MemcpyRecord& record) {
  const DeviceSpan& span = record.span;
  const auto of_peer = [&](uint32_t value) {
    return record.is_peer ? std::optional<int64_t>(value) : std::nullopt;
  };
  InsertOnDevice(Table::kMemcpy, span, Column{"bytes", record.bytes}, Column{"copyKind", record.copy_kind},
                 Column{"srcKind", MemoryKind(record.source_kind)},
                 Column{"dstKind", MemoryKind(record.destination_kind)},
                 Column{"srcDeviceId", of_peer(record.source_device)},
                 Column{"srcContextId", of_peer(record.source_context)},
                 Column{"dstDeviceId", of_peer(record.destination_device)},
                 Column{"dstContextId", of_peer(record.destination_context)},
                 Column{"graphNodeId", UnlessZero(span.graph_node)}, Column{"copyCount", record.count});
}

void CaptureSession::Take(const MemsetRecord& record) {
  const DeviceSpan& span = record.span;
  InsertOnDevice(Table::kMemset, span, Column{"value", record.value}, Column{"bytes", record.bytes},
                 Column{"graphNodeId", UnlessZero(span.graph_node)},
                 Column{"memKind", MemoryKind(record.memory_kind)});
}

void CaptureSession::Take(const SynchronizationRecord& record) {
  const DeviceSpan& span = record.span;
  InsertOnDevice(Table::kSynchronization, span, Column{"syncType", record.type},
                 Column{"eventId", record.event}, Column{"eventSyncId", UnlessZero(record.event_sync)});
}

void CaptureSession::Take(const GraphNodeRecord& record) {
  const auto [node, is_new] = new_nodes_.emplace(record.node, record);
  if (!is_new && record.original != 0) node->second = record;
}

void CaptureSession::WriteNewNodes() {
  for (const auto& [id, record] : new_nodes_) {
    file_->Insert(
        Table::kGraphNodeEvents, Column{"start", Since(record.time)}, Column{"end", Since(record.time)},
        Column{"eventClass", kCudaGraphNodeCreation}, Column{"globalTid", GlobalTid(record.thread)},
        Column{"nameId", file_->StringId(TextOfString(record.name))}, Column{"graphNodeId", record.node},
        Column{"originalGraphNodeId", UnlessZero(record.original)});
  }
  new_nodes_.clear();
}

void CaptureSession::Take(const DeviceRecord& record) {
  const std::string uuid = UuidText(record.uuid);
  file_->Insert(
      Table::kGpu, Column{"vmId", kGlobalVm}, Column{"id", record.id}, Column{"name", TextOf(record)},
      Column{"l2CacheSize", record.l2_cache_size}, Column{"totalMemory", record.memory_size},
      Column{"memoryBandwidth", record.memory_bandwidth}, Column{"clockRate", record.clock_rate},
      Column{"smCount", record.num_multiprocessors}, Column{"uuid", uuid}, Column{"cuDevice", record.id},
      Column{"constantMemory", record.constant_memory_size}, Column{"maxIPC", record.max_ipc},
      Column{"maxRegistersPerBlock", record.max_registers_per_block},
      Column{"maxShmemPerBlock", record.max_shared_memory_per_block},
      Column{"maxShmemPerSm", record.max_shared_memory_per_multiprocessor},
      Column{"maxRegistersPerSm", record.max_registers_per_multiprocessor},
      Column{"threadsPerWarp", record.threads_per_warp}, Column{"asyncEngines", record.num_copy_engines},
      Column{"maxWarpsPerSm", record.max_warps_per_multiprocessor},
      Column{"maxBlocksPerSm", record.max_blocks_per_multiprocessor},
      Column{"maxThreadsPerBlock", record.max_threads_per_block}, Column{"maxBlockDimX", record.max_block[0]},
      Column{"maxBlockDimY", record.max_block[1]}, Column{"maxBlockDimZ", record.max_block[2]},
      Column{"maxGridDimX", record.max_grid[0]}, Column{"maxGridDimY", record.max_grid[1]},
      Column{"maxGridDimZ", record.max_grid[2]}, Column{"computeMajor", record.compute_major},
      Column{"computeMinor", record.compute_minor}, Column{"smMajor", record.compute_major},
      Column{"smMinor", record.compute_minor});
  file_->Insert(Table::kCudaDevice, Column{"gpuId", record.id}, Column{"cudaId", record.id},
                Column{"pid", summary_.pid}, Column{"uuid", uuid},
                Column{"numMultiprocessors", record.num_multiprocessors});
}

void CaptureSession::Diagnose(int64_t severity, std::string_view text) {
  file_->Insert(Table::kDiagnosticEvent, Column{"timestamp", Since(std::max(last_time_, start_ns_))},
                Column{"timestampType", kTargetTimestamp}, Column{"source", kFromInjection},
                Column{"severity", severity}, Column{"text", text}, Column{"globalPid", global_pid_});
}

void CaptureSession::Flush() {
  for (const auto& stream : streams_) {
    for (Stream::Stack& stack : stream->stacks) {
      for (size_t i = 0; i < stack.depth; ++i) WriteOpenRange(stack.ranges[i], kNvtxPushPopRange);
    }
  }
  for (auto& [id, range] : started_) WriteOpenRange(range, kNvtxStartEndRange);
  WriteNewNodes();
  const int64_t num_rows = file_->num_pending_rows();
  const absl::Status status = file_->Flush();
  is_blocked_ = absl::IsUnavailable(status);
  if (status.ok() || is_blocked_) return;
  if (summary_.num_lost_rows == 0) summary_.problems.emplace_back(status.message());
  summary_.num_lost_rows += num_rows;
}

CaptureSummary CaptureSession::Finish() {
  // A bound, in case the process runs on.
  for (int passes = 0; Drain() && passes < 10'000; ++passes) {
  }
  const SharedBuffer::Header& header = buffer_->header();
  summary_.num_dropped = static_cast<int64_t>(header.num_dropped);
  summary_.num_truncated = static_cast<int64_t>(header.num_truncated);
  summary_.has_cuda = header.has_cuda != 0;
  bool is_corrupt = names_.is_corrupt();
  for (const auto& stream : streams_) is_corrupt |= stream->reader.is_corrupt();
  if (is_corrupt) {
    summary_.problems.emplace_back(
        "the process wrote over its capture buffer; what came after that is missing");
  }
  Flush();
  if (summary_.num_lost_rows > 0) {
    Diagnose(kWarning, absl::StrCat(summary_.num_lost_rows, " rows could not be written to this file"));
  }
  if (summary_.num_dropped > 0) {
    Diagnose(kWarning, absl::StrCat(summary_.num_dropped, " events were dropped: the buffer was full"));
  }
  if (summary_.num_truncated > 0) Diagnose(kWarning, absl::StrCat(summary_.num_truncated, " texts were cut"));
  if (!summary_.has_cuda) Diagnose(kInfo, "NVTX only: no CUDA activity was recorded");
  if (summary_.has_cuda) {
    file_->Insert(Table::kMetaDataCapture, Column{"name", "CAPTURE_EVENT_TYPE"}, Column{"value", "Cuda"});
  }
  file_->Insert(Table::kAnalysisDetails, Column{"globalVid", kGlobalVm},
                Column{"duration", Since(std::max(last_time_, start_ns_))}, Column{"startTime", start_ns_},
                Column{"stopTime", std::max(last_time_, start_ns_)});
  // A reader may hold the file for a while.
  absl::Status status;
  for (int attempt = 0; attempt < 50 && absl::IsUnavailable(status = file_->Flush()); ++attempt) {
  }
  if (!status.ok()) summary_.problems.emplace_back(status.message());
  return std::move(summary_);
}

}  // namespace ott::profile
