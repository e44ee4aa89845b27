// A capture of real kernels, copies and graphs.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/profile/capture_for_test.h"
#include "tools/profile/cuda_work_for_test.h"

namespace ott::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CudaCaptureGpuTest : public CaptureTest {
 protected:
  CudaCaptureGpuTest() {
    options_.command = {"tools/profile/cuda_program_for_test"};
    const ProfiledProgram program = ProfileProgram(options_).value();
    EXPECT_EQ(program.wait_status, 0);
    EXPECT_THAT(program.captures, SizeIs(1));
    for (const CaptureSummary& capture : program.captures) {
      EXPECT_TRUE(capture.has_cuda);
      EXPECT_EQ(capture.num_dropped, 0);
      EXPECT_THAT(capture.problems, IsEmpty());
    }
  }
};

TEST_F(CudaCaptureGpuTest, EveryKernelIsLaunchedWithinTheRangeAndRunsAfterIt) {
  EXPECT_THAT(
      Rows("SELECT value, COUNT(*), MIN(r.start > n.start), MIN(r.end < n.end), MIN(k.start > r.start), "
           "MIN(k.end < n.end), gridX, blockX FROM CUPTI_ACTIVITY_KIND_KERNEL AS k "
           "JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS r USING (correlationId) JOIN NVTX_EVENTS AS n "
           "ON n.text = 'work' AND n.globalTid = r.globalTid JOIN StringIds ON id = shortName "
           "GROUP BY value"),
      ElementsAre("AddOne|" + std::to_string(kNumLaunches + 1) + "|1|1|1|1|256|256"));
}

TEST_F(CudaCaptureGpuTest, KernelOfTheGraphLeadsToTheNodeThatWasMade) {
  EXPECT_THAT(Rows("SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN CUDA_GRAPH_NODE_EVENTS AS copy "
                   "USING (graphNodeId) JOIN CUDA_GRAPH_NODE_EVENTS AS made "
                   "ON made.graphNodeId = copy.originalGraphNodeId"),
              ElementsAre("1"));
}

TEST_F(CudaCaptureGpuTest, CopiesSetsSynchronisationsAndTheDeviceAreThere) {
  EXPECT_THAT(Rows("SELECT bytes, copyKind FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind != 10"),
              ElementsAre("4|2"));
  EXPECT_THAT(Rows("SELECT bytes, value FROM CUPTI_ACTIVITY_KIND_MEMSET"), ElementsAre("262144|0"));
  EXPECT_THAT(Rows("SELECT COUNT(*) > 0 FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"), ElementsAre("1"));
  EXPECT_THAT(Rows("SELECT COUNT(*) > 0, MIN(smCount > 0 AND clockRate > 1e8) FROM TARGET_INFO_GPU"),
              ElementsAre("1|1"));
}

TEST_F(CudaCaptureGpuTest, ACopyBetweenDevicesNamesBoth) {
  EXPECT_THAT(
      Rows("SELECT COUNT(*) = ((SELECT COUNT(*) FROM TARGET_INFO_GPU) > 1), SUM(bytes != 262144) "
           "FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 10 AND srcDeviceId = 0 AND dstDeviceId = 1"),
      testing::AnyOf(ElementsAre("1|0"), ElementsAre("1|-")));
}

}  // namespace
}  // namespace ott::profile
