// A libnccl.so.2 for tests: the functions that this project calls, between processes of one machine whose
// devices are those of the stand-in for the CUDA runtime.
//
// A communicator is a piece of shared memory with a slot for each of at most 8 ranks. A collective is an
// operation of its stream, in rounds: each rank puts a part of its bytes into its slot, waits for all, and
// reads theirs. As with NCCL, a rank that calls another collective, or none, leaves the others waiting until
// they abort; one that has died is an asynchronous error. Two calls at once on one communicator end the
// process.
//
// OTT_NCCL_FAIL=RANK:NTH:ERROR: the nth collective of that rank (from 1) meets the ncclResult_t
// asynchronously, and does not end.

#include <cuda_runtime_api.h>
#include <errno.h>
#include <fcntl.h>
#include <nccl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

// These are of the stand-in for the CUDA runtime.
extern "C" {
int ottCudaEnqueue(void* stream, int (*run)(void*), void* data);
void* ottCudaReach(const void* pointer, size_t size);
}

namespace {

constexpr int kMaxRanks = 8;
constexpr size_t kPartBytes = 64 * 1024;

// The call of a rank in a round; ranks that differ in it wait for ever.
struct Signature {
  int function, type, operation, root;
  uint64_t bytes;
};

struct Slot {
  std::atomic<int> process;
  // Rounds that this rank has begun, and done with.
  std::atomic<uint64_t> begun, done;
  Signature signature;
  char part[kPartBytes];
};

struct Shared {
  Slot slots[kMaxRanks];
};

void Pause() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

float FromHalf(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const float magnitude = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -24)
                          : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                           : std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// To the nearest, ties to even.
uint16_t ToHalf(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7e00;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520) return sign | 0x7c00;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // Steps of the numbers around it.
  const int step = std::max(exponent - 11, -24);
  const auto steps = static_cast<uint16_t>(std::lrint(std::ldexp(magnitude, -step)));
  return sign | static_cast<uint16_t>(steps + ((step + 24) << 10));
}

float FromBFloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t ToBFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T>
T Combine(T a, T b, ncclRedOp_t operation) {
  if (operation == ncclMin) return b < a ? b : a;
  if (operation == ncclMax) return b > a ? b : a;
  return static_cast<T>(a + b);
}

template <typename T>
void Reduce(char* into, const char* from, size_t bytes, ncclRedOp_t operation) {
  auto* const values = reinterpret_cast<T*>(into);
  const auto* const others = reinterpret_cast<const T*>(from);
  for (size_t i = 0; i < bytes / sizeof(T); ++i) values[i] = Combine(values[i], others[i], operation);
}

template <float (*kFrom)(uint16_t), uint16_t (*kTo)(float)>
void ReduceSmall(char* into, const char* from, size_t bytes, ncclRedOp_t operation) {
  auto* const values = reinterpret_cast<uint16_t*>(into);
  const auto* const others = reinterpret_cast<const uint16_t*>(from);
  for (size_t i = 0; i < bytes / 2; ++i)
    values[i] = kTo(Combine(kFrom(values[i]), kFrom(others[i]), operation));
}

struct Type {
  size_t size;
  void (*reduce)(char* into, const char* from, size_t bytes, ncclRedOp_t operation);
};

// A size of 0: not known here.
Type TypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
      return {1, Reduce<int8_t>};
    case ncclUint8:
      return {1, Reduce<uint8_t>};
    case ncclInt32:
      return {4, Reduce<int32_t>};
    case ncclUint32:
      return {4, Reduce<uint32_t>};
    case ncclInt64:
      return {8, Reduce<int64_t>};
    case ncclUint64:
      return {8, Reduce<uint64_t>};
    case ncclFloat16:
      return {2, ReduceSmall<FromHalf, ToHalf>};
    case ncclBfloat16:
      return {2, ReduceSmall<FromBFloat16, ToBFloat16>};
    case ncclFloat32:
      return {4, Reduce<float>};
    case ncclFloat64:
      return {8, Reduce<double>};
    default:
      return {0, nullptr};
  }
}

}  // namespace

struct ncclComm {
  Shared* shared = nullptr;
  int rank = 0;
  int size = 0;
  int device = 0;
  std::string name;
  std::atomic<int> error{ncclInProgress};
  std::atomic<bool> is_aborted{false};
  // Collectives that were given to a stream and have not ended.
  std::atomic<int> num_running{0};
  std::atomic<bool> is_in_call{false};
  std::thread connecting;
  // Counts rounds of the streams' threads, which run one collective after the other.
  std::atomic<uint64_t> round{0};
  int num_collectives = 0;

