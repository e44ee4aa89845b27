// A run whose tensors are in device memory and whose ranks compare them by NCCL. Ranks are processes that
// share a GPU, or have a stand-in each.

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/file.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/counted_communicator.h"
#include "ott/dist/comm/nccl_communicator.h"
#include "ott/dist/comm/ranks_gtest.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/run/training/training_run.h"
#include "ott/third_party/cuda/testing/stand_in.h"

namespace ott {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// Limits a check whose tensors are equal, whatever their size.
constexpr int64_t kMostBytesToHost = 64 * 1024;

class TrainingRunOnDevice : public ::testing::Test {
 protected:
  TrainingRunOnDevice() : dir_(std::string(std::getenv("TEST_TMPDIR")) + "/run_on_device") {
    setenv("NCCL_HOSTID", ("rank" + std::to_string(Rank())).c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_IB_DISABLE", "1", 1);
    if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(Rank());
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    device_.kind = Device::Kind::kCuda;
    device_.stream = stream_;
    config_.set_run_dir(dir_);
    config_.set_timeout_seconds(40);
    config_.mutable_cross_check()->mutable_iterations()->set_every(1);
    if (Rank() == 0) std::filesystem::remove_all(dir_);
    Meet();
  }
  ~TrainingRunOnDevice() override {
    run_.reset();
    nccl_.reset();
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
  }

  static int Rank() { return TestRanks().rank(); }
  static void Meet() { ASSERT_TRUE(TestRanks().Barrier(Deadline::After(std::chrono::seconds(20))).ok()); }
  // The bytes that came from the stand-in to the host; 0 of a real GPU.
  static int64_t BytesToHost() {
    return FindCudaStandIn() == nullptr ? 0 : CudaStandIn().Counts().bytes_to_host;
  }

  void Start() {
    auto control = TestRanks().Split(0, 0, Deadline::After(std::chrono::seconds(20))).value();
    nccl_ = CreateNcclCommunicator(std::make_shared<CountedCommunicator>(std::move(control), messages_),
                                   NcclOptions())
                .value();
    *messages_ = 0;
    run_ = TrainingRun::Start(*nccl_, config_).value();
  }

  // An iteration: all ranks have `value` in their weights, and something else as soon as these were added.
  void Train(int64_t num_bytes, int value) {
    ASSERT_EQ(cudaMemsetAsync(memory_, value, num_bytes, stream_), cudaSuccess);
    if (differs_at_ >= 0 && Rank() == TestRanks().size() - 1) {
      ASSERT_EQ(cudaMemsetAsync(static_cast<char*>(memory_) + differs_at_, value ^ 1, 1, stream_),
                cudaSuccess);
    }
    ASSERT_TRUE(TensorDumper::Get()
                    .AddTensorData("weights", TensorView(memory_, DType::kUInt8, {num_bytes}, device_))
                    .ok());
    if (has_shards_) AddShards(value);
    if (changes_) {
      ASSERT_EQ(cudaMemsetAsync(memory_, 100 + Rank(), num_bytes, stream_), cudaSuccess);
    }
    ASSERT_EQ(run_->FinishIter(), absl::OkStatus());
  }

  static int NumShards() { return TestRanks().size() / 2; }
  // The same on each two ranks, and one that no two ranks have.
  void AddShards(int value) {
    const std::vector<int> shard = {value, Rank() % NumShards()};
    const std::vector<int> batch = {value, Rank()};
    for (const auto& [name, elements] : {std::pair("shard", &shard), std::pair("batch", &batch)}) {
      ASSERT_TRUE(
          TensorDumper::Get().AddTensorData(name, TensorView(elements->data(), DType::kInt32, {2})).ok());
    }
  }

  std::vector<CrossCheckVerdict> Verdicts() const {
    std::vector<CrossCheckVerdict> verdicts;
    const std::string lines = *ReadFile(RankDirectory(dir_, Rank()) + "/cross_check.jsonl");
    for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty()))
      verdicts.push_back(ParseVerdict(std::string(line)).value());
    return verdicts;
  }

  static constexpr int64_t kBytes = 8 * kMiB;
  const std::string dir_;
  Config config_;
  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Device device_;
  int64_t differs_at_ = -1;
  bool changes_ = true;
  bool has_shards_ = false;
  // Counts messages of the communicator that handed the unique id out, since then.
  const CountedCommunicator::Count messages_ = std::make_shared<std::atomic<int64_t>>(0);
  std::unique_ptr<NcclCommunicator> nccl_;
  std::unique_ptr<TrainingRun> run_;
};

