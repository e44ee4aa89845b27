// Three measurements over the parts of a loop, five iterations of warm-up, and what the stopwatch says about
// it.
//
//   bazel run //examples/stopwatch:measure_loop

#include <chrono>
#include <cstdio>
#include <string>

#include "ott/stopwatch.h"

namespace {

// Keeps a CPU busy, as real work would.
void Work(std::chrono::microseconds duration) {
  const auto until = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < until) {
  }
}

void LoadBatch() { Work(std::chrono::microseconds(300)); }

void Augment() {
  OTT_STOPWATCH_SCOPE("augment");
  Work(std::chrono::microseconds(100));
}

void Forward() { Work(std::chrono::microseconds(800)); }

void Backward() { Work(std::chrono::microseconds(1200)); }

}  // namespace

int main() {
  ott::Stopwatch& stopwatch = ott::Stopwatch::Get();

  // Without this call all the others do nothing.
  ott::Stopwatch::Options options;
  options.num_warmup_iters = 5;
  options.print_every_n_iters = 100;
  options.cpu_usage_measurement = "model";
  if (const absl::Status enabled = stopwatch.Enable(options); !enabled.ok()) {
    std::fprintf(stderr, "%s\n", std::string(enabled.message()).c_str());
    return 1;
  }

  stopwatch.StartOneTime("training");
  stopwatch.StartOneTime("open data set");
  Work(std::chrono::milliseconds(50));
  stopwatch.EndOneTime("open data set");

  for (int iteration = 0; iteration < 105; ++iteration) {
    {
      OTT_STOPWATCH_SCOPE("data");
      LoadBatch();
      Augment();
    }

    // One measurement over two parts of the iteration.
    stopwatch.Start("model");
    Forward();
    stopwatch.End("model");

    if (iteration % 10 == 0) {
      OTT_STOPWATCH_SCOPE("validate");
      Work(std::chrono::microseconds(500));
    }

    stopwatch.Start("model");
    Backward();
    stopwatch.End("model");

    stopwatch.FinishIter();
  }
}
