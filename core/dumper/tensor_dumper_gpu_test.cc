// Dumps of tensors in device memory.

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "ott/third_party/cuda/testing/leak_check.h"
#include "ott/third_party/cuda/testing/stand_in.h"
#include "tensor_dumper_for_test.h"

namespace ott {
namespace {

class TensorDumperOnDevice : public TensorDumperTest {
 protected:
  static constexpr int64_t kBytes = 5000;

  TensorDumperOnDevice() {
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&memory_, kBytes), cudaSuccess);
    device_.kind = Device::Kind::kCuda;
    device_.stream = stream_;
  }
  ~TensorDumperOnDevice() override {
    EXPECT_TRUE(dumper_.Disable().ok());
    EXPECT_EQ(cudaFree(memory_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  TensorView View() const { return TensorView(memory_, DType::kUInt8, {kBytes}, device_); }
  void Train(int value) { ASSERT_EQ(cudaMemsetAsync(memory_, value, kBytes, stream_), cudaSuccess); }

  void ExpectDumped(const std::string& dir, int value) {
    const absl::StatusOr<Dump> dump = ReadDump(dir);
    ASSERT_TRUE(dump.ok()) << dump.status();
    const std::vector<NamedTensor> tensors = ListTensors(dump->tensors);
    ASSERT_FALSE(tensors.empty());
    for (const NamedTensor& tensor : tensors) {
      const auto* const bytes = static_cast<const uint8_t*>(tensor.tensor.view.data());
      EXPECT_EQ(std::vector<int>(bytes, bytes + tensor.tensor.view.num_elements()),
                std::vector<int>(tensor.tensor.view.num_elements(), value))
          << tensor.path;
    }
  }

  void* memory_ = nullptr;
  cudaStream_t stream_ = nullptr;
  Device device_;
};

// The schedules of a stand-in, or a GPU's own.
TEST_F(TensorDumperOnDevice, TheTrainingMayOverwriteItsTensorsAtOnce) {
  EnableWriter();
  constexpr int kSeeds = 200;
  for (int seed = 0; seed < kSeeds; ++seed) {
    if (FindCudaStandIn() != nullptr) CudaStandIn().Reset(seed);
    Train(seed);
    Add("weights", View(), DumpFormat::kBinary);
    Train(255);
    DumpNow();
    Train(254);
  }
  ASSERT_TRUE(dumper_.Flush().ok());
  for (int seed = 0; seed < kSeeds; ++seed) ExpectDumped(dir_ + "/" + std::to_string(seed), seed);
}

TEST_F(TensorDumperOnDevice, NobodyWaitsForTheStreamUntilTheFilesAreWritten) {
  EnableWriter();
  std::atomic<bool> released{false};
  ASSERT_EQ(cudaLaunchHostFunc(
                stream_,
                [](void* flag) {
                  while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
                },
                &released),
            cudaSuccess);
  Train(7);
  Add("weights", View(), DumpFormat::kBinary);
  DumpNow();
  Train(8);
  // We came here although the stream is held up.
  released = true;
  ASSERT_TRUE(dumper_.Flush().ok());
  ExpectDumped(dir_ + "/0", 7);
}

TEST_F(TensorDumperOnDevice, AnyFormatAndStridesAreDumped) {
  Enable();
  Train(9);
  const TensorView columns(memory_, DType::kUInt8, {20, 30}, {1, 20}, device_);
  Add("json", columns);
  Add("npy", View(), DumpFormat::kNpy);
  Train(10);
  DumpNow();
  ExpectDumped(dir_ + "/0", 9);
}

TEST_F(TensorDumperOnDevice, TensorsStayOnTheDeviceWhileThatIsAskedFor) {
  const auto kind = [&] {
    Add("weights", View());
    const Device::Kind found = ListTensors(*dumper_.tensors()).at(0).tensor.view.device().kind;
    dumper_.Discard();
    return found;
  };
  Enable();
  dumper_.SetKeepOnDevice(true);
  EXPECT_EQ(kind(), Device::Kind::kCuda);
  ASSERT_TRUE(dumper_.Disable().ok());
  Enable();
  EXPECT_EQ(kind(), Device::Kind::kHost);
}

TEST_F(TensorDumperOnDevice, ErrorsAreToldAndNothingLeaks) {
  if (FindCudaStandIn() == nullptr) GTEST_SKIP() << "errors of a GPU cannot be had at will";
  Train(3);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  int number = 0;
  ExpectErrorsAreToldAndNothingLeaks([&] {
    TensorDumperOptions options = OptionsFor(dir_ + "/" + std::to_string(++number));
    options.num_writer_threads = 1;
    options.max_queued_bytes = 0;
    TensorDumper dumper;
    absl::Status status = dumper.Enable(options);
    status.Update(dumper.AddTensorData("weights", View(), DumpFormat::kBinary));
    if (status.ok()) status = dumper.Dump();
    status.Update(dumper.Flush());
    status.Update(dumper.Disable());
    // A tensor whose failure was not told was dumped.
    if (status.ok()) ExpectDumped(options.dir + "/0", 3);
    return status;
  });
}

TEST_F(TensorDumperOnDevice, TheChildOfAForkLeavesCudaAlone) {
  Enable();
  Train(5);
  Add("weights", View(), DumpFormat::kBinary);
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = dumper_.AddTensorData("more", View(), DumpFormat::kBinary);
    const bool is_good = absl::IsFailedPrecondition(status) && !dumper_.Dump().ok();
    dumper_.Disable().IgnoreError();
    _exit(is_good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  DumpNow();
  ExpectDumped(dir_ + "/0", 5);
}

}  // namespace
}  // namespace ott
