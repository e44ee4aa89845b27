#include "ott/core/op_log/op_log.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

using ::testing::AllOf;
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

// Says what a log holds of a tensor that is named.
std::string TextOf(const std::string& name, bool is_output, const TensorView& tensor) {
  const DigestAndStatistics read = *ComputeDigestAndStatistics(tensor);
  const SketchedStatistics& of = read.statistics;
  return absl::StrCat(name, is_output, std::string(Name(tensor.dtype())), ShapeToString(tensor.shape()),
                      read.digest.ToString(), " ", of.norm, " ", of.max_abs, " ", of.num_nan, " ",
                      of.num_infinite, " ", absl::StrJoin(of.sketch.sums, " "), "\n");
}

std::string TextOf(const LoggedOp& op) {
  const OpDefinition& of = op.definition();
  std::string text = absl::StrCat(of.module, "|", of.phase, "|", of.name, "|", of.source, "|",
                                  static_cast<int>(of.role), of.is_backward, "|", op.seq(), "|", op.thread(),
                                  "|", op.number(), "|", std::string(op.arguments()), "\n");
  for (int i = 0; i < op.num_tensors(); ++i) {
    const OpTensorDefinition& tensor = of.tensors[static_cast<size_t>(i)];
    absl::StrAppend(&text, tensor.name, tensor.is_output, std::string(Name(tensor.dtype)),
                    ShapeToString(tensor.shape), op.digest(i).ToString(), " ", op.norm(i), " ", op.max_abs(i),
                    " ", op.non_finite(i).num_nan, " ", op.non_finite(i).num_infinite, " ",
                    absl::StrJoin(absl::MakeSpan(op.sketch(i), TensorSketch::kNumSums), " "), "\n");
  }
  return text;
}

