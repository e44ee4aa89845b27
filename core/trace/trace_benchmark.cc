// Measures what recording an interval costs beside measuring it, and how fast traces are written, each figure
// beside its limit.
//
//   bazel run //core/trace:trace_benchmark

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "benchmark/benchmark.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/trace/trace_file.h"

namespace ott {
namespace {

constexpr int kIntervals = 200'000;

EventRecorder& Recorder() {
  static auto& recorder = *new EventRecorder(Clock::Fastest());
  return recorder;
}

void Measured(benchmark::State& state) {
  while (state.KeepRunningBatch(kIntervals)) {
    for (int i = 0; i < kIntervals; ++i) {
      OTT_STOPWATCH_SCOPE("scope");
      benchmark::ClobberMemory();
    }
  }
}
BENCHMARK(Measured);

// A window for each batch, so that the buffer never fills.
void MeasuredAndRecorded(benchmark::State& state) {
  Stopwatch::Get().RecordInto(&Recorder());
  while (state.KeepRunningBatch(kIntervals)) {
    Recorder().Open();
    for (int i = 0; i < kIntervals; ++i) {
      OTT_STOPWATCH_SCOPE("scope");
      benchmark::ClobberMemory();
    }
    Recorder().Close();
    OTT_CHECK(Recorder().Buffers()[0].num_lost == 0);
  }
  Stopwatch::Get().RecordInto(nullptr);
}
BENCHMARK(MeasuredAndRecorded);

// Begin and end of a range, without reading a clock.
void Recorded(benchmark::State& state) {
  if (state.thread_index() == 0) Recorder().Open();
  int64_t left = kIntervals;
  for (auto _ : state) {
    if (left-- == 0) {
      if (state.thread_index() == 0) Recorder().Open();
      left = kIntervals;
    }
    Recorder().BeginRange(EventCategory::kUser, "range", 1);
    benchmark::ClobberMemory();
    Recorder().EndRange(EventCategory::kUser, 2);
  }
}
BENCHMARK(Recorded)->Threads(1)->Threads(2);

// Returns an event that looks like most.
TraceEvent Event() {
  TraceEvent event;
  event.process = 3;
  event.track = 12345;
  event.name = "forward";
  event.category = "stopwatch";
  event.start = 1'234'567'890;
  event.duration = 123'456;
  return event;
}

void WriteTrace(benchmark::State& state, const char* ending) {
  const std::string path = std::string(std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp") +
                           "/ott_trace_benchmark" + ending;
  constexpr int kEvents = 1'000'000;
  TraceEvent event = Event();
  int64_t bytes = 0;
  while (state.KeepRunningBatch(kEvents)) {
    const auto file = TraceFile::Create(path, "{}");
    OTT_CHECK(file.ok()) << file.status().message();
    for (int i = 0; i < kEvents; ++i) {
      event.start += 1000;
      (*file)->Add(event);
    }
    OTT_CHECK((*file)->Commit().ok());
    const int fd = open(path.c_str(), O_RDONLY);
    bytes += lseek(fd, 0, SEEK_END);
    close(fd);
  }
  unlink(path.c_str());
  state.SetBytesProcessed(bytes);
}
BENCHMARK_CAPTURE(WriteTrace, json, ".json");
BENCHMARK_CAPTURE(WriteTrace, json_gz, ".json.gz");
BENCHMARK_CAPTURE(WriteTrace, perfetto, ".perfetto-trace");

// The peer: as many bytes as an event has, from memory.
void WriteBytes(benchmark::State& state) {
  const std::unique_ptr<TraceEncoder> encoder = NewChromeTraceEncoder();
  std::string line;
  encoder->Add(Event(), line);
  std::string block;
  while (block.size() < (1 << 20)) block += line;
  const int64_t events = static_cast<int64_t>(block.size() / line.size());
  std::FILE* const file = std::tmpfile();
  while (state.KeepRunningBatch(events)) {
    OTT_CHECK(std::fwrite(block.data(), 1, block.size(), file) == block.size());
    if (std::ftell(file) > (100 << 20)) std::rewind(file);
  }
  std::fclose(file);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * line.size()));
}
BENCHMARK(WriteBytes);

bool PrintLimits(const FastestRuns& ns) {
  const std::unique_ptr<TraceEncoder> encoder = NewChromeTraceEncoder();
  std::string line;
  encoder->Add(Event(), line);
  const auto bytes = static_cast<double>(line.size());
  BenchmarkLimits limits;
  std::printf("\n");
  limits.AtMost("an interval, recorded to measured alone", ns["MeasuredAndRecorded"] / ns["Measured"], 1.3,
                "x ");
  // 16 M events a second on 2 cores are 8 M on each.
  limits.AtMost("an event recorded", ns["Recorded/threads:1"] / 2, 125, "ns");
  limits.AtMost("an event recorded, CPU time on 2 threads to 1",
                ns["Recorded/threads:2"] / ns["Recorded/threads:1"], 1.25, "x ");
  // 200 MB/s.
  limits.AtMost("JSON, a byte", ns["WriteTrace/json"] / bytes, 5, "ns");
  std::printf("JSON: %.0f MB/s of CPU time; writing bytes from memory: %.0f MB/s\n",
              1e3 * bytes / ns["WriteTrace/json"], 1e3 * bytes / ns["WriteBytes"]);
  return limits.all_hold();
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  OTT_CHECK(Stopwatch::Get().Enable({}).ok());
  FastestRuns nanoseconds;
  benchmark::RunSpecifiedBenchmarks(&nanoseconds);
  return PrintLimits(nanoseconds) ? 0 : 1;
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) { return ott::Main(argc, argv); }
