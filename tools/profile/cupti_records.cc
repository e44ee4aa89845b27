#include "tools/profile/cupti_records.h"

#include <cstring>

namespace ott::profile {
namespace {

template <typename Activity>
DeviceSpan SpanOf(const Activity& activity) {
  return {activity.start,    activity.end,           activity.deviceId,   activity.contextId,
          activity.streamId, activity.correlationId, activity.graphNodeId};
}

}  // namespace

KernelRecord ToRecord(const CUpti_ActivityKernel10& kernel, uint32_t name) {
  KernelRecord record{};
  record.span = SpanOf(kernel);
  record.grid_id = kernel.gridId;
  record.local_memory_total = kernel.localMemoryTotal_v2;
  record.name = name;
  record.registers_per_thread = kernel.registersPerThread;
  record.grid[0] = kernel.gridX;
  record.grid[1] = kernel.gridY;
  record.grid[2] = kernel.gridZ;
  record.block[0] = kernel.blockX;
  record.block[1] = kernel.blockY;
  record.block[2] = kernel.blockZ;
  record.cluster[0] = kernel.clusterX;
  record.cluster[1] = kernel.clusterY;
  record.cluster[2] = kernel.clusterZ;
  record.static_shared_memory = static_cast<uint32_t>(kernel.staticSharedMemory);
  record.dynamic_shared_memory = static_cast<uint32_t>(kernel.dynamicSharedMemory);
  record.executed_shared_memory = kernel.sharedMemoryExecuted;
  record.local_memory_per_thread = kernel.localMemoryPerThread;
  record.graph = kernel.graphId;
  record.cluster_scheduling_policy = kernel.clusterSchedulingPolicy;
  record.max_potential_cluster_size = kernel.maxPotentialClusterSize;
  record.max_active_clusters = kernel.maxActiveClusters;
  record.launch_type = kernel.launchType;
  record.cache_config = kernel.cacheConfig.config.executed;
  record.shared_memory_limit = static_cast<uint8_t>(kernel.shmemLimitConfig);
  return record;
}

ApiRecord ToRecord(const CUpti_ActivityAPI& api, uint32_t name) {
  ApiRecord record{};
  record.start = api.start;
  record.end = api.end;
  record.event_class = api.kind == CUPTI_ACTIVITY_KIND_DRIVER ? 1 : 0;
  record.thread = api.threadId;
  record.correlation = api.correlationId;
  record.name = name;
  record.return_value = api.returnValue;
  return record;
}

MemcpyRecord ToRecord(const CUpti_ActivityMemcpy6& copy, CuptiVersion version) {
  MemcpyRecord record{};
  record.span = SpanOf(copy);
  record.bytes = copy.bytes;
  record.count = version == CuptiVersion::kOfHeaders ? copy.copyCount : 1;
  record.copy_kind = copy.copyKind;
  record.source_kind = copy.srcKind;
  record.destination_kind = copy.dstKind;
  return record;
}

MemcpyRecord ToRecord(const CUpti_ActivityMemcpyPtoP4& copy) {
  MemcpyRecord record{};
  record.span = SpanOf(copy);
  record.bytes = copy.bytes;
  record.count = 1;
  record.copy_kind = copy.copyKind;
  record.source_kind = copy.srcKind;
  record.destination_kind = copy.dstKind;
  record.is_peer = true;
  record.source_device = copy.srcDeviceId;
  record.source_context = copy.srcContextId;
  record.destination_device = copy.dstDeviceId;
  record.destination_context = copy.dstContextId;
  return record;
}

MemsetRecord ToRecord(const CUpti_ActivityMemset4& set) {
  MemsetRecord record{};
  record.span = SpanOf(set);
  record.bytes = set.bytes;
  record.value = set.value;
  record.memory_kind = set.memoryKind;
  return record;
}

SynchronizationRecord ToRecord(const CUpti_ActivitySynchronization2& synchronization, uint32_t device,
                               CuptiVersion version) {
  SynchronizationRecord record{};
  record.span = {synchronization.start,    synchronization.end,           device, synchronization.contextId,
                 synchronization.streamId, synchronization.correlationId, 0};
  record.event_sync = version == CuptiVersion::kOfHeaders ? synchronization.cudaEventSyncId : 0;
  record.event = synchronization.cudaEventId;
  record.type = static_cast<uint32_t>(synchronization.type);
  return record;
}

DeviceRecord ToRecord(const CUpti_ActivityDevice5& device) {
  constexpr uint64_t kKilo = 1000;
  DeviceRecord record{};
  record.memory_bandwidth = device.globalMemoryBandwidth * kKilo;
  record.memory_size = device.globalMemorySize;
  record.clock_rate = device.coreClockRate * kKilo;
  record.id = device.id;
  record.num_multiprocessors = device.numMultiprocessors;
  record.compute_major = device.computeCapabilityMajor;
  record.compute_minor = device.computeCapabilityMinor;
  record.l2_cache_size = device.l2CacheSize;
  record.constant_memory_size = device.constantMemorySize;
  record.threads_per_warp = device.numThreadsPerWarp;
  record.num_copy_engines = device.numMemcpyEngines;
  record.max_ipc = device.maxIPC;
  record.max_warps_per_multiprocessor = device.maxWarpsPerMultiprocessor;
  record.max_blocks_per_multiprocessor = device.maxBlocksPerMultiprocessor;
  record.max_shared_memory_per_multiprocessor = device.maxSharedMemoryPerMultiprocessor;
  record.max_registers_per_multiprocessor = device.maxRegistersPerMultiprocessor;
  record.max_registers_per_block = device.maxRegistersPerBlock;
  record.max_shared_memory_per_block = device.maxSharedMemoryPerBlock;
  record.max_threads_per_block = device.maxThreadsPerBlock;
  record.max_block[0] = device.maxBlockDimX;
  record.max_block[1] = device.maxBlockDimY;
  record.max_block[2] = device.maxBlockDimZ;
  record.max_grid[0] = device.maxGridDimX;
  record.max_grid[1] = device.maxGridDimY;
  record.max_grid[2] = device.maxGridDimZ;
  std::memcpy(record.uuid, device.uuid.bytes, sizeof(record.uuid));
  return record;
}

}  // namespace ott::profile
