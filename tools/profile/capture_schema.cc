#include "tools/profile/capture_schema.h"

namespace ott::profile {
namespace {

// In the order of Table.
constexpr TableSchema kTables[kNumTables] = {
    {"StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL", true},
    {"ThreadNames", "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER", true},
    {"PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT", true},
    {"TARGET_INFO_SESSION_START_TIME",
     "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER, "
     "sessionStartCntVctNs INTEGER",
     true},
    {"ANALYSIS_DETAILS",
     "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime "
     "INTEGER NOT NULL",
     true},
    {"META_DATA_CAPTURE", "name TEXT NOT NULL, value TEXT", true},
    {"META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT", true},
    {"DIAGNOSTIC_EVENT",
     "timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL, "
     "severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER",
     true},
    {"NVTX_EVENTS",
     "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category "
     "INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, "
     "domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value "
     "INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData "
     "TEXT, eventId INTEGER NOT NULL PRIMARY KEY",
     true},
    {"TARGET_INFO_GPU",
     "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, "
     "l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, "
     "smCount INTEGER, pwGpuId INTEGER, uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, "
     "ctxswDevPath TEXT, ctrlDevPath TEXT, revision INTEGER, nodeMask INTEGER, constantMemory "
     "INTEGER, maxIPC INTEGER, maxRegistersPerBlock INTEGER, maxShmemPerBlock INTEGER, "
     "maxShmemPerBlockOptin INTEGER, maxShmemPerSm INTEGER, maxRegistersPerSm INTEGER, "
     "threadsPerWarp INTEGER, asyncEngines INTEGER, maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, "
     "maxThreadsPerBlock INTEGER, maxBlockDimX INTEGER, maxBlockDimY INTEGER, maxBlockDimZ "
     "INTEGER, maxGridDimX INTEGER, maxGridDimY INTEGER, maxGridDimZ INTEGER, computeMajor "
     "INTEGER, computeMinor INTEGER, smMajor INTEGER, smMinor INTEGER, numaNodeId INTEGER",
     false},
    {"TARGET_INFO_CUDA_DEVICE",
     "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, numMultiprocessors "
     "INTEGER",
     false},
    {"TARGET_INFO_NVTX_CUDA_DEVICE",
     "name TEXT NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, deviceId INTEGER NOT NULL", false},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER "
     "NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
     "globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName "
     "INTEGER, launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX "
     "INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, "
     "blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, "
     "dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, "
     "localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, "
     "graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, qmdBulkReleaseDone INTEGER, "
     "qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER, clusterY "
     "INTEGER, clusterZ INTEGER, clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER, "
     "maxActiveClusters INTEGER, sharedMemoryRequestedPercentage INTEGER, "
     "tensorSizeMinusOneElements TEXT NOT NULL",
     false},
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid "
     "INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, "
     "callchainId INTEGER",
     false},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER "
     "NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
     "globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId "
     "INTEGER, srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, "
     "dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, graphNodeId INTEGER, "
     "virtualAddress INTEGER, copyCount INTEGER",
     false},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER "
     "NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
     "globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, "
     "memKind INTEGER",
     false},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER "
     "NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
     "globalPid INTEGER, deprecatedSyncType INTEGER, syncType INTEGER NOT NULL, eventId INTEGER "
     "NOT NULL, eventSyncId INTEGER",
     false},
    {"CUDA_GRAPH_NODE_EVENTS",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid "
     "INTEGER, nameId INTEGER NOT NULL, graphNodeId INTEGER NOT NULL, originalGraphNodeId INTEGER",
     false},
};

}  // namespace

const TableSchema& SchemaOf(Table table) { return kTables[static_cast<int>(table)]; }

const std::vector<EnumTable>& EnumTables() {
  static const auto* const tables = new std::vector<EnumTable>{
      {"ENUM_NSYS_EVENT_TYPE",
       {{33, "NvtxCategory", "NvtxCategory"},
        {34, "NvtxMark", "NvtxMark"},
        {39, "NvtxThread", "NvtxThread"},
        {59, "NvtxPushPopRange", "NvtxPushPopRange"},
        {60, "NvtxStartEndRange", "NvtxStartEndRange"},
        {75, "NvtxDomainCreate", "NvtxDomainCreate"},
        {76, "NvtxDomainDestroy", "NvtxDomainDestroy"}}},
      {"ENUM_NSYS_EVENT_CLASS",
       {{0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"},
        {1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"},
        {77, "TRACE_PROCESS_EVENT_CUDA_GRAPH_NODE_CREATION", "CUDA graph node creation"}}},
      {"ENUM_CUDA_MEMCPY_OPER",
       {{0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"},
        {1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"},
        {2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"},
        {3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"},
        {4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"},
        {5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"},
        {6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"},
        {7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"},
        {8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"},
        {9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"},
        {10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"},
        {11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"},
        {12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"},
        {13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"}}},
      {"ENUM_CUDA_MEM_KIND",
       {{0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"},
        {1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"},
        {2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"},
        {3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"},
        {4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"},
        {5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"},
        {6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"},
        {7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"}}},
      {"ENUM_CUDA_KERNEL_LAUNCH_TYPE",
       {{0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"},
        {1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"},
        {2, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE", "Coop Single Device"},
        {3, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE", "Coop Multi Device"}}},
      {"ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG",
       {{0, "CUDA_SHARED_MEM_LIMIT_DEFAULT", "Default"}, {1, "CUDA_SHARED_MEM_LIMIT_OPTIN", "Opt in"}}},
      {"ENUM_CUDA_FUNC_CACHE_CONFIG",
       {{0, "CU_FUNC_CACHE_PREFER_NONE", "None"},
        {1, "CU_FUNC_CACHE_PREFER_SHARED", "Shared"},
        {2, "CU_FUNC_CACHE_PREFER_L1", "L1"},
        {3, "CU_FUNC_CACHE_PREFER_EQUAL", "Equal"}}},
      {"ENUM_CUPTI_SYNC_TYPE",
       {{0, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN", "Unknown"},
        {1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"},
        {2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"},
        {3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"},
        {4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"}}},
      {"ENUM_DIAGNOSTIC_SEVERITY_LEVEL",
       {{0, "UnknownLevel", "Unknown"},
        {1, "Info", "Info"},
        {2, "Warning", "Warning"},
        {3, "Error", "Error"},
        {4, "Verbose", "Verbose"}}},
      {"ENUM_DIAGNOSTIC_SOURCE_TYPE",
       {{0, "UnknownSource", "Unknown source"},
        {1, "Injection", "Injection"},
        {2, "Daemon", "Daemon"},
        {3, "Analysis", "Analysis"}}},
      {"ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE",
       {{0, "UnknownTimestamp", "Unknown timestamp"},
        {1, "TargetTimestamp", "Target timestamp"},
        {2, "HostTimestamp", "Host timestamp"}}},
  };
  return *tables;
}

}  // namespace ott::profile
