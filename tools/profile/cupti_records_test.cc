#include "tools/profile/cupti_records.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace ott::profile {
namespace {

// Each byte is another one, and no number is negative.
template <typename Activity>
Activity Random() {
  static std::mt19937 random;
  Activity activity;
  auto* const bytes = reinterpret_cast<unsigned char*>(&activity);
  std::generate(bytes, bytes + sizeof(activity),
                [] { return static_cast<unsigned char>(1 + random() % 126); });
  return activity;
}

// Takes numbers by value: CUPTI's structures are packed, so no reference to their fields may be taken.
template <typename... Numbers>
std::vector<uint64_t> List(Numbers... numbers) {
  return {static_cast<uint64_t>(numbers)...};
}

std::vector<uint64_t> SpanOf(const DeviceSpan& of) {
  return List(of.start, of.end, of.device, of.context, of.stream, of.correlation, of.graph_node);
}
template <typename Activity>
std::vector<uint64_t> SpanOf(const Activity& of) {
  return List(of.start, of.end, of.deviceId, of.contextId, of.streamId, of.correlationId, of.graphNodeId);
}

TEST(CuptiRecords, AKernelIsWhatCuptiSays) {
  auto of = Random<CUpti_ActivityKernel10>();
  of.shmemLimitConfig = static_cast<CUpti_FuncShmemLimitConfig>(1);
  const KernelRecord r = ToRecord(of, 77);
  EXPECT_EQ(SpanOf(r.span), SpanOf(of));
  EXPECT_EQ(
      List(r.grid_id, r.local_memory_total, r.registers_per_thread, r.grid[0], r.grid[1], r.grid[2],
           r.block[0], r.block[1], r.block[2], r.cluster[0], r.cluster[1], r.cluster[2],
           r.static_shared_memory, r.dynamic_shared_memory, r.executed_shared_memory,
           r.local_memory_per_thread, r.graph, r.cluster_scheduling_policy, r.max_potential_cluster_size,
           r.max_active_clusters, r.launch_type, r.cache_config, r.shared_memory_limit, r.name),
      List(of.gridId, of.localMemoryTotal_v2, of.registersPerThread, of.gridX, of.gridY, of.gridZ, of.blockX,
           of.blockY, of.blockZ, of.clusterX, of.clusterY, of.clusterZ, of.staticSharedMemory,
           of.dynamicSharedMemory, of.sharedMemoryExecuted, of.localMemoryPerThread, of.graphId,
           of.clusterSchedulingPolicy, of.maxPotentialClusterSize, of.maxActiveClusters, of.launchType,
           of.cacheConfig.config.executed, 1, 77));
}

TEST(CuptiRecords, ACallIsOfTheRuntimeOrOfTheDriver) {
  for (const bool is_of_driver : {false, true}) {
    auto of = Random<CUpti_ActivityAPI>();
    of.kind = is_of_driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
    const ApiRecord r = ToRecord(of, 77);
    EXPECT_EQ(List(r.start, r.end, r.event_class, r.thread, r.correlation, r.name, r.return_value),
              List(of.start, of.end, is_of_driver, of.threadId, of.correlationId, 77, of.returnValue));
  }
}

TEST(CuptiRecords, CopiesAndSetsAreWhatCuptiSays) {
  const auto numbers = [](const MemcpyRecord& r) {
    return List(r.bytes, r.count, r.copy_kind, r.source_kind, r.destination_kind, r.is_peer, r.source_device,
                r.destination_device, r.source_context, r.destination_context);
  };
  const auto copy = Random<CUpti_ActivityMemcpy6>();
  for (const CuptiVersion version : {CuptiVersion::kOlder, CuptiVersion::kOfHeaders}) {
    const MemcpyRecord r = ToRecord(copy, version);
    EXPECT_EQ(SpanOf(r.span), SpanOf(copy));
    EXPECT_EQ(numbers(r), List(copy.bytes, version == CuptiVersion::kOlder ? 1 : copy.copyCount,
                               copy.copyKind, copy.srcKind, copy.dstKind, false, 0, 0, 0, 0));
  }
  const auto peers = Random<CUpti_ActivityMemcpyPtoP4>();
  EXPECT_EQ(SpanOf(ToRecord(peers).span), SpanOf(peers));
  EXPECT_EQ(numbers(ToRecord(peers)),
            List(peers.bytes, 1, peers.copyKind, peers.srcKind, peers.dstKind, true, peers.srcDeviceId,
                 peers.dstDeviceId, peers.srcContextId, peers.dstContextId));
  const auto set = Random<CUpti_ActivityMemset4>();
  const MemsetRecord r = ToRecord(set);
  EXPECT_EQ(SpanOf(r.span), SpanOf(set));
  EXPECT_EQ(List(r.bytes, r.value, r.memory_kind), List(set.bytes, set.value, set.memoryKind));
}

TEST(CuptiRecords, OlderVersionsDoNotTellWhichUseOfAnEventIsWaitedFor) {
  auto of = Random<CUpti_ActivitySynchronization2>();
  of.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  for (const CuptiVersion version : {CuptiVersion::kOlder, CuptiVersion::kOfHeaders}) {
    const SynchronizationRecord r = ToRecord(of, 77, version);
    EXPECT_EQ(SpanOf(r.span), List(of.start, of.end, 77, of.contextId, of.streamId, of.correlationId, 0));
    EXPECT_EQ(List(r.event_sync, r.event, r.type),
              List(version == CuptiVersion::kOlder ? 0 : of.cudaEventSyncId, of.cudaEventId, of.type));
  }
}

TEST(CuptiRecords, ADeviceIsWhatCuptiSaysInHertzAndBytesASecond) {
  const auto of = Random<CUpti_ActivityDevice5>();
  const DeviceRecord r = ToRecord(of);
  EXPECT_EQ(
      List(r.memory_bandwidth, r.memory_size, r.clock_rate, r.id, r.num_multiprocessors, r.compute_major,
           r.compute_minor, r.l2_cache_size, r.constant_memory_size, r.threads_per_warp, r.num_copy_engines,
           r.max_ipc, r.max_warps_per_multiprocessor, r.max_blocks_per_multiprocessor,
           r.max_shared_memory_per_multiprocessor, r.max_registers_per_multiprocessor,
           r.max_registers_per_block, r.max_shared_memory_per_block, r.max_threads_per_block, r.max_block[0],
           r.max_block[1], r.max_block[2], r.max_grid[0], r.max_grid[1], r.max_grid[2], r.uuid[15]),
      List(of.globalMemoryBandwidth * uint64_t{1000}, of.globalMemorySize, of.coreClockRate * uint64_t{1000},
           of.id, of.numMultiprocessors, of.computeCapabilityMajor, of.computeCapabilityMinor, of.l2CacheSize,
           of.constantMemorySize, of.numThreadsPerWarp, of.numMemcpyEngines, of.maxIPC,
           of.maxWarpsPerMultiprocessor, of.maxBlocksPerMultiprocessor, of.maxSharedMemoryPerMultiprocessor,
           of.maxRegistersPerMultiprocessor, of.maxRegistersPerBlock, of.maxSharedMemoryPerBlock,
           of.maxThreadsPerBlock, of.maxBlockDimX, of.maxBlockDimY, of.maxBlockDimZ, of.maxGridDimX,
           of.maxGridDimY, of.maxGridDimZ, of.uuid.bytes[15]));
}

}  // namespace
}  // namespace ott::profile
