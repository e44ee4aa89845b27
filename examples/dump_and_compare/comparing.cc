// A reference run is dumped; then two changed versions of the same computation are compared with it, one that
// sums in another order and one with a mistake.
//
//   bazel run //examples/dump_and_compare:comparing -- /tmp/dumps
//
// `ott compare` does the same for dumps of two runs.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ott/compare.h"
#include "ott/status_macros.h"
#include "ott/tensor_dumper.h"

namespace {

enum class Version { kReference, kOtherOrder, kWrong };

// Sums of the rows of a matrix.
std::vector<float> SumRows(const std::vector<float>& matrix, int num_rows, Version version) {
  const int num_columns = static_cast<int>(matrix.size()) / num_rows;
  std::vector<float> sums(num_rows);
  for (int row = 0; row < num_rows; ++row) {
    for (int i = 0; i < num_columns; ++i) {
      const int column = version == Version::kReference ? i : num_columns - 1 - i;
      sums[row] += matrix[row * num_columns + column];
    }
  }
  if (version == Version::kWrong) sums[7] += 0.5f;
  return sums;
}

absl::Status Add(Version version) {
  constexpr int kRows = 16;
  std::vector<float> matrix(kRows * 1000);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = 1.0f / static_cast<float>(i + 1);
  const std::vector<float> sums = SumRows(matrix, kRows, version);
  ott::TensorDumper& dumper = ott::TensorDumper::Get();
  OTT_RETURN_IF_ERROR(dumper.AddTensorData("matrix", ott::TensorView(matrix.data(), {kRows, 1000}),
                                           ott::DumpFormat::kBinary));
  return dumper.AddTensorData("sums", ott::TensorView(sums.data(), {kRows}));
}

// Compares with dump 0.
absl::Status Compare(const char* what, Version version, const ott::CompareOptions& options) {
  ott::TensorDumper& dumper = ott::TensorDumper::Get();
  dumper.ResetDumpCount();
  OTT_RETURN_IF_ERROR(Add(version));
  OTT_ASSIGN_OR_RETURN(const ott::TreeComparison comparison, dumper.CompareToDumpedData(options));
  std::printf("\n--- %s\n%s", what, ott::ToText(comparison).c_str());
  return absl::OkStatus();
}

absl::Status Run(const std::string& dir) {
  ott::TensorDumperOptions options;
  options.dir = dir;
  ott::TensorDumper& dumper = ott::TensorDumper::Get();
  OTT_RETURN_IF_ERROR(dumper.Enable(options));
  OTT_RETURN_IF_ERROR(Add(Version::kReference));
  OTT_RETURN_IF_ERROR(dumper.Dump());
  std::printf("the reference is dumped to %s/0\n", dir.c_str());

  ott::CompareOptions strict;
  strict.tensors.num_worst = 2;
  ott::CompareOptions tolerant = strict;
  tolerant.default_tolerances = true;
  OTT_RETURN_IF_ERROR(Compare("the same again", Version::kReference, strict));
  OTT_RETURN_IF_ERROR(Compare("another order of summation, no tolerance", Version::kOtherOrder, strict));
  OTT_RETURN_IF_ERROR(
      Compare("another order of summation, tolerance of float32", Version::kOtherOrder, tolerant));
  OTT_RETURN_IF_ERROR(Compare("a mistake, tolerance of float32", Version::kWrong, tolerant));

  // Dump() itself can compare: a program that dumps becomes one that checks itself.
  dumper.SetDumpIsCompare(tolerant);
  dumper.ResetDumpCount();
  OTT_RETURN_IF_ERROR(Add(Version::kWrong));
  const absl::Status status = dumper.Dump();
  std::printf("\n--- Dump() that compares returns %s\n",
              status.ok() ? "OK" : absl::StatusCodeToString(status.code()).c_str());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIR\n", argv[0]);
    return 2;
  }
  if (const absl::Status status = Run(argv[1]); !status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
}
