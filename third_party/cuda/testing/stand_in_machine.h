// The stand-in's devices, their streams and events, and the errors that are to happen.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_MACHINE_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_MACHINE_H_

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "third_party/cuda/testing/stand_in.h"
#include "third_party/cuda/testing/stand_in_memory.h"
#include "third_party/cuda/testing/stand_in_trace.h"

namespace ott::cuda_stand_in {

// A moment in the work of a stream.
struct Moment {
  bool has_come = false;
  std::chrono::steady_clock::time_point when;
};
using MomentPtr = std::shared_ptr<Moment>;

struct Event {
  int device;
  bool has_timing;
  MomentPtr moment;  // null: never recorded
};

// A cudaStream_t points to one.
struct Graph;

struct Stream {
  struct Operation {
    std::vector<MomentPtr> after;
    std::function<cudaError_t()> run;  // may be empty
    bool is_release;                   // happens after errors, too
    MomentPtr done;
    uint32_t correlation = 0;  // of the call that gave it
  };

  int device;
  uint32_t number;
  bool is_blocking;  // ordered with the default stream
  bool is_closed = false;
  std::deque<Operation> operations;
  MomentPtr last;
  std::mt19937_64 random;
  Graph* capture = nullptr;  // null: nothing is captured
};

struct Device {
  explicit Device(int64_t memory) : arena(memory) {}

  Arena arena;
  Stream* default_stream = nullptr;
  // Without the default one; closed ones until their work is done.
  std::set<Stream*> streams;
  cudaError_t sticky = cudaSuccess;
};

// All of it; one for the process, never destroyed. mutex() guards streams, events and errors.
class Machine {
 public:
  static Machine& Get();

  std::mutex& mutex() { return mutex_; }
  int num_devices() const { return static_cast<int>(devices_.size()); }
  Device& device(int ordinal) { return *devices_[ordinal]; }
  PinnedMemory& pinned() { return pinned_; }

  // Returns the device on which a pointer lies, or null.
  Device* DeviceOf(const void* pointer);

  // A function of the API was called. What it must return at once: an error that was asked for, or one that
  // stays. Ends the process if this is the child of a fork.
  cudaError_t BeginCall(const char* function, bool is_release, int device);

  // REQUIRES for the rest: mutex() is held.

  Stream* MakeStream(int device, bool is_blocking);
  void DestroyStream(Stream* stream);
  // Returns null if there is no such stream. Of `device` for the default stream.
  Stream* FindStream(cudaStream_t handle, int device);
  // Adds to the stream's work, in CUDA's order of streams.
  MomentPtr Enqueue(Stream* stream, std::function<cudaError_t()> run, bool is_release = false);
  void EnqueueWait(Stream* stream, MomentPtr moment);

  std::set<Event*>& events() { return events_; }
  OttCudaCounts& counts() { return counts_; }

  // Until it has come, letting go of the mutex meanwhile.
  void WaitFor(const MomentPtr& moment, std::unique_lock<std::mutex>& lock);
  void WaitForDevice(Device& device, std::unique_lock<std::mutex>& lock);

  void Reset(uint64_t seed);
  OttCudaCounts Counts();
  void Fail(const char* function, int64_t nth, cudaError_t error, bool is_sticky);

 private:
  struct Failure {
    std::string function;
    int64_t calls_left;
    cudaError_t error;
    bool is_sticky;
  };

  Machine();
  MomentPtr Enqueue(Stream* stream, Stream::Operation operation);
  void RunStream(Stream* stream);
  // With mutex_ held.
  cudaError_t Injected(const std::string& function, bool is_release, int device);

  const int process_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Device>> devices_;
  PinnedMemory pinned_;
  std::set<Event*> events_;
  std::vector<Failure> failures_;
  OttCudaCounts counts_{};
  uint64_t seed_ = 1;
  uint32_t next_stream_number_ = 7;  // as CUDA's
};

// Tells the tracer of a call of the API, of this thread and until its end.
class TracedCall {
 public:
  explicit TracedCall(const char* function);
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;
  ~TracedCall();

 private:
  const char* const function_;
  uint64_t start_ = 0;
};

// Tells the tracer of a node of a graph.
void TraceGraphNode(uint64_t node, uint64_t original);

// Tells the tracer, at its end, of what this thread of a stream runs.
class TracedWork {
 public:
  TracedWork(const Stream* stream, OttCudaWorkKind kind);
  TracedWork(const TracedWork&) = delete;
  TracedWork& operator=(const TracedWork&) = delete;
  ~TracedWork();

  OttCudaWork& operator*() { return work_; }
  OttCudaWork* operator->() { return &work_; }

 private:
  OttCudaWork work_{};
};

// Sleeps for a while now and then.
void Dawdle(std::mt19937_64& random);

// Returns true if this thread is in a function of cudaLaunchHostFunc, which may not call CUDA.
bool IsInHostFunction();
void SetInHostFunction(bool is_in);

}  // namespace ott::cuda_stand_in

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_MACHINE_H_
