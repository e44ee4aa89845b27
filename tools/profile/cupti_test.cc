// Tests what CUPTI records, on its way into the file; CUPTI itself is played by cupti_for_test.cc.

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/profile/capture_for_test.h"

namespace ott::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CuptiTest : public CaptureTest {};

TEST_F(CuptiTest, AllThatCuptiRecordsIsInTheFile) {
  const ProfiledProgram program = Profile({"cuda"});
  ASSERT_THAT(program.captures, SizeIs(1));
  EXPECT_TRUE(program.captures[0].has_cuda);
  EXPECT_EQ(program.captures[0].num_kernels, 2);
  EXPECT_THAT(program.captures[0].problems, IsEmpty());
  // 5 that it says, and a kernel without times.
  EXPECT_EQ(program.captures[0].num_dropped, 6);
  for (const auto& [query, rows] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           // Kernels are joined with their launches by correlation and process.
           {"SELECT s.value, d.value, m.value, eventClass, api.value, k.end - k.start, deviceId, contextId, "
            "streamId, "
            "gridX, blockX, registersPerThread, launchType, graphNodeId FROM CUPTI_ACTIVITY_KIND_KERNEL AS k "
            "JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON r.correlationId = k.correlationId "
            "AND r.globalTid & ~0xFFFFFF = k.globalPid JOIN StringIds AS s ON s.id = shortName "
            "JOIN StringIds AS d ON d.id = demangledName JOIN StringIds AS m ON m.id = mangledName "
            "JOIN StringIds AS api ON api.id = nameId ORDER BY k.start",
            {"axpy_kern|void net::axpy_kern<float>(float*, float*, int)|_ZN3net9axpy_kernIfEEvPT_S2_i|0|"
             "cudaLaunchKernel_v7000|500|1|2|7|585|256|32|1|-",
             "triton_kernel|triton_kernel|triton_kernel|1|cuLaunchKernelEx|500|1|2|7|585|256|32|1|42"}},
           // Ranges and launches are on one clock and thread.
           {"SELECT r.globalTid = n.globalTid, r.start - n.end BETWEEN 0 AND 60e9, duration >= r.end "
            "FROM NVTX_EVENTS AS n, CUPTI_ACTIVITY_KIND_RUNTIME AS r, ANALYSIS_DETAILS "
            "WHERE n.text = 'launch' AND r.correlationId = 1",
            {"1|1|1"}},
           // Calls of the driver that give no work are left out.
           {"SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY 1", {"1", "2"}},
           {"SELECT bytes, o.label, s.label, d.label, copyCount, srcDeviceId, dstDeviceId, deviceId "
            "FROM CUPTI_ACTIVITY_KIND_MEMCPY JOIN ENUM_CUDA_MEMCPY_OPER AS o ON o.id = copyKind "
            "JOIN ENUM_CUDA_MEM_KIND AS s ON s.id = srcKind JOIN ENUM_CUDA_MEM_KIND AS d ON d.id = dstKind "
            "ORDER BY start",
            {"4096|Host-to-Device|Pageable|Device|3|-|-|1", "512|Peer-to-Peer|Unknown|Unknown|1|1|3|1"}},
           {"SELECT bytes, value, label FROM CUPTI_ACTIVITY_KIND_MEMSET "
            "JOIN ENUM_CUDA_MEM_KIND ON id = memKind",
            {"64|255|Device"}},
           {"SELECT label, deviceId, streamId, end - start "
            "FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION JOIN ENUM_CUPTI_SYNC_TYPE ON id = syncType",
            {"Stream sync|1|7|10"}},
           {"SELECT id, name, smCount, clockRate, memoryBandwidth, computeMajor, uuid FROM TARGET_INFO_GPU",
            {"1|Device for tests|132|1980000000|3350000000000|9|ab000000-0000-0000-0000-000000000000"}},
           // Nodes of graphs lead to their originals.
           {"SELECT graphNodeId, originalGraphNodeId, label FROM CUDA_GRAPH_NODE_EVENTS "
            "JOIN ENUM_NSYS_EVENT_CLASS ON id = eventClass ORDER BY 1",
            {"41|-|CUDA graph node creation", "42|41|CUDA graph node creation"}}}) {
    EXPECT_EQ(Query(options_.output, query), rows) << query;
  }
}

TEST_F(CuptiTest, KernelsBeforeAResetOfTheDeviceAreThere) {
  const ProfiledProgram program = Profile({"cuda_reset"});
  ASSERT_THAT(program.captures, SizeIs(1));
  EXPECT_EQ(program.captures[0].num_kernels, 2);
}

TEST_F(CuptiTest, WhatCuptiRefusesIsSaidOnce) {
  setenv("CUPTI_FOR_TEST_REFUSES", "1", 1);
  const ProfiledProgram program = Profile({"cuda"});
  unsetenv("CUPTI_FOR_TEST_REFUSES");
  ASSERT_THAT(program.captures, SizeIs(1));
  EXPECT_THAT(program.captures[0].problems,
              ElementsAre("CUDA is not captured: cuptiActivityEnable: an error"));
}

TEST_F(CuptiTest, ProfilersCallsOpenAndCloseTheWindow) {
  options_.capture_range = "cudaProfilerApi";
  Profile({"cuda_window"});
  EXPECT_THAT(Names(options_.output, 59), ElementsAre("within"));
  EXPECT_THAT(Query(options_.output, "SELECT name FROM sqlite_master WHERE name LIKE 'CUPTI%'"), IsEmpty());
}

TEST_F(CuptiTest, KernelsWithinTheWindowAreThere) {
  options_.capture_range = "cudaProfilerApi";
  const ProfiledProgram program = Profile({"cuda_window", "1"});
  ASSERT_THAT(program.captures, SizeIs(1));
  EXPECT_EQ(program.captures[0].num_kernels, 2);
  // The device, of which CUPTI told before the window, and the context, by which the device of a
  // synchronisation is known.
  EXPECT_THAT(Query(options_.output, "SELECT smCount FROM TARGET_INFO_GPU"), ElementsAre("132"));
  EXPECT_THAT(Query(options_.output, "SELECT deviceId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
              ElementsAre("1"));
}

TEST_F(CuptiTest, KernelsOutsideTheWindowAreNot) {
  options_.capture_range = "profiler";
  const ProfiledProgram program = Profile({"cuda"});
  ASSERT_THAT(program.captures, SizeIs(1));
  EXPECT_EQ(program.captures[0].num_kernels, 0);
}

}  // namespace
}  // namespace ott::profile
