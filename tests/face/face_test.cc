// Includes what programs of other repositories include, and uses the names that they use: a change that
// breaks this file breaks them.

#include "gtest/gtest.h"
#include "ott/checkpoint.h"
#include "ott/communicator.h"
#include "ott/compare.h"
#include "ott/compare_runs.h"
#include "ott/config.h"
#include "ott/cross_check.h"
#include "ott/dump_reader.h"
#include "ott/finite_differences.h"
#include "ott/flight_recorder.h"
#include "ott/kernel_timer_buffer.h"
#include "ott/local_communicator.h"
#include "ott/mpi_communicator.h"
#include "ott/nccl_communicator.h"
#include "ott/nvtx_range_wrapper.h"
#include "ott/op_cost.h"
#include "ott/op_log.h"
#include "ott/op_range.h"
#include "ott/profiler.h"
#include "ott/stats_gatherer.h"
#include "ott/status_macros.h"
#include "ott/stopwatch.h"
#include "ott/stopwatch_files.h"
#include "ott/stopwatch_scope.h"
#include "ott/tcp_communicator.h"
#include "ott/tensor.h"
#include "ott/tensor_dumper.h"
#include "ott/text_sink.h"
#include "ott/training_run.h"

// Compiled by nvcc alone.
#if !__has_include("ott/kernel_timer.cuh")
#error "ott/kernel_timer.cuh is gone"
#endif

namespace names_that_stay {

using ott::CompareOptions;
using ott::FormatVerdict;
using ott::ReadDump;
using ott::ToText;
using ott::TreeComparison;
using ott::Verdict;

using ott::Checkpoint;
using ott::ReadCheckpoint;
using ott::compare::CompareRuns;
using ott::compare::CompareRunsOptions;
using ott::compare::RunsComparison;

using ott::SetTextSink;

using ott::Communicator;
using ott::CreateLocalCommunicator;
using ott::CreateMpiCommunicator;
using ott::CreateNcclCommunicator;
using ott::CreateTcpCommunicator;
using ott::MpiOptions;
using ott::NcclCommunicator;
using ott::NcclOptions;
using ott::TcpOptions;
using ott::TcpOptionsFromEnvironment;

using ott::Config;
using ott::LoadConfig;
using ott::LoadConfigFromEnvironment;

using ott::DumpFormat;
using ott::DumpRange;
using ott::FiniteDifferences;
using ott::FromDLPack;
using ott::Gradient;
using ott::RaggedBatch;
using ott::Tensor;
using ott::TensorDumper;
using ott::TensorDumperOptions;
using ott::TensorView;
using ott::Value;
using ott::ValueMap;

using ott::LayerRange;
using ott::NvtxDomain;
using ott::NvtxName;
using ott::NvtxRangeWrapper;
using ott::OpLog;
using ott::OpRange;
using ott::OpRanges;
using ott::OpStash;
using ott::Perturbation;
using ott::PhaseRange;

using ott::DevicePeaks;
using ott::KernelTimerBuffer;
using ott::KernelTimerReport;
using ott::OpCost;
using ott::Profiler;
using ott::WriteTrace;

using ott::CrossCheck;
using ott::FlightOperation;
using ott::FlightRecorder;
using ott::OnMisuse;
using ott::StatsGatherer;
using ott::Stopwatch;
using ott::StopwatchName;
using ott::StopwatchScope;
using ott::StopwatchSnapshot;
using ott::TrainingRun;
using ott::WriteStopwatchFiles;
using ott::WritingStopwatchFiles;

}  // namespace names_that_stay

namespace {

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return number / 2;
}

absl::StatusOr<int> Quarter(int number) {
  OTT_ASSIGN_OR_RETURN(const int half, Half(number));
  OTT_RETURN_IF_ERROR(Half(half).status());
  return half / 2;
}

TEST(Face, MacrosWorkInNamespacesOfOthers) {
  OTT_STOPWATCH_SCOPE("step");
  OTT_NVTX_SCOPE("step");
  OTT_LAYER("layer");
  OTT_PHASE("forward");
  OTT_OP_RANGE(op, "linear", {1, 2});
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_FALSE(Quarter(6).ok());
}

}  // namespace
