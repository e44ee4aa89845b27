// Dumps a small computation in every way: tensors in several formats, images, objects of one's own type,
// gradients.
//
//   bazel run //examples/dump_and_compare:dumping -- /tmp/dumps

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ott/finite_differences.h"
#include "ott/status_macros.h"
#include "ott/tensor.h"
#include "ott/tensor_dumper.h"

namespace {

struct Box {
  float corners[4];
};

// Two gray images of 8 x 8: a gradient and a disk.
std::vector<float> MakeImages() {
  std::vector<float> images;
  for (int image = 0; image < 2; ++image) {
    for (int y = 0; y < 8; ++y) {
      for (int x = 0; x < 8; ++x) {
        images.push_back(image == 0
                             ? static_cast<float>(x + y)
                             : std::hypot(static_cast<float>(x) - 3.5f, static_cast<float>(y) - 3.5f) < 3);
      }
    }
  }
  return images;
}

absl::Status AddData(int iteration, std::vector<float>& weights) {
  ott::TensorDumper& dumper = ott::TensorDumper::Get();
  // Names within the range start with "model.".
  const ott::DumpRange range("model");
  OTT_RETURN_IF_ERROR(dumper.AddTensorData("step", iteration));
  OTT_RETURN_IF_ERROR(dumper.AddTensorData("weights", ott::TensorView(weights.data(), {2, 3})));

  std::vector<float> activations(1000);
  for (size_t i = 0; i < activations.size(); ++i) activations[i] = weights[i % 6] * static_cast<float>(i);
  const ott::TensorView activations_view(activations.data(), {10, 100});
  OTT_RETURN_IF_ERROR(dumper.AddTensorData("activations", activations_view, ott::DumpFormat::kBinary));
  OTT_RETURN_IF_ERROR(dumper.AddTensorData("for_numpy", activations_view, ott::DumpFormat::kNpy));
  OTT_RETURN_IF_ERROR(dumper.AddTensorData("summary", activations_view, ott::DumpFormat::kStatistics));

  const std::vector<float> images = MakeImages();
  OTT_RETURN_IF_ERROR(
      dumper.AddTensorData("images", ott::TensorView(images.data(), {2, 8, 8}), ott::DumpFormat::kImageI));

  // Converted by what main() registers. A callable is called only where it is dumped.
  OTT_RETURN_IF_ERROR(dumper.AddTensorData("boxes", [] {
    return std::vector<Box>{{{0, 0, 4, 4}}, {{2, 2, 7, 7}}};
  }));
  const int64_t sizes[2] = {1, 3};
  const ott::RaggedBatch batch{{ott::TensorView(weights.data(), {2, 3}), nullptr},
                               {ott::TensorView(sizes, {2}), nullptr}};
  OTT_RETURN_IF_ERROR(dumper.AddTensorData("samples", batch));

  // d loss / d weights, with the loss the sum of squares.
  OTT_RETURN_IF_ERROR(dumper.AddGradData("weights", ott::TensorView(weights.data(), {2, 3})));
  return dumper.SetGradients(ott::FiniteDifferences([&weights] {
    double loss = 0;
    for (const float weight : weights) loss += weight * weight;
    return loss;
  }));
}

absl::Status Run(const std::string& dir) {
  ott::TensorDumperOptions options;
  options.dir = dir;
  options.selection.iterations.every = 2;
  options.num_writer_threads = 1;
  ott::TensorDumper& dumper = ott::TensorDumper::Get();
  OTT_RETURN_IF_ERROR(dumper.Enable(options));
  dumper.RegisterConverter<Box>([](const Box& box) { return ott::TensorView(box.corners, {2, 2}); });
  dumper.EnableRaggedBatchDumping(/*as_per_sample=*/true);
  dumper.PerformAfterDumpCount(4, [] { std::puts("iterations 0 to 3 are done"); });

  std::vector<float> weights = {0.5f, -1, 2, 0.25f, 3, -0.125f};
  for (int iteration = 0; iteration < 4; ++iteration) {
    std::printf("iteration %d: %s\n", iteration, dumper.active() ? "is dumped" : "is not selected");
    OTT_RETURN_IF_ERROR(AddData(iteration, weights));
    OTT_RETURN_IF_ERROR(dumper.Dump());
    for (float& weight : weights) weight *= 0.5f;
  }
  return dumper.Flush();
}

void ListFiles(const std::string& dir) {
  std::vector<std::string> lines;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = std::filesystem::relative(entry.path(), dir);
    lines.push_back(std::to_string(entry.file_size()) + " bytes  " + name);
  }
  std::sort(lines.begin(), lines.end(), [](const std::string& a, const std::string& b) {
    return a.substr(a.find("  ")) < b.substr(b.find("  "));
  });
  for (const std::string& line : lines) std::puts(line.c_str());
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
  ListFiles(argv[1]);
}