TEST_F(OpLogTest, OfAnyRunsTheLogHoldsWhatTheirOperationsReadAndWrote) {
  const std::string long_text(300, 's');
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    SetUp();
    std::mt19937 random(seed);
    const auto below = [&](uint32_t end) { return static_cast<int>(random() % end); };
    const auto any = [&](const auto& of) { return of[random() % std::size(of)]; };
    // The operations of each iteration, in the order in which they ended.
    std::vector<std::pair<int64_t, std::vector<std::string>>> expected;
    bool is_finished = false;
    for (int part = 1, last_part = 1 + below(3); part <= last_part; ++part) {
      const auto log = *OpLog::Create({OpLogPart(path_, part), 2, 5, {}, ""});
      int64_t iteration = below(3);
      for (int i = 1 + below(3); i > 0; --i) {
        ASSERT_TRUE(log->BeginIteration(++iteration).ok());
        const auto is_again = [&](const auto& one) { return one.first == iteration; };
        expected.erase(std::remove_if(expected.begin(), expected.end(), is_again), expected.end());
        std::vector<std::string>& ended = expected.emplace_back(iteration, std::vector<std::string>()).second;
        std::vector<std::pair<void*, std::string>> open;
        for (int number = 0, count = below(5); number < count; ++number) {
          float data[6];
          for (float& x : data) x = any(std::vector<float>{1, -2, 3, std::nanf(""), HUGE_VALF, 0, 5, 6, 7});
          const TensorView views[] = {TensorView(data, {2, 3}), TensorView(data, DType::kInt64, {3})};
          ObservedOp op;
          op.name = any(std::vector<std::string_view>{"linear", "relu"});
          op.module = any(std::vector<std::string_view>{"", "encoder.0"});
          op.phase = any(std::vector<std::string_view>{"", "forward"});
          op.role = static_cast<OpRole>(below(4));
          op.is_backward = below(2) == 0;
          op.seq = below(3) - 1;
          op.thread = below(9);
          if (below(2) == 0) op.source = {"model.cc", 7};
          std::string arguments, tensors;
          int num_inputs = 0, num_outputs = 0;
          std::vector<OpArg> args[2];
          for (int k = 0, num_args = below(5); k < num_args; ++k) {
            const char* const name = any(std::vector<const char*>{"", "x", "y"});
            const int kind = below(7);
            const std::pair<OpArg, std::string> values[] = {{nullptr, ""},
                                                            {true, "true"},
                                                            {0.1, "0.10000000000000001"},
                                                            {-3, "-3"},
                                                            {long_text, long_text.substr(0, 200)},
                                                            {{1, 2}, "[1, 2]"},
                                                            {views[k % 2], ""}};
            // Attributes come after arguments.
            args[k >= 3].emplace_back(name, values[kind].first);
            if (kind == 6) {
              const std::string index = absl::StrCat("input", num_inputs++);
              tensors += TextOf(*name == 0 ? index : name, false, views[k % 2]);
            } else if (kind > 0) {
              absl::StrAppend(&arguments, arguments.empty() ? "" : ", ",
                              *name == 0 ? absl::StrCat("argument", k) : name, "=", values[kind].second);
            }
          }
          op.args = args[0];
          op.attributes = args[1];
          void* const handle = log->Begin(op);
          for (int k = below(3); k > 0; --k) {
            data[0] = static_cast<float>(k);
            const OpArg output = k == 1 ? OpArg("out", views[0]) : OpArg(views[0]);
            tensors += TextOf(k == 1 ? "out" : absl::StrCat("output", num_outputs), true, views[0]);
            ++num_outputs;
            log->AddOutputs(handle, {&output, 1});
          }
          open.emplace_back(
              handle, absl::StrCat(std::string(op.module), "|", std::string(op.phase), "|",
                                   std::string(op.name), "|", op.source.file == nullptr ? "" : "model.cc:7",
                                   "|", static_cast<int>(op.role), op.is_backward, "|", op.seq, "|",
                                   op.thread, "|", number, "|", arguments, "\n", tensors));
          // Some end before those that began before them, and some after others.
          while (!open.empty() && (number + 1 == count || below(2) == 0)) {
            const size_t at = random() % open.size();
            log->End(open[at].first);
            ended.push_back(open[at].second);
            open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
          }
        }
      }
      is_finished = below(2) == 0;
      if (is_finished) {
        EXPECT_TRUE(log->Finish().ok());
      }
    }
    const LoggedOps log = Read();
    const std::string last =
        log.files.size() == 1 ? path_ : OpLogPart(path_, static_cast<int>(log.files.size()));
    std::vector<std::pair<int64_t, std::vector<std::string>>> found;
    for (const LoggedOps::Iteration& one : log.iterations) {
      std::vector<std::string>& ops = found.emplace_back(one.number, std::vector<std::string>()).second;
      for (size_t i = one.begin; i < one.end; ++i) ops.push_back(TextOf(log.ops[i]));
    }
    EXPECT_EQ(found, expected);
    EXPECT_EQ(log.cut, is_finished ? ""
                                   : absl::StrCat(last, ": ends at byte ", std::filesystem::file_size(last),
                                                  ", after ", log.ops.size(),
                                                  " operations: the run was killed, or the disk was full"));
    EXPECT_EQ(std::make_pair(log.rank, log.world_size), std::make_pair(2, 5));
  }
}

TEST_F(OpLogTest, RangesTellItOfTheirOperations) {
  const auto log = Start();
  ASSERT_TRUE(log->BeginIteration(7).ok());
  {
    const LayerRange layer(ranges_, "encoder");
    const LayerRange inner(ranges_, "0");
    const PhaseRange phase(ranges_, "forward");
    OpRange op(Op("linear"), {{"x", x_}}, {{"stride", {1, 1}}});
    op.Outputs({{"y", x_}});
  }
  { const OpRange op(OpRange::Backward("LinearBackward", {5, 1}).In(ranges_)); }
  Finish(*log);
  const LoggedOps ops = Read();
  ASSERT_EQ(ops.ops.size(), 2u);
  EXPECT_THAT(TextOf(ops.ops[0]), AllOf(HasSubstr("encoder.0|forward|linear|"), HasSubstr("op_log_test.cc:"),
                                        HasSubstr("|stride=[1, 1]\nx0float32")));
  EXPECT_THAT(TextOf(ops.ops[1]), HasSubstr("|01|5|"));
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
  EXPECT_EQ(ops.definitions.size(), 1u);
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

TEST_F(OpLogTest, ALogCutOrDamagedAtAnyByteIsReadUpToThereOrRefused) {
  const auto log = Start();
  Iterate(*log, 0);
  Finish(*log);
  const std::string whole = *ReadFile(path_);
  std::vector<std::string> ops;
  for (const LoggedOp& op : Read().ops) ops.push_back(TextOf(op));
  size_t most = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    std::string damaged = whole;
    damaged[size] = static_cast<char>(damaged[size] ^ 0x5a);
    for (const std::string& bytes : {whole.substr(0, size), damaged}) {
      ASSERT_TRUE(WriteFileAtomically(path_, bytes).ok());
      const auto read = ReadOpLog(path_);
      const bool is_cut = bytes.size() == size;
      EXPECT_TRUE(!is_cut || read.ok() == (size >= sizeof(internal::OpLogHeader))) << size;
      if (!read.ok()) continue;
      if (is_cut) {
        EXPECT_THAT(read->cut, HasSubstr("ends at byte"));
        EXPECT_GE(read->ops.size(), std::exchange(most, read->ops.size()));
      }
      for (size_t i = 0; i < read->ops.size(); ++i) EXPECT_EQ(TextOf(read->ops[i]), ops.at(i)) << size;
    }
  }
  EXPECT_EQ(most, 3u);
}

