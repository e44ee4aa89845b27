#include "ott/core/op_log/op_log.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

class OpLogTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(dir_), std::filesystem::create_directories(dir_); }

  std::unique_ptr<OpLog> Start(OpLog::Options options = {}) {
    options.path = path_;
    auto log = OpLog::Create(options);
    EXPECT_TRUE(log.ok()) << log.status();
    ranges_.TellObserver(log->get());
    return *std::move(log);
  }

  void Finish(OpLog& log) {
    ranges_.TellObserver(nullptr);
    const absl::Status status = log.Finish();
    EXPECT_TRUE(status.ok()) << status;
  }

  LoggedOps Read() const {
    auto log = ReadOpLog(path_);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }

  OpRange::Op Op(const char* name) { return OpRange::Op(name).In(ranges_); }

  // An iteration of three operations.
  void Iterate(OpLog& log, int64_t iteration) {
    ASSERT_TRUE(log.BeginIteration(iteration).ok());
    const PhaseRange phase(ranges_, "forward");
    const LayerRange layer(ranges_, "encoder");
    for (const char* name : {"linear", "relu", "linear"}) {
      OpRange op(Op(name), Inputs(OpArg("x", x_), x_));
      x_data_[0] += 1;
      op.Outputs(OpArg("y", x_));
    }
  }

  const std::string dir_ = testing::TempDir() + "op_log_test";
  const std::string path_ = dir_ + "/op_log.bin";
  OpRanges ranges_;
  float x_data_[6] = {1, 2, 3, 4, 5, 6};
  const TensorView x_{x_data_, {2, 3}};
};

TEST_F(OpLogTest, WhatOperationsReadAndWroteIsReadBack) {
  const auto log = Start();
  ASSERT_TRUE(log->BeginIteration(7).ok());
  const Digest before = ComputeDigestAndStatistics(x_)->digest;
  {
    const LayerRange layer(ranges_, "encoder");
    const LayerRange inner(ranges_, "0");
    const PhaseRange phase(ranges_, "forward");
    OpRange op(Op("linear"), {{"x", x_}, {"bias", nullptr}, {"eps", 1e-5}}, {{"stride", {1, 1}}});
    x_data_[1] = std::nanf("");
    op.Outputs({{"y", x_}});
    op.Outputs(x_);
  }
  Finish(*log);

  const LoggedOps ops = Read();
  EXPECT_EQ(ops.cut, "");
  ASSERT_EQ(ops.iterations.size(), 1u);
  EXPECT_EQ(ops.iterations[0].number, 7);
  ASSERT_EQ(ops.ops.size(), 1u);
  const LoggedOp& op = ops.ops[0];
  const OpDefinition& definition = op.definition();
  EXPECT_EQ(definition.name, "linear");
  EXPECT_EQ(definition.module, "encoder.0");
  EXPECT_EQ(definition.phase, "forward");
  EXPECT_THAT(definition.source, HasSubstr("op_log_test.cc:"));
  EXPECT_EQ(op.arguments(), "eps=1.0000000000000001e-05, stride=[1, 1]");
  ASSERT_EQ(op.num_tensors(), 3);
  EXPECT_EQ(definition.tensors[0].name, "x");
  EXPECT_EQ(definition.tensors[0].shape, Dims({2, 3}));
  EXPECT_FALSE(definition.tensors[0].is_output);
  EXPECT_EQ(op.digest(0), before);
  EXPECT_NEAR(op.norm(0), std::sqrt(91), 1e-5);
  EXPECT_EQ(op.max_abs(0), 6);
  EXPECT_EQ(definition.tensors[1].name, "y");
  EXPECT_TRUE(definition.tensors[1].is_output);
  EXPECT_EQ(op.digest(1), ComputeDigestAndStatistics(x_)->digest);
  EXPECT_EQ(op.non_finite(0).num_nan, 0);
  EXPECT_EQ(op.non_finite(1).num_nan, 1);
  EXPECT_EQ(definition.tensors[2].name, "output1");
}

TEST_F(OpLogTest, RolesAndDirectionAreLogged) {
  const auto log = Start();
  ASSERT_TRUE(log->BeginIteration(0).ok());
  { const OpRange op(OpRange::Update("sgd").In(ranges_)); }
  { const OpRange op(OpRange::Load("batch").In(ranges_)); }
  { const OpRange op(OpRange::Collective("allreduce").In(ranges_)); }
  { const OpRange op(OpRange::Backward("LinearBackward", {5, 1}).In(ranges_)); }
  Finish(*log);
  const LoggedOps ops = Read();
  ASSERT_EQ(ops.ops.size(), 4u);
  EXPECT_EQ(ops.ops[0].definition().role, OpRole::kUpdate);
  EXPECT_EQ(ops.ops[1].definition().role, OpRole::kLoad);
  EXPECT_EQ(ops.ops[2].definition().role, OpRole::kCollective);
  EXPECT_TRUE(ops.ops[3].definition().is_backward);
  EXPECT_EQ(ops.ops[3].seq(), 5);
}

