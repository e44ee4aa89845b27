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

class CuptiTest : public CaptureTest {};

// The tests of records and of the session compare all fields of each; here is what leads from one to the
// other.
TEST_F(CuptiTest, AllThatCuptiRecordsIsInTheFile) {
  const CaptureSummary capture = Capture({"cuda"});
  EXPECT_TRUE(capture.has_cuda);
  EXPECT_EQ(capture.num_kernels, 2);
  EXPECT_THAT(capture.problems, IsEmpty());
  // 5 that it says, and a kernel without times.
  EXPECT_EQ(capture.num_dropped, 6);
  for (const auto& [query, rows] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           // Kernels are joined with their launches by correlation and process.
           {"SELECT s.value, eventClass, api.value, k.end - k.start, deviceId, graphNodeId "
            "FROM CUPTI_ACTIVITY_KIND_KERNEL AS k "
            "JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r ON r.correlationId = k.correlationId "
            "AND r.globalTid & ~0xFFFFFF = k.globalPid JOIN StringIds AS s ON s.id = shortName "
            "JOIN StringIds AS api ON api.id = nameId ORDER BY k.start",
            {"axpy_kern|0|cudaLaunchKernel_v7000|500|1|-", "triton_kernel|1|cuLaunchKernelEx|500|1|42"}},
           // Ranges and launches are on one clock and thread.
           {"SELECT r.globalTid = n.globalTid, r.start - n.end BETWEEN 0 AND 60e9, duration >= r.end "
            "FROM NVTX_EVENTS AS n, CUPTI_ACTIVITY_KIND_RUNTIME AS r, ANALYSIS_DETAILS "
            "WHERE n.text = 'launch' AND r.correlationId = 1",
            {"1|1|1"}},
           // Calls of the driver that give no work are left out.
           {"SELECT correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME ORDER BY 1", {"1", "2"}},
           {"SELECT bytes, label FROM CUPTI_ACTIVITY_KIND_MEMCPY JOIN ENUM_CUDA_MEMCPY_OPER ON id = copyKind "
            "ORDER BY start",
            {"4096|Host-to-Device", "512|Peer-to-Peer"}},
           {"SELECT bytes FROM CUPTI_ACTIVITY_KIND_MEMSET", {"64"}},
           {"SELECT label, deviceId "
            "FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION JOIN ENUM_CUPTI_SYNC_TYPE ON id = syncType",
            {"Stream sync|1"}},
           {"SELECT id, name, smCount FROM TARGET_INFO_GPU", {"1|Device for tests|132"}},
           // Nodes of graphs lead to their originals.
           {"SELECT graphNodeId, originalGraphNodeId FROM CUDA_GRAPH_NODE_EVENTS ORDER BY 1",
            {"41|-", "42|41"}}}) {
    EXPECT_EQ(Rows(query), rows) << query;
  }
}

TEST_F(CuptiTest, KernelsBeforeAResetOfTheDeviceAreThere) {
  EXPECT_EQ(Capture({"cuda_reset"}).num_kernels, 2);
}

TEST_F(CuptiTest, WhatCuptiRefusesIsSaidOnce) {
  setenv("CUPTI_FOR_TEST_REFUSES", "1", 1);
  EXPECT_THAT(Capture({"cuda"}).problems, ElementsAre("CUDA is not captured: cuptiActivityEnable: an error"));
  unsetenv("CUPTI_FOR_TEST_REFUSES");
}

TEST_F(CuptiTest, ProfilersCallsOpenAndCloseTheWindow) {
  options_.capture_range = "cudaProfilerApi";
  Profile({"cuda_window"});
  EXPECT_THAT(Ranges(), ElementsAre("within"));
  EXPECT_THAT(Rows("SELECT name FROM sqlite_master WHERE name LIKE 'CUPTI%'"), IsEmpty());
}

TEST_F(CuptiTest, KernelsWithinTheWindowAreThere) {
  options_.capture_range = "cudaProfilerApi";
  EXPECT_EQ(Capture({"cuda_window", "1"}).num_kernels, 2);
  // The device, of which CUPTI told before the window, and the context, by which the device of a
  // synchronisation is known.
  EXPECT_THAT(Rows("SELECT smCount FROM TARGET_INFO_GPU"), ElementsAre("132"));
  EXPECT_THAT(Rows("SELECT deviceId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"), ElementsAre("1"));
}

TEST_F(CuptiTest, KernelsOutsideTheWindowAreNot) {
  options_.capture_range = "profiler";
  EXPECT_EQ(Capture({"cuda"}).num_kernels, 0);
}

}  // namespace
}  // namespace ott::profile