// Some bytes of a record's payload.
template <typename T>
std::string Raw(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

TEST_F(OpLogTest, ARecordThatIsWholeButMakesNoSenseEndsTheLog) {
  Finish(*Start());
  const std::string header = ReadFile(path_)->substr(0, sizeof(internal::OpLogHeader));
  const auto record = [](uint16_t kind, std::string payload, uint32_t id = 0) {
    payload.resize((payload.size() + 7) / 8 * 8);
    const internal::OpLogRecordHeader of{static_cast<uint32_t>(sizeof(of) + payload.size()),
                                         internal::OpLogCheck(payload.data(), payload.size()), kind, 0, id};
    return Raw(of) + payload;
  };
  // Ends of what comes before a definition's only tensor, and of the tensor.
  const auto definition = [&](uint8_t role, uint32_t num_tensors, const std::string& dtype, int64_t extent) {
    const std::string begin = Raw(uint32_t{2}) + "op" + std::string(12 + 4, '\0') + Raw(role) + '\0';
    return record(internal::kDefinition, begin + Raw(num_tensors) + Raw(uint32_t{1}) + "x" + '\0' +
                                             Raw(static_cast<uint32_t>(dtype.size())) + dtype +
                                             Raw(uint32_t{1}) + Raw(extent));
  };
  const std::string iteration = record(internal::kIteration, Raw(int64_t{3}));
  const auto op = [&](uint32_t id, uint32_t num_text_bytes) {
    return record(internal::kOp,
                  Raw(internal::OpLogOp{0, 1, 0, num_text_bytes, 0}) + Raw(internal::OpLogTensor{}) + "text",
                  id);
  };
  const std::string good = definition(0, 1, "float32", 2) + iteration + op(0, 4);
  const std::string bad[] = {definition(9, 1, "float32", 2),
                             definition(0, 2, "float32", 2),
                             definition(0, 1 << 17, "float32", 2),
                             definition(0, 1, "floats", 2),
                             definition(0, 1, "float32", -2),
                             record(internal::kIteration, std::string(16, '\0')),
                             record(internal::kIteration, ""),
                             op(1, 4),
                             op(0, 9),
                             record(internal::kOp, std::string(16, '\0')),
                             record(99, "")};
  const auto read = [&](const std::string& records, int part = 1) {
    EXPECT_TRUE(WriteFileAtomically(OpLogPart(path_, part), header + records).ok());
    return Read();
  };
  EXPECT_EQ(read(good + op(0, 8) + record(internal::kEnd, "")).cut, "");
  for (const std::string& one : bad) {
    const LoggedOps log = read(good + one + good);
    EXPECT_EQ(log.ops.size(), 1u) << &one - bad;
    EXPECT_THAT(log.cut, AllOf(HasSubstr(absl::StrCat("byte ", header.size() + good.size(), ", after 1 ")),
                               testing::EndsWith(": damaged")));
  }
  // Definitions and iterations of one part are none of the other's.
  EXPECT_THAT(read(definition(0, 1, "float32", 2) + op(0, 4)).cut, HasSubstr("after 0 operations: damaged"));
  EXPECT_EQ(read(good + record(internal::kEnd, "")).ops.size(), 1u);
  EXPECT_THAT(read(iteration + op(0, 4), 2).cut, HasSubstr("after 1 operations: damaged"));
}

TEST_F(OpLogTest, WhatIsNoLogIsRefusedWithASentence) {
  ASSERT_TRUE(WriteFileAtomically(path_, std::string(100, 'x')).ok());
  EXPECT_THAT(std::string(ReadOpLog(path_).status().message()), HasSubstr("no log of operations"));
  EXPECT_FALSE(ReadOpLog(dir_ + "/none").ok());
  EXPECT_FALSE(ReadOpLog(dir_).ok());

  std::filesystem::remove(path_);
  const auto log = Start();
  Finish(*log);
  const std::string bytes = *ReadFile(path_);
  for (const auto& [offset, message] :
       {std::pair(offsetof(internal::OpLogHeader, digest_bits), "digests of 9 bits and sketches of 16 sums;"),
        {offsetof(internal::OpLogHeader, num_sketch_sums), "digests of 128 bits and sketches of 9 sums;"},
        {offsetof(internal::OpLogHeader, version), "a log of operations of version 9;"}}) {
    std::string other = bytes;
    other[offset] = 9;
    ASSERT_TRUE(WriteFileAtomically(path_, other).ok());
    EXPECT_THAT(std::string(ReadOpLog(path_).status().message()), HasSubstr(absl::StrCat(": ", message)));
  }
}

TEST_F(OpLogTest, AFileThatCannotBeMadeIsNamed) {
  ASSERT_TRUE(WriteFileAtomically(path_, "mine").ok());
  OpLog::Options options;
  options.path = path_;
  EXPECT_EQ(OpLog::Create(options).status(),
            absl::AlreadyExistsError(path_ + ": cannot be made: File exists"));
  EXPECT_EQ(*ReadFile(path_), "mine");
  options.path = dir_ + "/no/log";
  EXPECT_EQ(OpLog::Create(options).status(),
            absl::InternalError(options.path + ": cannot be made: No such file or directory"));
}

TEST_F(OpLogTest, WithoutRoomTheErrorIsSaidOnceAndNoMoreIsLogged) {
  rlimit original;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &original), 0);
  const auto limit = [&](rlim_t size) {
    rlimit small = original;
    small.rlim_cur = size;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  };
  const absl::Status error = absl::ResourceExhaustedError(path_ + ": no room for more: File too large");
  limit(1 << 16);
  OpLog::Options options;
  options.path = path_;
  EXPECT_EQ(OpLog::Create(options).status(), error);
  std::filesystem::remove(path_);
  limit(1 << 18);
  const auto log = Start();
  absl::Status status;
  while ((status = log->BeginIteration(0)).ok()) {
    for (int i = 0; i < 100; ++i) const OpRange op(Op("linear"), {x_});
  }
  limit(original.rlim_cur);
  EXPECT_EQ(status, error);
  const size_t num_ops = Read().ops.size();
  EXPECT_GT(num_ops, 100u);
  Iterate(*log, 1);
  Finish(*log);
  EXPECT_EQ(Read().ops.size(), num_ops);
  EXPECT_NE(Read().cut, "");
  EXPECT_EQ(log->BeginIteration(2), absl::OkStatus());
}