TEST_F(OpLogTest, InnerOperationsComeBeforeTheOnesAroundThem) {
  const auto log = Start();
  ASSERT_TRUE(log->BeginIteration(0).ok());
  {
    const OpRange outer(Op("block"), {x_});
    const OpRange inner(Op("linear"), {x_});
  }
  Finish(*log);
  const LoggedOps ops = Read();
  ASSERT_EQ(ops.ops.size(), 2u);
  EXPECT_EQ(ops.ops[0].definition().name, "linear");
  EXPECT_EQ(ops.ops[0].number(), 1u);
  EXPECT_EQ(ops.ops[1].definition().name, "block");
}

TEST_F(OpLogTest, ThreadsLogSideBySide) {
  const auto log = Start();
  ASSERT_TRUE(log->BeginIteration(0).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        OpRange op(Op("linear"), {x_});
        op.Outputs(x_);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Finish(*log);
  const LoggedOps ops = Read();
  EXPECT_EQ(ops.cut, "");
  EXPECT_EQ(ops.ops.size(), 2000u);
}

TEST_F(OpLogTest, ALogThatIsKilledHoldsWhatWasLoggedAndSaysWhereItEnds) {
  const pid_t child = fork();
  if (child == 0) {
    const auto log = Start();
    for (int64_t i = 0; i < 400; ++i) Iterate(*log, i);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const LoggedOps ops = Read();
  EXPECT_EQ(ops.ops.size(), 1200u);
  EXPECT_EQ(ops.iterations.size(), 400u);
  EXPECT_THAT(ops.cut, HasSubstr("after 1200 operations: the run was killed"));
}

TEST_F(OpLogTest, ALogCutAtAnyByteIsReadUpToThereOrRefused) {
  const auto log = Start();
  Iterate(*log, 0);
  Finish(*log);
  const std::string whole = *ReadFile(path_);
  size_t most = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    ASSERT_TRUE(WriteFileAtomically(path_, whole.substr(0, size)).ok());
    const auto read = ReadOpLog(path_);
    if (size < sizeof(internal::OpLogHeader)) {
      EXPECT_FALSE(read.ok()) << size;
      continue;
    }
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(read->cut, HasSubstr("ends at byte")) << size;
    EXPECT_GE(read->ops.size(), most);
    most = read->ops.size();
  }
  EXPECT_EQ(most, 3u);
}

TEST_F(OpLogTest, ADamagedByteEndsTheLogAndNothingElse) {
  const auto log = Start();
  Iterate(*log, 0);
  Finish(*log);
  const std::string whole = *ReadFile(path_);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
    ASSERT_TRUE(WriteFileAtomically(path_, damaged).ok());
    const auto read = ReadOpLog(path_);
    if (!read.ok()) continue;
    EXPECT_LE(read->ops.size(), 3u);
    for (const LoggedOp& op : read->ops) EXPECT_EQ(op.num_tensors(), 3);
  }
}

TEST_F(OpLogTest, WhatIsNoLogIsRefusedWithASentence) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(100, 'x')).ok());
  EXPECT_THAT(std::string(ReadOpLog(path_).status().message()), HasSubstr("no log of operations"));
  EXPECT_FALSE(ReadOpLog(dir_ + "/none").ok());
  EXPECT_FALSE(ReadOpLog(dir_).ok());

  std::filesystem::remove(path_);
  const auto log = Start();
  Finish(*log);
  std::string bytes = *ReadFile(path_);
  bytes[12] = 64;
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  EXPECT_THAT(std::string(ReadOpLog(path_).status().message()), HasSubstr("digests of 64 bits"));
  bytes[8] = 9;
  ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
  EXPECT_THAT(std::string(ReadOpLog(path_).status().message()), HasSubstr("version 9"));
}

TEST_F(OpLogTest, NoFileIsOverwritten) {
  ASSERT_TRUE(WriteFileAtomically(path_, "mine").ok());
  OpLog::Options options;
  options.path = path_;
  EXPECT_TRUE(absl::IsAlreadyExists(OpLog::Create(options).status()));
  EXPECT_EQ(*ReadFile(path_), "mine");
}

TEST_F(OpLogTest, TensorsThatAreWantedAreKept) {
  OpLog::Options options;
  options.keep = {"encoder.relu.*"};
  options.kept_dir = dir_ + "/kept";
  const auto log = Start(options);
  Iterate(*log, 3);
  Finish(*log);
  const auto dump = ReadDump(options.kept_dir + "/3");
  ASSERT_TRUE(dump.ok()) << dump.status();
  EXPECT_TRUE(std::filesystem::exists(options.kept_dir + "/3/manifest.json"));
  EXPECT_EQ(OpTensorPath(1, true, 0), "op1.output0");
}

TEST_F(OpLogTest, AChildThatIsForkedLogsNothing) {
  const auto log = Start();
  Iterate(*log, 0);
  const pid_t child = fork();
  if (child == 0) {
    Iterate(*log, 1);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  Finish(*log);
  EXPECT_EQ(Read().ops.size(), 3u);
}

TEST_F(OpLogTest, NothingIsLoggedBeforeAndAfter) {
  { const OpRange op(Op("linear"), {x_}); }
  const auto log = Start();
  Iterate(*log, 0);
  Finish(*log);
  { const OpRange op(Op("linear"), {x_}); }
  EXPECT_EQ(log->num_ops(), 3);
}

}  // namespace
}  // namespace ott
