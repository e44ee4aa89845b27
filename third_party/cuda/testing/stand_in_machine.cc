#include "third_party/cuda/testing/stand_in_machine.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

#include "third_party/cuda/testing/stand_in_kernels.h"

namespace ott::cuda_stand_in {
namespace {

struct sigaction previous_action;
thread_local bool is_in_host_function = false;

std::atomic<const OttCudaTracer*> tracer{nullptr};
std::atomic<uint32_t> latest_correlation{0};
// The number of the call that this thread is in, or, in a stream's thread, of that which gave it what it
// runs.
thread_local uint32_t correlation = 0;

// Loads the injection, like CUDA's driver as it starts.
void LoadInjection() {
  const char* const path = std::getenv("CUDA_INJECTION64_PATH");
  void* const library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
  if (library == nullptr) return;
  if (auto* const start = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) start();
}

void OnFault(int signal, siginfo_t* info, void* context) {
  LeaveKernelAfterFault();
  if (Machine::Get().DeviceOf(info->si_addr) != nullptr) {
    constexpr char kWhat[] = "CUDA stand-in: the host touched device memory\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWhat, sizeof(kWhat) - 1);
  }
  // The access happens again, and meets whoever was there before.
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
    previous_action.sa_sigaction(signal, info, context);
  } else {
    sigaction(signal, &previous_action, nullptr);
  }
}

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

int64_t NumDevices() { return FromEnvironment("OTT_CUDA_DEVICES", 2); }

}  // namespace

Machine& Machine::Get() {
  static Machine& machine = *new Machine;
  static const bool is_injected = (LoadInjection(), true);
  (void)is_injected;
  return machine;
}

Machine::Machine() : process_(getpid()) {
  const int64_t memory = FromEnvironment("OTT_CUDA_MEMORY", int64_t{16} << 30);
  for (int64_t i = 0; i < NumDevices(); ++i) {
    devices_.push_back(std::make_unique<Device>(memory));
  }
  seed_ = static_cast<uint64_t>(FromEnvironment("OTT_CUDA_SEED", 1));
  const char* const failures = std::getenv("OTT_CUDA_FAIL");
  std::istringstream all(failures == nullptr ? "" : failures);
  for (std::string failure; std::getline(all, failure, ',');) {
    char function[64];
    long nth = 0;
    int error = 0;
    if (std::sscanf(failure.c_str(), "%63[^:]:%ld:%d", function, &nth, &error) != 3) {
      std::fprintf(stderr, "CUDA stand-in: OTT_CUDA_FAIL: %s is not FUNCTION:NTH:ERROR\n", failure.c_str());
      std::abort();
    }
    failures_.push_back({function, nth, static_cast<cudaError_t>(error), false});
  }
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  // The handler runs on the fiber's own stack, from which the scheduler goes on.
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &previous_action);
}

Device* Machine::DeviceOf(const void* pointer) {
  for (const auto& device : devices_) {
    if (device->arena.Holds(pointer)) return device.get();
  }
  return nullptr;
}

cudaError_t Machine::BeginCall(const char* function, bool is_release, int device) {
  if (getpid() != process_) {
    std::fprintf(stderr, "CUDA stand-in: %s was called in the child of a fork\n", function);
    std::abort();
  }
  if (is_in_host_function) return cudaErrorNotPermitted;
  if (devices_.empty()) return cudaErrorNoDevice;
  const std::lock_guard lock(mutex_);
  ++counts_.calls;
  return Injected(function, is_release, device);
}

cudaError_t Machine::Injected(const std::string& function, bool is_release, int device) {
  cudaError_t error = devices_[device]->sticky;
  for (Failure& failure : failures_) {
    const bool is_any =
        failure.function == "*" && !is_release && function != "execution" && function != "cudaSetDevice";
    if ((!is_any && failure.function != function) || failure.calls_left == 0) continue;
    if (--failure.calls_left > 0) continue;
    ++counts_.failures;
    if (failure.is_sticky) devices_[device]->sticky = failure.error;
    if (error == cudaSuccess) error = failure.error;
  }
  return error;
}

Stream* Machine::MakeStream(int device, bool is_blocking) {
  auto* const stream = new Stream;
  stream->device = device;
  stream->number = next_stream_number_++;
  stream->is_blocking = is_blocking;
  stream->random.seed(seed_ + 1000 * static_cast<uint64_t>(device) + devices_[device]->streams.size());
  std::thread([this, stream] { RunStream(stream); }).detach();
  return stream;
}

void Machine::DestroyStream(Stream* stream) {
  stream->is_closed = true;
  changed_.notify_all();
}

Stream* Machine::FindStream(cudaStream_t handle, int device) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    Stream*& stream = devices_[device]->default_stream;
    if (stream == nullptr) stream = MakeStream(device, true);
    return stream;
  }
  auto* const stream = reinterpret_cast<Stream*>(handle);
  for (const auto& each : devices_) {
    if (each->streams.count(stream) > 0 && !stream->is_closed) return stream;
  }
  return nullptr;
}

MomentPtr Machine::Enqueue(Stream* stream, std::function<cudaError_t()> run, bool is_release) {
  return Enqueue(stream, {{}, std::move(run), is_release, nullptr});
}

void Machine::EnqueueWait(Stream* stream, MomentPtr moment) {
  Enqueue(stream, {{std::move(moment)}, nullptr, false, nullptr});
}