TEST_F(OpLogTest, TensorsThatAreWantedAreKept) {
  OpLog::Options options;
  options.keep = {"encoder.relu.*", "*.y", "encoder.linear.input1"};
  options.kept_dir = dir_ + "/kept";
  options.rank = 1;
  options.world_size = 3;
  const auto log = Start(options);
  for (const int64_t iteration : {3, 5}) Iterate(*log, iteration);
  Finish(*log);
  for (const int iteration : {3, 5}) {
    const auto dump = ReadDump(absl::StrCat(options.kept_dir, "/", iteration));
    ASSERT_TRUE(dump.ok()) << dump.status();
    EXPECT_EQ(dump->manifest->rank, 1);
    EXPECT_EQ(dump->manifest->world_size, 3);
    std::map<std::string, float> kept, expected;
    for (const NamedTensor& named : ListTensors(dump->tensors))
      kept[named.path] = *static_cast<const float*>(named.tensor.view.data());
    for (const int number : {0, 1, 2}) {
      const auto first = static_cast<float>((iteration == 3 ? 1 : 4) + number);
      expected[OpTensorPath(number, true, 0)] = first + 1;
      expected[absl::StrCat("op", number, ".input1")] = first;
      if (number == 1) expected["op1.input0"] = first;
    }
    EXPECT_EQ(kept, expected);
  }
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
  EXPECT_EQ(log->BeginIteration(1), absl::FailedPreconditionError(path_ + ": closed"));
}

}  // namespace
}  // namespace ott
