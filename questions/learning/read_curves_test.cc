#include "ott/questions/learning/read_curves.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/questions/learning/tensorboard.pb.h"
#include "questions/learning/event_file.h"

namespace ott::learning {
namespace {

using ::testing::HasSubstr;

class ReadCurves : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(folder_, "/", name);
    EXPECT_TRUE(MakeDirectories(path.substr(0, path.rfind('/'))).ok());
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }

  // Returns what a file holds, "x_name RUN METRIC x:y x:y", or what is wrong; both without the folder.
  std::string Show(const std::string& path, const ReadOptions& options = {}) {
    const absl::StatusOr<ReadRuns> read = ReadSide({path}, options);
    const auto without_folder = [&](std::string text) {
      const size_t at = text.find(folder_);
      return at == std::string::npos ? text : text.erase(at, folder_.size() + 1);
    };
    if (!read.ok()) return without_folder(std::string(read.status().message()));
    std::string text = read->x_name;
    for (const RunCurves& run : read->runs) {
      absl::StrAppend(&text, " ", without_folder(run.name));
      for (const auto& [metric, curve] : run.curves) {
        absl::StrAppend(&text, " ", metric);
        for (const Point& point : curve) absl::StrAppend(&text, " ", point.x, ":", point.y);
      }
    }
    return text;
  }

