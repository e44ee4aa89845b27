// Defines what a captured process tells `ott profile`: records in the streams of a SharedBuffer.
//
// A record is one of the structures below, each of which begins with a Record, and the text that belongs to
// it. Times are nanoseconds of CLOCK_MONOTONIC, thread ids those of gettid(2).

#ifndef OTT_TOOLS_PROFILE_RECORDS_H_
#define OTT_TOOLS_PROFILE_RECORDS_H_

#include <cstdint>
#include <string_view>

namespace ott::profile {

enum class RecordKind : uint16_t {
  // Stream 0.
  kDomain = 1,      // NameRecord: id, name
  kString,          // NameRecord: id, text; a registered string, or the name of a function or kernel
  kDomainEnd,       // NameRecord: id
  kCategory,        // NameRecord: id is the category, owner the domain
  kThreadName,      // NameRecord: id is the thread
  kCudaDeviceName,  // NameRecord: id is the device
  kProblem,         // NameRecord: what could not be captured, for the user

  // A thread's stream.
  kThread,  // NameRecord: the stream is now that of thread id, which the system calls so
  kPush,
  kPop,
  kMark,
  kRangeStart,
  kRangeEnd,

  // From CUPTI, in any stream.
  kApi,
  kKernel,
  kMemcpy,
  kMemset,
  kSynchronization,
  kGraphNode,
  kDevice,
};

struct Record {
  uint32_t size;  // with the text, in bytes
  RecordKind kind;
  // Flags of an NvtxEventRecord.
  uint8_t has;           // NvtxEventRecord::Has
  uint8_t payload_type;  // nvtxPayloadType_t, 0: none
};

struct NameRecord {
  Record record;
  uint64_t time;
  uint32_t id;
  uint32_t owner;
};

// An NVTX event. Pushes and pops carry how many ranges of the domain were open on the thread before the push,
// so that they are joined rightly even where some were dropped.
struct NvtxEventRecord {
  enum Has : uint8_t { kText = 1, kAttributes = 2, kString = 4, kColor = 8, kCategory = 16 };

  Record record;
  uint64_t time;
  uint32_t domain;
  uint32_t level;
};

// After an NvtxEventRecord that has kAttributes, before its text.
struct EventAttributes {
  uint64_t payload;
  uint64_t range;  // what nvtxRangeStart returned
  uint32_t category;
  uint32_t color;
  uint32_t string;
  uint32_t padding;
};

// A call of the CUDA runtime (event_class 0) or driver (1).
struct ApiRecord {
  Record record;
  uint64_t start, end;
  uint32_t event_class;
  uint32_t thread;
  uint32_t correlation;
  uint32_t name;
  uint32_t return_value;
  uint32_t padding;
};

// The part that device records have in common.
struct DeviceSpan {
  uint64_t start, end;
  uint32_t device, context, stream, correlation;
  uint64_t graph_node;  // 0: not from a graph
};

struct KernelRecord {
  Record record;
  DeviceSpan span;
  int64_t grid_id;
  uint64_t local_memory_total;
  uint32_t name;  // mangled
  uint32_t registers_per_thread;
  int32_t grid[3];
  int32_t block[3];
  uint32_t cluster[3];
  uint32_t static_shared_memory, dynamic_shared_memory, executed_shared_memory;
  uint32_t local_memory_per_thread;
  uint32_t graph;
  uint32_t cluster_scheduling_policy, max_potential_cluster_size, max_active_clusters;
  uint8_t launch_type;  // as CUPTI counts them, from 0: regular
  uint8_t cache_config;
  uint8_t shared_memory_limit;
  uint8_t padding[5];
};

struct MemcpyRecord {
  Record record;
  DeviceSpan span;
  uint64_t bytes;
  uint64_t count;
  // The numbers are CUPTI's.
  uint8_t copy_kind, source_kind, destination_kind;
  bool is_peer;
  uint32_t source_device, destination_device, source_context, destination_context;
  uint32_t padding;
};

struct MemsetRecord {
  Record record;
  DeviceSpan span;
  uint64_t bytes;
  uint32_t value;
  uint32_t memory_kind;  // as CUPTI counts them
};

struct SynchronizationRecord {
  Record record;
  DeviceSpan span;
  uint64_t event_sync;
  uint32_t event;
  uint32_t type;
};

struct GraphNodeRecord {
  Record record;
  uint64_t time;
  uint64_t node;
  uint64_t original;  // 0: the node is no copy
  uint32_t thread;
  uint32_t name;
};

// The text is the device's name.
struct DeviceRecord {
  Record record;
  uint64_t memory_bandwidth;  // bytes a second
  uint64_t memory_size;       // bytes
  uint64_t clock_rate;        // Hz
  uint32_t id;
  uint32_t num_multiprocessors;
  uint32_t compute_major, compute_minor;
  uint32_t l2_cache_size, constant_memory_size;  // bytes
  uint32_t threads_per_warp;
  uint32_t num_copy_engines;
  uint32_t max_ipc;
  uint32_t max_warps_per_multiprocessor, max_blocks_per_multiprocessor;
  uint32_t max_shared_memory_per_multiprocessor, max_registers_per_multiprocessor;
  uint32_t max_registers_per_block, max_shared_memory_per_block, max_threads_per_block;
  uint32_t max_block[3], max_grid[3];
  uint8_t uuid[16];
};

// Returns the text behind the structure, and behind its attributes where it has some.
template <typename T>
std::string_view TextOf(const T& record, uint32_t attributes_size = 0) {
  const uint32_t head = sizeof(T) + attributes_size;
  return {reinterpret_cast<const char*>(&record) + head, record.record.size - head};
}

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_RECORDS_H_