// The job's only fabric is NCCL: agreement at the start, clocks of one host, tables, dumps and checks of
// replicas, shards, distinct tensors and a reference.
TEST_F(TrainingRunOnDevice, OnceTheUniqueIdIsHandedOutNoMessageTravelsUnlessRanksDiffer) {
  has_shards_ = true;
  changes_ = false;
  const std::string more = absl::StrCat(
      "hang { after_seconds: 300 } stopwatch { print_every_n_iters: 2 } "
      "dump { iterations { every: 2 } format_for_all: FORMAT_BINARY } "
      "cross_check { sharded { paths: 'shard' along: 'shard' } distinct: 'batch' } "
      "mesh { axes { name: 'replica' size: 2 } axes { name: 'shard' size: ",
      NumShards(), " } }");
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(more, &config_)) << more;
  const auto train = [&](int64_t num_iterations) {
    for (int64_t i = 0; i < num_iterations; ++i) {
      { OTT_STOPWATCH_SCOPE("forward"); }
      Train(kMiB, static_cast<int>(run_->iteration()));
    }
  };
  Start();
  train(4);
  EXPECT_EQ(*messages_, 0);
  EXPECT_FALSE(run_->diverged());
  differs_at_ = 77;
  train(1);
  const int64_t of_a_difference = *messages_;
  EXPECT_GT(of_a_difference, 0);
  differs_at_ = -1;
  train(3);
  ASSERT_TRUE(run_->Finish().ok());
  EXPECT_EQ(*messages_, of_a_difference);
  EXPECT_TRUE(run_->diverged());
  run_.reset();
  // The same training, compared with what was dumped, but for the iteration that differed.
  CrossCheckConfig& check = *config_.mutable_cross_check();
  check.set_reference_run(dir_);
  check.clear_iterations();
  check.mutable_iterations()->add_list(0);
  check.mutable_iterations()->add_list(2);
  config_.set_run_dir(dir_ + "_again");
  if (Rank() == 0) std::filesystem::remove_all(config_.run_dir());
  Meet();
  nccl_.reset();
  Start();
  train(4);
  ASSERT_TRUE(run_->Finish().ok());
  EXPECT_EQ(*messages_, 0);
  EXPECT_FALSE(run_->diverged());
}

// Ten tensors in one piece of memory. OTT_MIB_TO_CHECK: of all of them together.
TEST_F(TrainingRunOnDevice, TenTensorsOfAnySizeBringLessThan64KiBToTheHost) {
  const char* const asked = std::getenv("OTT_MIB_TO_CHECK");
  const int64_t num_bytes = (asked == nullptr ? 40 : std::atoll(asked)) * kMiB / 10;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, num_bytes), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(memory, 7, num_bytes, stream_), cudaSuccess);
  config_.set_timeout_seconds(600);
  Start();
  const int64_t before = BytesToHost();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(TensorDumper::Get()
                    .AddTensorData("weights" + std::to_string(i),
                                   TensorView(memory, DType::kUInt8, {num_bytes}, device_))
                    .ok());
  }
  ASSERT_TRUE(run_->FinishIter().ok());
  const int64_t brought = BytesToHost() - before;
  EXPECT_LE(brought, kMostBytesToHost);
  std::printf("%lld bytes came to the host\n", static_cast<long long>(brought));
  ASSERT_TRUE(run_->Finish().ok());
  ASSERT_EQ(Verdicts().size(), 1u);
  EXPECT_EQ(Verdicts()[0].outcome(), BITWISE_EQUAL) << Verdicts()[0].reason();
  EXPECT_EQ(Verdicts()[0].num_tensors(), 10);
  run_.reset();
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
}

