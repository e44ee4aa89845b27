// write_large DIR RANKS TRACE_MB DUMP_MB last|all: what RANKS ranks left, for tests/share/table.
//
//   DIR/traces                   of torch.profiler, TRACE_MB each
//   DIR/reference, DIR/current   dumps, DUMP_MB each in tensors of 8 MB, whose last element differs, or all
//   by rounding

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/kineto/traces_for_test.h"
#include "ott/dist/directory/run_directory.h"

namespace {

constexpr int64_t kMegabyte = 1'000'000;

enum class Differs { kNone, kLast, kAll };

void WriteDump(const std::string& run, int rank, int64_t num_tensors, Differs differs) {
  ott::TensorDumper dumper;
  ott::TensorDumperOptions options;
  options.dir = ott::DumpsDirectory(run, rank);
  options.rank = rank;
  options.reserved_bytes = 0;
  OTT_CHECK(dumper.Enable(options).ok());
  std::vector<float> values(8 * kMegabyte / sizeof(float));
  for (int64_t tensor = 0; tensor < num_tensors; ++tensor) {
    const float scale = differs == Differs::kAll ? 1.0001e-3f : 1e-3f;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 2654435761u + static_cast<size_t>(tensor)) % 1000003) * scale;
    // Equal digests would save the reading.
    if (differs == Differs::kLast) values.back() += 1;
    OTT_CHECK(dumper
                  .AddTensorData(absl::StrCat("weights.w", tensor),
                                 ott::TensorView(values.data(), {static_cast<int64_t>(values.size())}),
                                 ott::DumpFormat::kBinary)
                  .ok());
  }
  OTT_CHECK(dumper.Dump().ok());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 1;
  const std::string directory = argv[1];
  const int num_ranks = std::atoi(argv[2]);
  const int64_t trace_bytes = std::atoi(argv[3]) * kMegabyte;
  const int64_t num_tensors = std::atoi(argv[4]) / 8;
  const Differs differs = argv[5] == std::string("all") ? Differs::kAll : Differs::kLast;
  constexpr int kOthers = 500;
  const auto step_bytes =
      static_cast<int64_t>(ott::kineto::RankTraceForTest(0, 0, 0, 0, 10, kOthers).size() / 10);
  OTT_CHECK(ott::MakeDirectories(directory + "/traces").ok());
  ott::RunInfo info;
  info.set_world_size(num_ranks);
  for (const char* run : {"/reference", "/current"}) {
    OTT_CHECK(ott::MakeDirectories(directory + run).ok());
    OTT_CHECK(ott::WriteRunInfo(directory + run, info).ok());
  }
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::string trace = ott::kineto::RankTraceForTest(
        rank, 3000 * (rank == 1), 3000, 0, static_cast<int>(trace_bytes / step_bytes), kOthers);
    OTT_CHECK(ott::WriteFileAtomically(absl::StrCat(directory, "/traces/rank", rank, ".json"), trace).ok());
    WriteDump(directory + "/reference", rank, num_tensors, Differs::kNone);
    WriteDump(directory + "/current", rank, num_tensors, differs);
  }
  return 0;
}