  const std::string folder_ = absl::StrCat(::testing::TempDir(), "/",
                                           ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ReadCurves, EachTextIsReadAsItsFormatSays) {
  const std::string mark = "0: :::MLLOG {\"key\": ";
  const std::string nothing =
      "f: has no metric over any of step, global_step, iteration, iter, samples_count, samples, "
      "train/global_step, epoch_num, epoch, wall_time";
  struct Case {
    std::string text, holds;
    ReadOptions options = {};
  };
  for (const auto& [text, holds, options] : std::vector<Case>{
           // CSV: each number is a metric, and what is no number in its first row is a text.
           {"step,loss,note,grad_norm\r\n10,1.5,ok,\r\n20,nan,3,3e-1\r\n",
            "step f grad_norm 20:0.3 loss 10:1.5 20:nan"},
           {"\xEF\xBB\xBFStep,loss\n1,2\n", "Step f loss 1:2"},
           {"loss,step\n 1 , +2 \n+ 3,4", "step f loss 2:1 4:3"},
           {"step,loss\n1,1e999\n2,1E-999\n3,-inf\n\n4,-1E999\n", "step f loss 1:inf 2:0 3:-inf 4:-inf"},
           {"step,loss\nnan,1\n2,3\n", "step f loss 2:3"},
           {"epoch,step,loss\n1,10,3\n", "step f loss 10:3"},
           {"epoch,step,loss\n1,10,3\n", "epoch f loss 1:3", {"epoch"}},
           {"tokens,step,loss\n7,10,3\n", "tokens f loss 7:3", {"tokens"}},
           {"_step,_Wall_Time,loss\n1,2,3\n", "_step f loss 1:3"},
           {"timestamp,loss,f1\n1700000005,3,\n1700000000.5,4,\n1700000010,,5\n",
            "timestamp f f1 9.5:5 loss 0:4 4.5:3",
            {"timestamp"}},
           {"timestamp,loss,f1\n1700000010,3,\n1700000005,,5\n",
            "timestamp f f1 0:5 loss 5:3",
            {"timestamp"}},
           {"timestamp,loss\n5,3\n7,4\n", "timestamp f loss 5:3 7:4", {"timestamp"}},
           {"run,epoch,loss\nb,1,3\na,1,1\na,2,0.5\n", "epoch f, run a loss 1:1 2:0.5 f, run b loss 1:3"},
           {"run_id,step,loss\nb,1,3\n", "step f, run b loss 1:3"},
           {"process,step,loss\nb,1,3\n", "step f, run b loss 1:3"},
           {"step,\"a,\"\"b\"\"\"\n1,\"2\"\n", "step f a,\"b\" 1:2"},
           // Weights & Biases exports this.
           {"\"Step\",\"r-1 - loss\",\"r-1 - loss__MIN\",\"r-1 - loss__MAX\",\"r - 2 - loss\"\n"
            "\"1\",\"2.5\",\"2\",\"3\",\"\"\n\"2\",\"2\",\"2\",\"2\",\"3\"\n",
            "Step f, run r - 2 loss 2:3 f, run r-1 loss 1:2.5 2:2"},
           {"step,r - __MIN\n1,2\n", "step f, run r __MIN 1:2"},
           // JSON lines, of which the last of a step counts.
           {"{\"step\": 2, \"loss\": 2}\n{\"step\": 1, \"loss\": 4, \"tags\": [1, {}], \"is\": true, \"t\": "
            "\"7\"}\n"
            "{\"step\": 2, \"loss\": NaN}\n\n{\"step\": 3, \"loss\": \"Infinity\"}\n{\"step\": 4, \"loss\": "
            "\"-Infinity\", \"n\": null}\n{\"step\": 5, \"loss\": \"NaN\"}\n{\"loss\": 9}\n",
            "step f loss 1:4 2:nan 3:inf 4:-inf 5:nan"},
           {"{\"run\": \"b\", \"step\": 1, \"loss\": 2}\n{\"step\": 1, \"loss\": 3}\n",
            "step f loss 1:3 f, run b loss 1:2"},
           {"{\"run\": 2, \"step\": 1, \"loss\": 2}\n{\"run\": 10, \"step\": 1, \"loss\": 3}\n",
            "step f, run 10 loss 1:3 f, run 2 loss 1:2"},
           {"{\"epoch\": 1, \"iter\": 5, \"loss\": 2}\n{\"epoch\": 2, \"iter\": 6, \"loss\": 3}\n",
            "iter f loss 5:2 6:3"},
           {"{\"epoch\": 1, \"iter\": 5, \"loss\": 2}\n", "epoch f loss 1:2", {"epoch"}},
           {"{\"epoch\": 0, \"loss\": 9}\n{\"epoch\": 1, \"step\": 5, \"loss\": 2}\n{\"epoch\": 1, \"step\": "
            "6, \"loss\": 3}\n",
            "step f loss 5:2 6:3"},
           // Hugging Face's trainer_state.json.
           {"{\n \"epoch\": 1.0,\n \"log_history\": [\n  {\"epoch\": 0.5, \"loss\": 2.0, \"step\": 5},\n"
            "{\"epoch\": 1.0, \"eval_loss\": 1.5, \"step\": 10}\n ], \"best\": [1]\n}\n",
            "step f eval_loss 10:1.5 loss 5:2"},
           // MLPerf's logs.
           {absl::StrCat("noise\n", mark, "\"seed\", \"value\": 3, \"metadata\": {\"step\": 1}}\n", mark,
                         "\"tracked_stats\", \"value\": {\"throughput\": 7.5}, \"metadata\": {\"lineno\": 1, "
                         "\"step\": 8}}\n",
                         mark,
                         "\"eval_accuracy\", \"value\": 0.75, \"metadata\": {\"samples_count\": 8, "
                         "\"epoch_num\": 2}}\n",
                         mark, "\"eval_accuracy\", \"value\": 0.5, \"metadata\": {}}\n", mark,
                         "\"eval_accuracy\", \"value\": \"NaN\", \"metadata\": {\"samples_count\": 9}}\n"),
            "samples_count f eval_accuracy 8:0.75 9:nan throughput 8:7.5"},
           {absl::StrCat(
                mark, "\"eval_accuracy\", \"value\": 0.75, \"metadata\": {\"epoch_num\": 2, \"step\": 4}}\n"),
            "epoch_num f eval_accuracy 2:0.75"},
           {absl::StrCat(
                mark, "\"eval_accuracy\", \"value\": 0.75, \"metadata\": {\"epoch_num\": 2, \"step\": 4}}\n"),
            "step f eval_accuracy 4:0.75",
            {"step"}},
           // What is wrong.
           {"", "f: the file is empty"},
           {" \n\t\n", "f: the file is empty"},
           {"step,loss\n1,2\n2,what\n", "f:3: \"what\" is no number of the column loss"},
           {"step,loss\n1,2\nx\t,2\n", "f:3: \"x\\t\" is no number of the column step"},
           {"step,loss\n1\n", "f:2: 1 fields, and the first line names 2"},
           {"step,loss\n1,2,3\n", "f:2: 3 fields, and the first line names 2"},
           {"time,loss\n1,2\n",
            "f:1: no column is step, samples, epoch or the like; its columns are time,loss"},
           {"step,loss\n1,2\n", "f:1: no column is tokens; its columns are step,loss", {"tokens"}},
           {"step,\"loss\n1,2\n", "f:1: a quote is not closed"},
           {"Step,r - loss,r - loss__MIN,r - loss,r - loss__MIN\n1,2,2,3,3\n",
            "f:1: two columns are named \"r - loss\": give each run its own name"},
           {"step,loss\n1,2\n2,\"3", "f:3: a quote is not closed"},
           {"Step,r - loss\n1,2\n2", "f:3: 1 fields, and the first line names 2"},
           {"{\"step\": 1, \"loss\": 2}\n{\"step\": \n", "f:2: column 10: this is no JSON"},
           {"{\"loss\": 2}\n", nothing},
           {"{\"log_history\": []}\n", nothing},
           {absl::StrCat(mark, "\"seed\", \"value\": 1, \"metadata\": {}}\n"), nothing},
           {"step,loss\n", "f: has no metric over step"},
           {"{\"step\": 1, \"loss\": 2}\n", "f: has no metric over epoch", {"epoch"}},
           {"{\"log_history\": [{\"step\": 1, \"lo", "f: byte 32: this is no JSON"},
           {absl::StrCat("\n", mark, "\"eval_accuracy\", \"val"), "f:2: what follows :::MLLOG is no JSON"},
       }) {
    EXPECT_EQ(Show(Write("f", text), options), holds) << text;
  }
}

TEST_F(ReadCurves, WhatIsNoFileOfMetricsIsNamed) {
  EXPECT_EQ(Show(folder_ + "/none"), "none: No such file or directory");
  Write("run/run.json", "{}");
  EXPECT_EQ(Show(folder_ + "/run"),
            "run: a run without metrics: the program logs them by run.metric(\"loss\", value)");
  EXPECT_TRUE(MakeDirectories(folder_ + "/a/b/c/d/e").ok());
  EXPECT_EQ(Show(folder_ + "/a"), "a: no file of metrics in it");
  const std::string text = "step,loss\n1,2\n";
  Write("a/b/c/d/e/deep.csv", text);
  EXPECT_EQ(Show(folder_ + "/a"), "a: no file of metrics in it");
  Write("a/b/c/d.csv", text);
  EXPECT_EQ(Show(folder_ + "/a"), "step a/b/c/d.csv loss 1:2");
  Write("checkpoint/trainer_state.json", "{\"log_history\": [{\"step\": 5, \"loss\": 2.0}]}");
  Write("checkpoint/other.csv", text);
  EXPECT_EQ(Show(folder_ + "/checkpoint"), "step checkpoint loss 5:2");
  // Trainer leaves one in each checkpoint of a run.
  for (const int step : {5, 10, 15}) {
    std::string history;
    for (int i = 5; i <= step; i += 5)
      absl::StrAppend(&history, i > 5 ? ", " : "", "{\"step\": ", i, ", \"loss\": 2.0}");
    Write(absl::StrCat("trained/checkpoint-", step, "/trainer_state.json"),
          absl::StrCat("{\"log_history\": [", history, "]}"));
  }
  // The last was not written to its end.
  EXPECT_TRUE(MakeDirectories(folder_ + "/trained/checkpoint-20").ok());
  EXPECT_EQ(Show(folder_ + "/trained"), "step trained loss 5:2 10:2 15:2");
  Write("mixed/a.csv", text);
  Write("mixed/b.csv", "epoch,loss\n1,2\n");
  EXPECT_EQ(
      Show(folder_ + "/mixed"),
      absl::StrCat(
          "mixed/b.csv: its metrics are over epoch, and those of others over step; --x names what all have"));
}

TEST_F(ReadCurves, AFileOfSeveralMegabytesIsReadToItsEnd) {
  constexpr int kPoints = 200'000;
  std::string text = "step,loss\n";
  for (int i = 0; i < kPoints; ++i) absl::StrAppend(&text, i, ",", i % 1000, ".5\n");
  ASSERT_GT(text.size(), 2 << 20);
  const Curve curve = ReadSide({Write("f", text)}, {})->runs.at(0).curves.at("loss");
  ASSERT_EQ(curve.size(), kPoints);
  for (int i = 0; i < kPoints; ++i) ASSERT_TRUE(curve[i].x == i && curve[i].y == i % 1000 + 0.5) << i;
}

// Writes a record like TensorBoard's writers.
std::string Record(const TensorBoardEvent& event) {
  const std::string data = event.SerializeAsString();
  const uint64_t size = data.size();
  std::string length(sizeof(size), '\0');
  std::memcpy(length.data(), &size, sizeof(size));
  const auto checksum = [](const std::string& bytes) {
    const uint32_t value = MaskedChecksum(bytes);
    std::string text(sizeof(value), '\0');
    std::memcpy(text.data(), &value, sizeof(value));
    return text;
  };
  return absl::StrCat(length, checksum(length), data, checksum(data));
}

std::string Scalar(int64_t step, float loss, bool as_tensor) {
  TensorBoardEvent event;
  event.set_step(step);
  event.set_wall_time(100 + static_cast<double>(step));
  TensorBoardSummary::Value* const value = event.mutable_summary()->add_value();
  value->set_tag("loss");
  if (as_tensor) {
    value->mutable_tensor()->set_dtype(1);
    value->mutable_tensor()->set_tensor_content(
        std::string(reinterpret_cast<const char*>(&loss), sizeof(loss)));
  } else {
    value->set_simple_value(loss);
  }
  return Record(event);
}

TEST_F(ReadCurves, ChecksumIsThatOfTfRecord) {
  // The checksum of CRC32C's definition (RFC 3720, B.4) of 32 zero bytes is 8a9136aa.
  EXPECT_EQ(MaskedChecksum(std::string(32, '\0')), ((0x8a9136aaU >> 15) | (0x8a9136aaU << 17)) + 0xa282ead8U);
}

TEST_F(ReadCurves, OfTensorBoardAFolderIsARun) {
  TensorBoardEvent version;
  version.set_file_version("brain.Event:2");
  version.set_wall_time(99);
  Write("run/events.out.tfevents.1.host", absl::StrCat(Record(version), Scalar(1, 2.5, false)));
  Write("run/events.out.tfevents.2.host", absl::StrCat(Record(version), Scalar(2, 1.5, true)));
  EXPECT_EQ(Show(folder_ + "/run"), "step run loss 1:2.5 2:1.5");
  EXPECT_EQ(Show(folder_ + "/run", {"epoch"}),
            "run/events.out.tfevents.1.host: has no epoch: an event file has step and wall_time");
  EXPECT_EQ(Show(folder_ + "/run", {"wall_time"}), "wall_time run loss 2:2.5 3:1.5");
}

TEST_F(ReadCurves, OfTensorBoardEveryFormOfAScalarIsRead) {
  const auto content = [](auto number, int dtype, size_t size) {
    return [=](TensorBoardTensor& tensor) {
      tensor.set_dtype(dtype);
      tensor.set_tensor_content(std::string(reinterpret_cast<const char*>(&number), size));
    };
  };
  std::string file = Scalar(0, 7, false);
  int64_t step = 0;
  const auto add = [&](const std::function<void(TensorBoardTensor&)>& set) {
    TensorBoardEvent event;
    event.set_step(++step);
    TensorBoardSummary::Value* const scalar = event.mutable_summary()->add_value();
    scalar->set_tag("loss");
    set(*scalar->mutable_tensor());
    file += Record(event);
  };
  add(content(2.5f, 1, 4));
  add(content(0.1, 2, 8));
  add([](TensorBoardTensor& tensor) { tensor.add_float_val(1.5f); });
  add([](TensorBoardTensor& tensor) { tensor.add_double_val(0.2); });
  // Texts, images and histograms are no scalars.
  add(content(2.5f, 2, 4));
  add(content(0.1, 1, 8));
  add(content(0.1, 7, 8));
  add(content(0.1, 2, 7));
  add(content(2.5f, 1, 3));
  add([](TensorBoardTensor&) {});
  add([](TensorBoardTensor& tensor) {
    for (const double value : {1.0, 2.0}) tensor.add_double_val(value);
  });
  EXPECT_EQ(Show(Write("f", file)), "step f loss 0:7 1:2.5 2:0.1 3:1.5 4:0.2");
}

TEST_F(ReadCurves, OfTensorBoardACutEndIsNoErrorAndDamageIs) {
  const std::string whole = absl::StrCat(Scalar(1, 2.5, false), Scalar(2, 1.5, false));
  EXPECT_EQ(Show(Write("f", whole.substr(0, whole.size() - 3))), "step f loss 1:2.5");
  EXPECT_EQ(Show(Write("f", whole.substr(0, 30))), "f: has no metric over step");
  std::string damaged = whole;
  damaged[damaged.size() - 10] ^= 1;
  EXPECT_EQ(Show(Write("f", damaged)),
            absl::StrCat("f: byte ", whole.size() / 2, ": the checksum of an event is wrong"));
}

TEST_F(ReadCurves, AFolderOfFilesIsASetOfRuns) {
  Write("set/a.csv", "step,loss\n1,2\n");
  Write("set/b.csv", "step,loss\n1,3\n");
  for (const char* path : {"/set", "/set/*.csv"})
    EXPECT_EQ(Show(folder_ + path), "step set/a.csv loss 1:2 set/b.csv loss 1:3");
  EXPECT_EQ(ReadSide({folder_ + "/set", folder_ + "/set/a.csv"}, {})->runs.size(), 2);
}

TEST_F(ReadCurves, ARunDirectoryHasTheMetricsOfItsFirstRank) {
  Write("run/run.json", "{}");
  Write("run/rank_00000/metrics.jsonl", "{\"step\": 0, \"loss\": 2}\n{\"step\": 1, \"loss\": 1}\n");
  EXPECT_EQ(Show(folder_ + "/run"), "step run loss 0:2 1:1");
  EXPECT_EQ(ReadSide({folder_ + "/run"}, {})->runs.at(0).directory, folder_ + "/run");
  // A run that was started again is its latest start.
  Write("run/attempt_2/run.json", "{}");
  Write("run/attempt_2/rank_00000/metrics.jsonl", "{\"step\": 0, \"loss\": 7}\n");
  EXPECT_EQ(Show(folder_ + "/run"), "step run/attempt_2 loss 0:7");
  EXPECT_EQ(Show(folder_ + "/run/attempt_1"), "step run loss 0:2 1:1");
  std::filesystem::remove_all(folder_ + "/run/attempt_2");
  Write("run/rank_00000/metrics.jsonl", "{\"step\": 1, \"lo");
  EXPECT_EQ(Show(folder_ + "/run"), "run/rank_00000/metrics.jsonl:1: column 16: this is no JSON");
}

std::string Mlperf(int samples, const std::string& value) {
  return absl::StrCat(":::MLLOG {\"key\": \"eval_accuracy\", \"value\": ", value,
                      ", \"metadata\": {\"samples_count\": ", samples, "}}\n");
}

// Logged up to step 3, and after a restart from step 1 again; the value of step 1 is not finite at first.
TEST_F(ReadCurves, WhatIsLoggedAgainAfterARestartCountsInEachFormat) {
  const auto state = [](int step, const char* loss) {
    return absl::StrCat("{\"step\": ", step, ", \"loss\": ", loss, "}");
  };
  const std::string states[] = {state(1, "NaN"), state(3, "9"), state(2, "NaN"), state(1, "5"),
                                state(3, "4")};
  for (const auto& [text, holds] : std::vector<std::pair<std::string, std::string>>{
           {absl::StrJoin(states, "\n"), "step f loss"},
           {absl::StrCat("{\"log_history\": [", absl::StrJoin(states, ", "), "]}\n"), "step f loss"},
           {"step,loss\n1,nan\n3,9\n2,NaN\n1,5\n3,4\n", "step f loss"},
           {"Step,r - loss\n1,NaN\n3,9\n2,NaN\n1,5\n3,4\n", "Step f, run r loss"},
           {absl::StrCat(Mlperf(1, "NaN"), Mlperf(3, "9"), Mlperf(2, "NaN"), Mlperf(1, "5"), Mlperf(3, "4")),
            "samples_count f eval_accuracy"},
           {absl::StrCat(Scalar(1, NAN, false), Scalar(3, 9, true), Scalar(2, NAN, false),
                         Scalar(1, 5, false), Scalar(3, 4, true)),
            "step f loss"}}) {
    EXPECT_EQ(Show(Write("f", text)), holds + " 1:5 2:nan 3:4") << text;
  }
}

TEST_F(ReadCurves, ARunThatIsOnBothSidesIsAnError) {
  const std::string path = Write("a.csv", "step,loss\n1,2\n");
  EXPECT_THAT(std::string(ReadSides({path}, {path}, {}).status().message()), HasSubstr("is on both sides"));
  for (const std::string& same : {folder_ + "/./a.csv", folder_ + "/*.csv", folder_})
    EXPECT_THAT(std::string(ReadSides({path}, {same}, {}).status().message()), HasSubstr("is on both sides"));
  const std::string other = Write("b.csv", "epoch,loss\n1,2\n");
  EXPECT_THAT(std::string(ReadSides({path}, {other}, {}).status().message()), HasSubstr("--x names"));
}

}  // namespace
}  // namespace ott::learning
