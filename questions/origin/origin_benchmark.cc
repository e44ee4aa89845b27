// bazel run //questions/origin:origin_benchmark -- [OPERATIONS]: how long `ott origin` takes for logs of 1 M
// operations on each of 8 ranks, beside its limit: bit for bit, and with a perturbed run where every
// operation differs by rounding. The ranks' files are links to one, so that they fit on a small disk.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/benchmark_limits.h"
#include "ott/core/base/check.h"
#include "ott/core/op_log/op_log.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/origin/origin.h"

namespace ott::origin {
namespace {

constexpr int kRanks = 8;
constexpr int kOpsOfIteration = 10000;

struct LogKind {
  // Every 100th operation is renamed or followed by another one, and one late in the log is wrong.
  bool other_program = false;
  // Added to every value.
  double rounding = 0;
};

void WriteLog(const std::string& path, int64_t num_ops, const LogKind& kind) {
  OpLog::Options options;
  options.path = path;
  auto log = OpLog::Create(options);
  OTT_CHECK(log.ok()) << log.status();
  const bool other = kind.other_program;
  const int64_t wrong = num_ops - num_ops / 10;
  const auto run = [&](const std::string& name, const std::string& module, int64_t in, int64_t out) {
    ObservedOp op;
    op.name = name;
    op.module = module;
    // The second element tells values apart.
    const double of_in[] = {1 + kind.rounding, 1e-9 * static_cast<double>(in)};
    const double of_out[] = {1 + kind.rounding, 1e-9 * static_cast<double>(out)};
    const TensorView in_view(of_in, {2});
    const TensorView out_view(of_out, {2});
    const OpArg arg(in_view);
    op.args = {&arg, 1};
    void* const handle = (*log)->Begin(op);
    const OpArg output(out_view);
    (*log)->AddOutputs(handle, {&output, 1});
    (*log)->End(handle);
  };
  for (int64_t i = 0; i < num_ops; ++i) {
    if (i % kOpsOfIteration == 0) {
      const absl::Status began = (*log)->BeginIteration(i / kOpsOfIteration);
      OTT_CHECK(began.ok()) << began;
    }
    const int64_t place = i % kOpsOfIteration;
    const bool renamed = other && place % 200 == 7;
    const int64_t in = other && i > wrong ? -i : i;
    const int64_t out = other && i >= wrong ? -i - 1 : i + 1;
    run(renamed ? "fast_linear" : "linear", absl::StrCat("layer", place), in, out);
    if (other && place % 200 == 107) run("copy", absl::StrCat("layer", place), out, out);
  }
  OTT_CHECK((*log)->Finish().ok());
}

std::string MakeRun(const std::string& dir, int64_t num_ops, const LogKind& kind) {
  RunInfo info;
  info.set_world_size(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) std::filesystem::create_directories(RankDirectory(dir, rank));
  OTT_CHECK(WriteRunInfo(dir, info).ok());
  WriteLog(OpLogPath(dir, 0), num_ops, kind);
  for (int rank = 1; rank < kRanks; ++rank) {
    std::filesystem::create_hard_link(OpLogPath(dir, 0), OpLogPath(dir, rank));
  }
  return dir;
}

OriginVerdict Measure(const char* what, const std::string& a, const std::string& b,
                      const std::string& perturbed, int64_t num_ops, BenchmarkLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  const auto verdict = FindOrigin(a, b, perturbed);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double cpu = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  OTT_CHECK(verdict.ok()) << verdict.status();
  std::printf("%s\n%.2f s of CPU time on all threads\n", verdict->verdict().c_str(), cpu);
  limits.AtMost(what, seconds, 10.0 * static_cast<double>(num_ops) / 1e6, "s");
  return *verdict;
}

int Run(int64_t num_ops) {
  const std::string dir = std::filesystem::temp_directory_path() / "ott_origin_benchmark";
  std::filesystem::remove_all(dir);
  const std::string a = MakeRun(dir + "/a", num_ops, {});
  const std::string other = MakeRun(dir + "/other", num_ops, {true, 0});
  const std::string rounded = MakeRun(dir + "/rounded", num_ops, {false, 2e-7});
  const std::string perturbed = MakeRun(dir + "/perturbed", num_ops, {false, -2e-7});
  std::printf("%lld operations on each of %d ranks, %.0f MB a log\n", static_cast<long long>(num_ops), kRanks,
              static_cast<double>(std::filesystem::file_size(OpLogPath(a, 0))) / 1e6);
  BenchmarkLimits limits;
  const OriginVerdict wrong = Measure("aligned and judged bit for bit", a, other, "", num_ops, limits);
  const OriginVerdict none =
      Measure("aligned and judged by a perturbed run", a, rounded, perturbed, num_ops, limits);
  const bool right =
      wrong.iteration() == (num_ops - num_ops / 10) / kOpsOfIteration && none.kind() == OriginVerdict::NONE;
  std::printf("the verdicts are %s\n", right ? "right" : "WRONG");
  std::filesystem::remove_all(dir);
  return right && limits.all_hold() ? 0 : 1;
}

}  // namespace
}  // namespace ott::origin

int main(int argc, char** argv) {
  const int64_t num_ops = argc > 1 ? std::atoll(argv[1]) : 1000000;
  OTT_CHECK(num_ops >= 1000) << "usage: origin_benchmark [OPERATIONS]";
  return ott::origin::Run(num_ops);
}
