// A program that uses NVTX, for captures: nvtx_program_for_test SCENARIO [NUMBER].

#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

void Range(const char* name) {
  nvtxRangePushA(name);
  nvtxRangePop();
}

nvtxEventAttributes_t Attributes(const char* message) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = message;
  return attributes;
}

void PushAndPop(nvtxDomainHandle_t domain, const nvtxEventAttributes_t& attributes) {
  nvtxDomainRangePushEx(domain, &attributes);
  nvtxDomainRangePop(domain);
}

// Everything that NVTX's C API of ranges, marks and names can say.
void Everything() {
  nvtxNameOsThreadA(static_cast<uint32_t>(getpid()), "main thread");
  nvtxRangePushA("outer");
  nvtxRangePushA("inner");
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangePushW(L"wide \u00e4\u20ac\U0001f600");
  nvtxRangePop();
  Range("bytes \xff\xc3\x28 that are not UTF-8");
  Range("");
  nvtxMarkA("mark");

  const nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
  nvtxDomainNameCategoryA(domain, 7, "loading");
  const nvtxStringHandle_t registered = nvtxDomainRegisterStringA(domain, "registered");
  nvtxEventAttributes_t attributes = Attributes("in domain");
  attributes.category = 7;
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.color = 0xff00ff00;
  PushAndPop(domain, attributes);
  attributes = Attributes(nullptr);
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = registered;
  PushAndPop(domain, attributes);
  PushAndPop(domain, attributes);

  attributes = Attributes("uint64");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = 1'000'000'000'000;
  PushAndPop(nullptr, attributes);
  attributes = Attributes("int32");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  attributes.payload.iValue = -5;
  PushAndPop(nullptr, attributes);
  attributes = Attributes("double");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = 0.25;
  nvtxDomainMarkEx(domain, &attributes);

  const nvtxRangeId_t started = nvtxRangeStartA("started here, ended there");
  std::thread([&] {
    pthread_setname_np(pthread_self(), "worker");
    Range("in thread");
    nvtxRangeEnd(started);
  }).join();
  nvtxDomainDestroy(domain);
  nvtxRangeStartA("never ended");
  nvtxRangePushA("never popped");
}

void Window() {
  const nvtxDomainHandle_t profiler = nvtxDomainCreateA("ott.profiler");
  const nvtxEventAttributes_t start = Attributes("start"), stop = Attributes("stop");
  nvtxRangePushA("open before");
  Range("before");
  nvtxDomainMarkEx(profiler, &start);
  Range("within");
  nvtxRangePushA("open within");
  nvtxDomainMarkEx(profiler, &stop);
  nvtxRangePop();
  nvtxRangePop();
  Range("after");
}

void Fork() {
  Range("parent before");
  const pid_t child = fork();
  if (child == 0) {
    Range("child");
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  Range("parent after");
}

// The child ends a range that is its parent's while one of its own is open.
void ForkWithinRange() {
  const nvtxRangeId_t parents = nvtxRangeStartA("parent's");
  if (const pid_t child = fork(); child != 0) {
    waitpid(child, nullptr, 0);
    return nvtxRangeEnd(parents);
  }
  const nvtxRangeId_t own = nvtxRangeStartA("child's");
  nvtxRangeEnd(parents);
  nvtxMarkA("within");
  nvtxRangeEnd(own);
  _exit(0);
}

void Exec(char* program) {
  Range("before exec");
  execl(program, program, "ranges", "3", nullptr);
}

// Calls work(0) to work(3), each in a thread of its own.
void InThreads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

// number ranges in each of 4 threads, one within the other.
void Threads(int number) {
  InThreads([number](int) {
    for (int range = 0; range < number / 2; ++range) {
      nvtxRangePushA("outer");
      Range("inner");
      nvtxRangePop();
    }
  });
}

// A function of cupti_for_test.cc.
template <typename... Arguments>
void CallCupti(const char* name, Arguments... arguments) {
  void* const library = dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  reinterpret_cast<void (*)(Arguments...)>(dlsym(library, name))(arguments...);
}

// The driver's part in CUDA_INJECTION64_PATH, which is played here where there is no GPU.
void InitializeCuda() {
  void* const library = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
  CallCupti("StartCuda");
}

// Leaves the window open where number is not 0.
void CudaWindow(int number) {
  InitializeCuda();
  Range("before");
  CallCupti("CallProfiler", true);
  Range("within");
  if (number != 0) return;
  CallCupti("CallProfiler", false);
  Range("after");
}

// Each of 4 threads registers number strings and uses each at once.
void Strings(int number) {
  InThreads([number](int thread) {
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("strings");
    for (int i = 0; i < number; ++i) {
      const std::string name = std::to_string(thread) + "." + std::to_string(i);
      nvtxEventAttributes_t attributes = Attributes(nullptr);
      attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
      attributes.message.registered = nvtxDomainRegisterStringA(domain, name.c_str());
      PushAndPop(domain, attributes);
    }
  });
}

void Times(int number, const std::function<void()>& work) {
  for (int i = 0; i < number; ++i) work();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  const std::map<std::string, std::function<void()>> scenarios = {
      {"everything", &Everything},
      {"window", &Window},
      {"cuda", [] { InitializeCuda(), Range("launch"), CallCupti("MakeGraph"); }},
      {"cuda_reset", [] { InitializeCuda(), CallCupti("ResetDevice"); }},
      {"cuda_window", [&] { CudaWindow(number); }},
      {"fork", &Fork},
      {"fork_within_range", &ForkWithinRange},
      {"exec", [&] { Exec(argv[0]); }},
      {"ranges", [&] { Times(number, [] { Range("range"); }); }},
      {"strings", [&] { Strings(number); }},
      {"threads", [&] { Threads(number); }},
      {"marks", [&] { Times(number, [] { nvtxMarkA("mark"); }); }},
      {"exit", [&] { Range("range"), std::exit(number); }},
      {"_exit", [&] { Range("range"), _exit(number); }},
      {"quick_exit", [&] { Range("range"), std::quick_exit(number); }},
      {"signal", [&] { nvtxRangePushA("open"), Range("range"), kill(getpid(), number); }},
      {"pause", [&] { Range("range"), std::puts("ready"), std::fflush(stdout), pause(); }},
      {"long", [&] { Range(std::string(static_cast<size_t>(number), 'x').c_str()); }},
  };
  const auto scenario = scenarios.find(argv[1]);
  if (scenario == scenarios.end()) return 2;
  scenario->second();
  return 0;
}