// NCCL's gathers bring more than all digests to rank 0's host, and to no other.
TEST_F(TrainingRunOnDevice, TablesOfAllRanksComeByNccl) {
  config_.mutable_stopwatch()->set_print_every_n_iters(2);
  Start();
  ::testing::internal::CaptureStdout();
  const int64_t before = BytesToHost();
  for (int i = 0; i < 6; ++i) {
    { OTT_STOPWATCH_SCOPE("forward"); }
    Train(kMiB, i);
  }
  ASSERT_TRUE(run_->Finish().ok());
  const std::string output = ::testing::internal::GetCapturedStdout();
  const int num_ranks = TestRanks().size();
  if (FindCudaStandIn() != nullptr) {
    const int64_t brought = BytesToHost() - before;
    constexpr int kNumTables = 4;
    if (Rank() == 0) {
      EXPECT_GE(brought, kNumTables * num_ranks * 128 * 1024);
    } else {
      EXPECT_LE(brought, 6 * 200 + kNumTables * 8);
    }
  }
  if (Rank() != 0) return;
  for (const int iterations : {2, 4, 6}) {
    EXPECT_THAT(output, testing::HasSubstr(absl::StrCat(num_ranks, " of ", num_ranks, " ranks, ", iterations,
                                                        " measured iterations")));
  }
  EXPECT_THAT(output, testing::Not(testing::HasSubstr("by messages")));
}

TEST_F(TrainingRunOnDevice, WhereTensorsDifferTheBlockConcernedComesToTheHost) {
  Start();
  const int64_t at_first = BytesToHost();
  Train(kBytes, 1);
  EXPECT_LE(BytesToHost() - at_first, 200) << "digests";
  changes_ = false;
  differs_at_ = 3 * kMiB + 12345;
  const int64_t before = BytesToHost();
  Train(kBytes, 2);
  // A block, and the digests of all blocks, some of which are asked for more than once.
  EXPECT_LE(BytesToHost() - before, 4 * 64 * 1024);
  differs_at_ = -1;
  Train(kBytes, 3);
  ASSERT_TRUE(run_->Finish().ok());
  EXPECT_TRUE(run_->diverged());
  const std::vector<CrossCheckVerdict> verdicts = Verdicts();
  ASSERT_EQ(verdicts.size(), 3u);
  EXPECT_EQ(verdicts[0].outcome(), BITWISE_EQUAL);
  EXPECT_EQ(verdicts[1].outcome(), DIFFERENT) << verdicts[1].reason();
  EXPECT_EQ(verdicts[1].tensor(), "weights");
  ASSERT_EQ(verdicts[1].differences_size(), 1);
  EXPECT_EQ(verdicts[1].differences(0).element(), 3 * kMiB + 12345);
  if (TestRanks().size() > 2) {
    EXPECT_THAT(verdicts[1].culprit_ranks(), testing::ElementsAre(TestRanks().size() - 1));
  }
  EXPECT_EQ(verdicts[2].outcome(), BITWISE_EQUAL);
}

TEST_F(TrainingRunOnDevice, WhatHasChangedSinceIsNotShownButNamed) {
  Start();
  differs_at_ = 12345;
  Train(kBytes, 1);
  ASSERT_TRUE(run_->Finish().ok());
  const CrossCheckVerdict verdict = Verdicts().at(0);
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_EQ(verdict.tensor(), "weights");
  EXPECT_EQ(verdict.differences_size(), 0);
  EXPECT_THAT(verdict.reason(), testing::HasSubstr("has changed since its digest was taken"));
}

TEST_F(TrainingRunOnDevice, ALateRankIsNamedAndTheRestGoesOnByMessages) {
  config_.set_timeout_seconds(4);
  Start();
  Train(kMiB, 0);
  const int late = TestRanks().size() - 1;
  // The others give NCCL up after one second, and this rank after two.
  if (Rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  Train(kMiB, 1);
  Meet();
  for (int i = 2; i < 5; ++i) Train(kMiB, i);
  ASSERT_TRUE(run_->Finish().ok());
  const std::vector<CrossCheckVerdict> verdicts = Verdicts();
  ASSERT_EQ(verdicts.size(), 5u);
  EXPECT_EQ(verdicts[0].outcome(), BITWISE_EQUAL);
  if (Rank() != late) {
    EXPECT_EQ(verdicts[1].outcome(), NOT_COMPARED);
    EXPECT_THAT(verdicts[1].reason(), testing::HasSubstr("nothing from rank " + std::to_string(late)));
    // The other one of two ranks may have found all equal for all that this one knows.
    EXPECT_EQ(verdicts[1].missing_ranks_size(), TestRanks().size() > 2 ? 1 : 0);
  }
  EXPECT_EQ(verdicts[4].outcome(), BITWISE_EQUAL) << verdicts[4].reason();
}

}  // namespace
}  // namespace ott
