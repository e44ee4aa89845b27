#include "third_party/cuda/testing/stand_in_kernels.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>

namespace ott::cuda_stand_in {
namespace {

constexpr int kWarp = 32;
constexpr size_t kStackBytes = 64 * 1024;

std::map<std::string, CaptureBody>& Kernels() {
  static auto& kernels = *new std::map<std::string, CaptureBody>;
  return kernels;
}

// "void a::(anonymous namespace)::Name<true>(int)" and "{anonymous}::Name<true>" are Name<true>.
std::string BareName(std::string name) {
  for (const std::string_view anonymous : {"(anonymous namespace)", "{anonymous}"}) {
    for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
      name.replace(at, anonymous.size(), "_");
  }
  name = name.substr(0, name.find('('));
  const size_t arguments = std::min(name.find('<'), name.size());
  size_t begin = name.rfind("::", arguments);
  begin = begin == std::string::npos ? 0 : begin + 2;
  const size_t space = name.rfind(' ', arguments);
  if (space != std::string::npos) begin = std::max(begin, space + 1);
  return name.substr(begin);
}

void LoadHostBodies() {
  const char* const paths = std::getenv("OTT_CUDA_KERNELS");
  std::istringstream all(paths == nullptr ? "" : paths);
  for (std::string path; std::getline(all, path, ':');) {
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
      std::fprintf(stderr, "CUDA stand-in: %s\n", dlerror());
      std::abort();
    }
  }
}

class Runner;
thread_local Runner* current = nullptr;

uint64_t Nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

// A launch on one thread of the host.
class Runner {
 public:
  Runner(const OttCudaBody& body, dim3 grid, dim3 block, uint64_t seed)
      : body_(body), num_threads_(block.x * block.y * block.z), seed_(seed) {
    position_.grid_size = grid;
    position_.block_size = block;
    stacks_ = static_cast<char*>(mmap(nullptr, num_threads_ * kStackBytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (stacks_ == MAP_FAILED) std::abort();
    fibers_.resize(num_threads_);
  }
  ~Runner() { munmap(stacks_, num_threads_ * kStackBytes); }

  cudaError_t Run() {
    current = this;
    const dim3 grid = position_.grid_size;
    for (unsigned z = 0; z < grid.z && error_ == cudaSuccess; ++z) {
      for (unsigned y = 0; y < grid.y && error_ == cudaSuccess; ++y) {
        for (unsigned x = 0; x < grid.x && error_ == cudaSuccess; ++x) {
          position_.block = uint3{x, y, z};
          RunBlock();
        }
      }
    }
    current = nullptr;
    return error_;
  }

  const OttCudaThread* position() const { return &position_; }
  // The time of the device: since the launch, that of this thread alone, so that a busy machine does not
  // matter.
  uint64_t nanoseconds() const { return start_ + Nanoseconds(CLOCK_THREAD_CPUTIME_ID) - thread_start_; }
  int lane() const { return running_ % kWarp; }

  void SyncThreads() {
    const int round = block_round_;
    ++at_block_barrier_;
    ++num_steps_;
    while (block_round_ == round) {
      if (at_block_barrier_ == num_alive_) {
        at_block_barrier_ = 0;
        ++block_round_;
        ++num_steps_;
      } else {
        Yield();
      }
    }
  }

  uint64_t Shuffle(uint32_t mask, uint64_t bits, int from) {
    Warp& warp = warps_[running_ / kWarp];
    const int lanes = std::min(kWarp, num_threads_ - running_ / kWarp * kWarp);
    const int expected = __builtin_popcount(lanes == kWarp ? mask : mask & ((1u << lanes) - 1));
    const int round = warp.round;
    // Whoever is here a round later cannot overwrite what somebody still reads.
    uint64_t* const values = warp.values[round % 2];
    values[lane()] = bits;
    ++warp.num_arrived;
    ++num_steps_;
    if (warp.num_arrived == expected) {
      warp.num_arrived = 0;
      ++warp.round;
    }
    while (warp.round == round) Yield();
    return values[from];
  }

  void LeaveAfterFault() {
    error_ = cudaErrorIllegalAddress;
    setcontext(&scheduler_);
  }

 private:
  struct Fiber {
    ucontext_t context;
    bool is_done = false;
  };
  struct Warp {
    uint64_t values[2][kWarp];
    int num_arrived = 0;
    int round = 0;
  };

  static void Enter() {
    Runner* const runner = current;
    runner->body_.run();
    runner->fibers_[runner->running_].is_done = true;
    --runner->num_alive_;
    ++runner->num_steps_;
    setcontext(&runner->scheduler_);
  }

  void Yield() { swapcontext(&fibers_[running_].context, &scheduler_); }

  void RunBlock() {
    warps_.assign((num_threads_ + kWarp - 1) / kWarp, Warp());
    at_block_barrier_ = 0;
    num_alive_ = num_threads_;
    for (int i = 0; i < num_threads_; ++i) {
      Fiber& fiber = fibers_[i];
      fiber.is_done = false;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = stacks_ + i * kStackBytes;
      fiber.context.uc_stack.ss_size = kStackBytes;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, Enter, 0);
    }
    const int first = static_cast<int>((seed_ + position_.block.x * uint64_t{0x9e3779b9}) % num_threads_);
    while (num_alive_ > 0) {
      const int64_t steps = num_steps_;
      for (int i = 0; i < num_threads_; ++i) {
        running_ = (first + i) % num_threads_;
        if (fibers_[running_].is_done) continue;
        const dim3& size = position_.block_size;
        position_.thread = uint3{running_ % size.x, running_ / size.x % size.y, running_ / size.x / size.y};
        swapcontext(&scheduler_, &fibers_[running_].context);
        if (error_ != cudaSuccess) return;
      }
      if (num_steps_ == steps) {
        error_ = cudaErrorLaunchTimeout;
        return;
      }
    }
  }

  const OttCudaBody& body_;
  const int num_threads_;
  const uint64_t seed_;
  const uint64_t start_ = Nanoseconds(CLOCK_REALTIME);
  const uint64_t thread_start_ = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  char* stacks_;
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  ucontext_t scheduler_;
  OttCudaThread position_;
  int running_ = 0;
  int num_alive_ = 0;
  int at_block_barrier_ = 0;
  int block_round_ = 0;
  // Arrivals, releases and ends: where a round of all threads has none, they wait for ever.
  int64_t num_steps_ = 0;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace

CaptureBody FindKernel(const std::string& mangled_name) {
  static std::once_flag loaded;
  std::call_once(loaded, LoadHostBodies);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled_name.c_str(), nullptr, nullptr, &status), std::free);
  const auto found = Kernels().find(BareName(status == 0 ? name.get() : mangled_name));
  return found == Kernels().end() ? nullptr : found->second;
}

cudaError_t RunKernel(const OttCudaBody& body, dim3 grid, dim3 block, uint64_t seed) {
  return Runner(body, grid, block, seed).Run();
}

void LeaveKernelAfterFault() {
  if (current != nullptr) current->LeaveAfterFault();
}

}  // namespace ott::cuda_stand_in

using ott::cuda_stand_in::current;

extern "C" {

void ottCudaAddKernel(const char* name, OttCudaBody (*capture)(void**)) {
  // "... [with T = {int*}; void (* kKernel)(T ...) = ott::Name<true>]"
  std::string kernel = name;
  kernel = kernel.substr(0, kernel.rfind(']'));
  kernel = kernel.substr(kernel.find(" = ", kernel.find("kKernel)")) + 3);
  ott::cuda_stand_in::Kernels()[ott::cuda_stand_in::BareName(kernel)] = capture;
}

const OttCudaThread* ottCudaThread() { return current->position(); }
void ottCudaSyncThreads() { current->SyncThreads(); }
uint64_t ottCudaShuffle(uint32_t mask, uint64_t bits, int from) { return current->Shuffle(mask, bits, from); }
int ottCudaLane() { return current->lane(); }

uint64_t ottCudaRegister_clock64() { return current->nanoseconds() * 17 / 10; }

// Not Unix time, and in steps.
uint64_t ottCudaRegister_globaltimer() { return (current->nanoseconds() - 12345678912345) / 32 * 32; }

uint32_t ottCudaRegister_smid() { return current->position()->block.x % 4; }
}