MomentPtr Machine::Enqueue(Stream* stream, Stream::Operation operation) {
  std::vector<MomentPtr>& after = operation.after;
  Device& device = *devices_[stream->device];
  if (stream == device.default_stream) {
    for (const Stream* other : device.streams) {
      if (other->is_blocking && other->last != nullptr) after.push_back(other->last);
    }
  } else if (stream->is_blocking && device.default_stream != nullptr &&
             device.default_stream->last != nullptr) {
    after.push_back(device.default_stream->last);
  }
  stream->last = std::make_shared<Moment>();
  operation.done = stream->last;
  operation.correlation = correlation;
  stream->operations.push_back(std::move(operation));
  changed_.notify_all();
  return stream->last;
}

void Machine::WaitFor(const MomentPtr& moment, std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return moment == nullptr || moment->has_come; });
}

void Machine::WaitForDevice(Device& device, std::unique_lock<std::mutex>& lock) {
  std::vector<MomentPtr> all;
  for (const Stream* stream : device.streams) all.push_back(stream->last);
  if (device.default_stream != nullptr) all.push_back(device.default_stream->last);
  for (const MomentPtr& moment : all) WaitFor(moment, lock);
}

void Machine::RunStream(Stream* stream) {
  sigset_t all;
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  Device& device = *devices_[stream->device];
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !stream->operations.empty() || stream->is_closed; });
    if (stream->operations.empty()) break;
    Stream::Operation operation = std::move(stream->operations.front());
    stream->operations.pop_front();
    for (const MomentPtr& moment : operation.after) WaitFor(moment, lock);
    lock.unlock();
    Dawdle(stream->random);
    lock.lock();
    // After an error that stays, nothing runs any more.
    cudaError_t error = operation.run == nullptr || operation.is_release
                            ? cudaSuccess
                            : Injected("execution", false, stream->device);
    const bool may_run = device.sticky == cudaSuccess && error == cudaSuccess;
    lock.unlock();
    correlation = operation.correlation;
    if (operation.run != nullptr && (may_run || operation.is_release)) error = operation.run();
    operation.run = nullptr;
    lock.lock();
    if (error != cudaSuccess && device.sticky == cudaSuccess) device.sticky = error;
    operation.done->has_come = true;
    operation.done->when = std::chrono::steady_clock::now();
    changed_.notify_all();
  }
  device.streams.erase(stream);
  lock.unlock();
  delete stream;
}

void Machine::Reset(uint64_t seed) {
  std::unique_lock lock(mutex_);
  for (const auto& device : devices_) WaitForDevice(*device, lock);
  failures_.clear();
  counts_ = {};
  seed_ = seed;
  for (const auto& device : devices_) {
    device->sticky = cudaSuccess;
    if (device->default_stream != nullptr) device->default_stream->random.seed(seed);
    for (Stream* stream : device->streams) stream->random.seed(++seed);
  }
}

OttCudaCounts Machine::Counts() {
  const std::lock_guard lock(mutex_);
  OttCudaCounts counts = counts_;
  counts.pinned_blocks = pinned_.num_blocks();
  counts.events = static_cast<int64_t>(events_.size());
  for (const auto& device : devices_) {
    counts.device_blocks += device->arena.num_blocks();
    counts.device_bytes += device->arena.num_bytes();
    counts.streams += std::count_if(device->streams.begin(), device->streams.end(),
                                    [](const Stream* stream) { return !stream->is_closed; });
  }
  return counts;
}

void Machine::Fail(const char* function, int64_t nth, cudaError_t error, bool is_sticky) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({function, nth, error, is_sticky});
}

void Dawdle(std::mt19937_64& random) {
  const uint64_t dice = random() % 16;
  if (dice < 8) return;
  const uint64_t longest = dice < 14 ? 100 : 1000;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % longest));
}

TracedCall::TracedCall(const char* function) : function_(function) {
  correlation = ++latest_correlation;
  if (const OttCudaTracer* const to = tracer) start_ = to->now();
}

TracedCall::~TracedCall() {
  const OttCudaTracer* const to = tracer;
  if (to != nullptr && start_ != 0) to->call(function_, correlation, start_, to->now());
}

TracedWork::TracedWork(const Stream* stream, OttCudaWorkKind kind) {
  work_.kind = kind;
  work_.device = static_cast<uint32_t>(stream->device);
  work_.stream = stream->number;
  work_.correlation = correlation;
  if (const OttCudaTracer* const to = tracer) work_.start = to->now();
}

TracedWork::~TracedWork() {
  const OttCudaTracer* const to = tracer;
  if (to == nullptr || work_.start == 0) return;
  work_.end = to->now();
  to->work(&work_);
}

void TraceGraphNode(uint64_t node, uint64_t original) {
  if (const OttCudaTracer* const to = tracer) to->graph_node(node, original);
}

bool IsInHostFunction() { return is_in_host_function; }
void SetInHostFunction(bool is_in) { is_in_host_function = is_in; }

}  // namespace ott::cuda_stand_in

extern "C" {

void ottCudaSetTracer(const OttCudaTracer* to) { ott::cuda_stand_in::tracer = to; }
int ottCudaNumDevices() { return static_cast<int>(ott::cuda_stand_in::NumDevices()); }
}
