// Dumping beside the least that any program must do for it: std::to_chars, write(), memcpy.

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "ott/core/base/check.h"
#include "ott/core/compare/compare.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/dumper/tensor_dumper.h"

namespace ott {
namespace {

constexpr int64_t kNumbers = 1 << 20;
constexpr int64_t kBlobBytes = 256 << 20;

// A directory on tmpfs, so that no disk is measured, which is removed in the end, and by the signals that ask
// for that. One at a time.
class Directory {
 public:
  Directory() {
    OTT_CHECK(mkdtemp(path_.data()) != nullptr);
    to_remove_ = path_.c_str();
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, &Directory::RemoveAndEnd);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  }

  const std::string& path() const { return path_; }

 private:
  // Becomes another program, which a signal handler may do, and which ends the writers that might add files.
  static void RemoveAndEnd(int /*signal*/) {
    execl("/bin/sh", "sh", "-c", "rm -rf \"$0\"; exit 143", to_remove_, nullptr);
    _exit(143);
  }

  static inline const char* to_remove_ = nullptr;
  std::string path_ = absl::StrCat("/dev/shm/dump_benchmark_", getpid(), "_XXXXXX");
};

std::vector<float> Numbers(int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

void BM_ToChars(benchmark::State& state) {
  const std::vector<float> numbers = Numbers(kNumbers);
  for (auto _ : state) {
    for (const float number : numbers) {
      char buffer[32];
      benchmark::DoNotOptimize(
          std::to_chars(buffer, buffer + sizeof(buffer), static_cast<double>(number)).ptr);
    }
  }
  state.SetItemsProcessed(state.iterations() * kNumbers);
}

void BM_WriteJson(benchmark::State& state) {
  const std::vector<float> numbers = Numbers(kNumbers);
  const Value value = TensorView(numbers.data(), {kNumbers / 64, 64});
  const JsonSink sink = [](std::string_view piece) {
    benchmark::DoNotOptimize(piece.data());
    return absl::OkStatus();
  };
  for (auto _ : state) WriteJson(value, sink, static_cast<int>(state.range(0))).IgnoreError();
  state.SetItemsProcessed(state.iterations() * kNumbers);
}

void BM_ParseJson(benchmark::State& state) {
  const std::vector<float> numbers = Numbers(kNumbers);
  const std::string json = ToJson(Value(TensorView(numbers.data(), {kNumbers / 64, 64}))).value();
  for (auto _ : state) benchmark::DoNotOptimize(ParseJson(json));
  state.SetItemsProcessed(state.iterations() * kNumbers);
}

constexpr int kJsonThreads = 2;

Value NumbersTree(const std::vector<float>& numbers) {
  return ValueMap{{"a", TensorView(numbers.data(), {kNumbers / 64, 64})}};
}

void WriteJsonDump(const std::string& dir, const Value& tree, benchmark::State& state) {
  DumpContents contents;
  contents.tensors.tree = &tree;
  contents.num_json_threads = kJsonThreads;
  if (!WriteDump(dir, contents).ok()) state.SkipWithError("cannot dump");
}

void BM_DumpJson(benchmark::State& state) {
  const std::vector<float> numbers = Numbers(kNumbers);
  const Directory directory;
  const std::string& dir = directory.path();
  const Value tree = NumbersTree(numbers);
  for (auto _ : state) WriteJsonDump(dir, tree, state);
  state.SetItemsProcessed(state.iterations() * kNumbers);
}

// Compares what is in memory with a dump.
void BM_CompareToJsonDump(benchmark::State& state) {
  const std::vector<float> numbers = Numbers(kNumbers);
  const Directory directory;
  const std::string& dir = directory.path();
  const Value tree = NumbersTree(numbers);
  WriteJsonDump(dir, tree, state);
  CompareOptions options;
  options.tensors.num_threads = kJsonThreads;
  for (auto _ : state) {
    if (CompareToDump(dir, tree, nullptr, options).verdict() != Verdict::kEqual)
      state.SkipWithError("different");
  }
  state.SetItemsProcessed(state.iterations() * kNumbers);
}

// Two dumps.
void BM_CompareJsonDumps(benchmark::State& state) {
  const std::vector<float> numbers = Numbers(kNumbers);
  const Directory directory;
  const std::string& dir = directory.path();
  WriteJsonDump(dir, NumbersTree(numbers), state);
  CompareOptions options;
  options.tensors.num_threads = kJsonThreads;
  for (auto _ : state) {
    if (CompareDumps(dir, dir, options).verdict() != Verdict::kEqual) state.SkipWithError("different");
  }
  state.SetItemsProcessed(state.iterations() * kNumbers);
}

void BM_PlainWrite(benchmark::State& state) {
  const Directory directory;
  const std::string path = directory.path() + "/file";
  const std::vector<char> bytes(kBlobBytes, 1);
  for (auto _ : state) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int64_t written = 0;
    while (written < kBlobBytes) written += write(fd, bytes.data() + written, kBlobBytes - written);
    close(fd);
    unlink(path.c_str());
  }
  state.SetBytesProcessed(state.iterations() * kBlobBytes);
}

void WriteBlob(benchmark::State& state, DumpFormat format) {
  const Directory directory;
  const std::string dir = directory.path() + "/0";
  const std::vector<char> bytes(kBlobBytes, 1);
  const Value tree = ValueMap{{"a", TensorView(bytes.data(), DType::kFloat32, {kBlobBytes / 4})}};
  DumpContents contents;
  contents.tensors = {&tree, [format](std::string_view) { return format; }};
  for (auto _ : state) {
    if (!WriteDump(dir, contents).ok()) state.SkipWithError("cannot dump");
    unlink((dir + "/" + BlobFileName(kTensorsFile, "a" + std::string(Extension(format)))).c_str());
  }
  state.SetBytesProcessed(state.iterations() * kBlobBytes);
}

void BM_Memcpy(benchmark::State& state) {
  const std::vector<char> from(kBlobBytes, 1);
  std::vector<char> to(kBlobBytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kBlobBytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBlobBytes);
}

// Measures how long the training thread waits.
void BM_AddTensorData(benchmark::State& state) {
  const std::vector<char> from(kBlobBytes, 1);
  const TensorView view(from.data(), DType::kFloat32, {kBlobBytes / 4});
  const Directory directory;
  TensorDumper dumper;
  TensorDumperOptions options;
  options.dir = directory.path();
  if (!dumper.Enable(options).ok()) state.SkipWithError("cannot enable");
  for (auto _ : state) {
    dumper.AddTensorData("a", view, DumpFormat::kBinary).IgnoreError();
    dumper.Discard();
  }
  state.SetBytesProcessed(state.iterations() * kBlobBytes);
}

// The same for the first dump of a process.
void BM_FirstAddTensorData(benchmark::State& state) {
  const std::vector<char> from(kBlobBytes, 1);
  const TensorView view(from.data(), DType::kFloat32, {kBlobBytes / 4});
  const Directory directory;
  TensorDumperOptions options;
  options.dir = directory.path();
  for (auto _ : state) {
    state.PauseTiming();
    auto dumper = std::make_unique<TensorDumper>();
    if (!dumper->Enable(options).ok()) state.SkipWithError("cannot enable");
    state.ResumeTiming();
    dumper->AddTensorData("a", view, DumpFormat::kBinary).IgnoreError();
    state.PauseTiming();
    dumper.reset();
    state.ResumeTiming();
  }
  state.SetBytesProcessed(state.iterations() * kBlobBytes);
}

void BM_AddTensorDataOff(benchmark::State& state) {
  const float value = 1;
  for (auto _ : state) {
    TensorDumper::RunIfEnabled([&](TensorDumper& dumper) {
      dumper.AddTensorData("a", [&] { return TensorView(&value, {}); }).IgnoreError();
    });
    benchmark::ClobberMemory();
  }
}

BENCHMARK(BM_ToChars);
// By the time of all threads: per core.
BENCHMARK(BM_WriteJson)->Arg(1)->Arg(2)->MeasureProcessCPUTime();
BENCHMARK(BM_ParseJson);
BENCHMARK(BM_DumpJson)->MeasureProcessCPUTime();
BENCHMARK(BM_CompareToJsonDump)->MeasureProcessCPUTime();
BENCHMARK(BM_CompareJsonDumps)->MeasureProcessCPUTime();
BENCHMARK(BM_PlainWrite);
BENCHMARK_CAPTURE(WriteBlob, binary, DumpFormat::kBinary);
BENCHMARK_CAPTURE(WriteBlob, npy, DumpFormat::kNpy);
BENCHMARK(BM_Memcpy);
BENCHMARK(BM_AddTensorData);
BENCHMARK(BM_FirstAddTensorData);
BENCHMARK(BM_AddTensorDataOff);

}  // namespace
}  // namespace ott