  Slot& slot(int of_rank) const { return shared->slots[of_rank]; }

  // Until all ranks have `counter` at `value`, or this is aborted; false then.
  bool WaitForAll(std::atomic<uint64_t> Slot::*counter, uint64_t value) {
    for (int other = 0; other < size; ++other) {
      while ((slot(other).*counter).load() < value) {
        if (is_aborted) return false;
        if (kill(slot(other).process, 0) != 0 && errno == ESRCH) error = ncclRemoteError;
        Pause();
      }
    }
    return true;
  }

  void WaitForAbort() {
    while (!is_aborted) Pause();
  }
};

namespace {

struct Call {
  explicit Call(ncclComm* comm) : comm_(comm) {
    if (comm_->is_in_call.exchange(true)) {
      std::fputs("NCCL stand-in: two threads call one communicator at once\n", stderr);
      std::abort();
    }
  }
  ~Call() { comm_->is_in_call = false; }
  ncclComm* const comm_;
};

struct Collective {
  ncclComm* comm;
  Signature signature;
  const void* from;
  void* to;
  ncclResult_t failure;
};

constexpr int kAllReduce = 1, kBroadcast = 2, kAllGather = 3;

// One round: `bytes` of mine, at most kPartBytes, are in the slot when it begins, and those of all ranks in
// the others'.
template <typename Read>
bool RunRound(ncclComm* comm, const Signature& signature, const char* mine, size_t bytes, Read read) {
  const uint64_t round = ++comm->round;
  Slot& slot = comm->slot(comm->rank);
  slot.signature = signature;
  if (mine != nullptr) std::memcpy(slot.part, mine, bytes);
  slot.begun = round;
  if (!comm->WaitForAll(&Slot::begun, round)) return false;
  for (int rank = 0; rank < comm->size; ++rank) {
    if (std::memcmp(&comm->slot(rank).signature, &signature, sizeof(signature)) == 0) continue;
    comm->WaitForAbort();
    return false;
  }
  read();
  slot.done = round;
  return comm->WaitForAll(&Slot::done, round);
}

int RunCollective(void* data) {
  const std::unique_ptr<Collective> collective(static_cast<Collective*>(data));
  ncclComm* const comm = collective->comm;
  const Signature& signature = collective->signature;
  const auto end = [comm](int error) {
    --comm->num_running;
    return error;
  };
  if (collective->failure != ncclSuccess) {
    comm->error = collective->failure;
    comm->WaitForAbort();
    return end(cudaSuccess);
  }
  const size_t bytes = signature.bytes;
  const size_t all_bytes = signature.function == kAllGather ? bytes * comm->size : bytes;
  const auto* const from = static_cast<const char*>(ottCudaReach(collective->from, bytes));
  auto* const to = static_cast<char*>(ottCudaReach(collective->to, all_bytes));
  if (bytes > 0 && (from == nullptr || to == nullptr)) return end(cudaErrorIllegalAddress);
  const Type type = TypeOf(static_cast<ncclDataType_t>(signature.type));
  // Also of no bytes, a round.
  size_t at = 0;
  do {
    const size_t part = std::min(kPartBytes, bytes - at);
    const bool is_source = signature.function != kBroadcast || comm->rank == signature.root;
    const bool has_run = RunRound(comm, signature, is_source ? from + at : nullptr, part, [&] {
      if (signature.function == kBroadcast) std::memcpy(to + at, comm->slot(signature.root).part, part);
      if (signature.function == kAllGather) {
        for (int rank = 0; rank < comm->size; ++rank) {
          std::memcpy(to + rank * bytes + at, comm->slot(rank).part, part);
        }
      }
      if (signature.function == kAllReduce) {
        // In the order of the ranks, so that all get the same bits.
        std::vector<char> result(comm->slot(0).part, comm->slot(0).part + part);
        for (int rank = 1; rank < comm->size; ++rank) {
          type.reduce(result.data(), comm->slot(rank).part, part,
                      static_cast<ncclRedOp_t>(signature.operation));
        }
        std::memcpy(to + at, result.data(), part);
      }
    });
    if (!has_run) break;
    at += part;
  } while (at < bytes);
  return end(cudaSuccess);
}

ncclResult_t Enqueue(ncclComm* comm, Signature signature, const void* from, void* to, cudaStream_t stream) {
  const Call call(comm);
  int device = -1;
  if (cudaGetDevice(&device) != cudaSuccess) return ncclUnhandledCudaError;
  if (device != comm->device || comm->error == ncclInProgress) return ncclInvalidUsage;
  auto collective = std::make_unique<Collective>(Collective{comm, signature, from, to, ncclSuccess});
  ++comm->num_collectives;
  int rank = 0, nth = 0, error = 0;
  const char* const failure = std::getenv("OTT_NCCL_FAIL");
  if (failure != nullptr && std::sscanf(failure, "%d:%d:%d", &rank, &nth, &error) == 3 &&
      rank == comm->rank && nth == comm->num_collectives) {
    collective->failure = static_cast<ncclResult_t>(error);
  }
  ++comm->num_running;
  if (ottCudaEnqueue(stream, RunCollective, collective.get()) != cudaSuccess) {
    --comm->num_running;
    return ncclUnhandledCudaError;
  }
  collective.release();
  return ncclSuccess;
}

void Connect(ncclComm* comm) {
  const int file = shm_open(comm->name.c_str(), O_RDWR, 0);
  void* const memory =
      file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    comm->error = ncclSystemError;
    return;
  }
  comm->shared = static_cast<Shared*>(memory);
  Slot& slot = comm->slot(comm->rank);
  slot.process = getpid();
  slot.signature = Signature{0, comm->size, 0, 0, 0};
  slot.begun = ++comm->round;
  while (!comm->is_aborted) {
    int num_there = 0;
    for (int rank = 0; rank < comm->size; ++rank) num_there += comm->slot(rank).begun > 0;
    if (num_there == comm->size) break;
    Pause();
  }
  if (comm->is_aborted) return;
  // Nobody else needs the name.
  if (comm->rank == 0) shm_unlink(comm->name.c_str());
  slot.done = comm->round.load();
  comm->error = ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> number{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "/ott_nccl_%d_%d_%llx", getpid(), ++number,
                static_cast<unsigned long long>(now));
  const int file = shm_open(id->internal, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0) return ncclSystemError;
  const bool is_good = ftruncate(file, sizeof(Shared)) == 0;
  close(file);
  return is_good ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* result, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (size < 1 || size > kMaxRanks || rank < 0 || rank >= size) return ncclInvalidArgument;
  auto comm = std::make_unique<ncclComm>();
  comm->rank = rank;
  comm->size = size;
  comm->name = id.internal;
  if (cudaGetDevice(&comm->device) != cudaSuccess) return ncclUnhandledCudaError;
  *result = comm.release();
  (*result)->connecting = std::thread(Connect, *result);
  if (config != nullptr && config->blocking == 0) return ncclInProgress;
  (*result)->connecting.join();
  return static_cast<ncclResult_t>((*result)->error.load());
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const Call call(comm);
  *error = static_cast<ncclResult_t>(comm->error.load());
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->is_aborted = true;
  if (comm->connecting.joinable()) comm->connecting.join();
  while (comm->num_running > 0) Pause();
  if (comm->shared != nullptr) munmap(comm->shared, sizeof(Shared));
  if (comm->rank == 0) shm_unlink(comm->name.c_str());
  delete comm;
  return ncclSuccess;
}

// All that is under way must be at its end, as ncclInProgress says.
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Call call(comm);
  if (comm->error != ncclSuccess) return static_cast<ncclResult_t>(comm->error.load());
  return comm->num_running == 0 ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return ncclCommAbort(comm); }

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const size_t size = TypeOf(type).size;
  if (size == 0) return ncclInvalidArgument;
  return Enqueue(comm, {kAllReduce, type, operation, 0, count * size}, from, to, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const size_t size = TypeOf(type).size;
  if (size == 0 || root < 0 || root >= comm->size) return ncclInvalidArgument;
  return Enqueue(comm, {kBroadcast, type, 0, root, count * size}, from, to, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const size_t size = TypeOf(type).size;
  if (size == 0) return ncclInvalidArgument;
  return Enqueue(comm, {kAllGather, type, 0, 0, count * size}, from, to, stream);
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "internal error - please report this issue to the NCCL developers";
  }
}
}
