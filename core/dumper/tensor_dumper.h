// Dumps tensors and gradients of a training run, iteration by iteration.

#ifndef OTT_CORE_DUMPER_TENSOR_DUMPER_H_
#define OTT_CORE_DUMPER_TENSOR_DUMPER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/base/process_wide.h"
#include "ott/core/compare/compare.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/selection.h"
#include "ott/core/dumper/converters.h"
#include "ott/core/dumper/write_queue.h"
#include "ott/core/tensor/buffer_pool.h"
#include "ott/core/tensor/device_copy.h"
#include "ott/core/tensor/value.h"

namespace ott {

class DumpConfig;  // config.proto

// The size of one dump.
struct DumpSize {
  int64_t tensor_bytes = 0;  // of the elements in memory
  int64_t file_bytes = 0;    // of all files
  int64_t json_bytes = 0;    // of these, text: tensors.json and grads.json
};

struct TensorDumperOptions {
  struct FormatOfPaths {
    DumpFormat format = DumpFormat::kJson;
    // Globs: ott/core/base/glob.h.
    std::vector<std::string> paths;
  };

  // Dump number COUNT is written to DIR/COUNT. Made when needed.
  std::string dir;
  int rank = 0;
  int world_size = 1;
  // Dumps survive a crash of the machine, at the price of waiting for the disk.
  bool sync = false;
  // In iterations (dump counts) and ranks that are not selected, calls cost as much as while paused.
  SelectionOptions selection;
  // Tensors that are not selected are added all the same, for tensors() and grads(), and left out of dumps
  // only.
  bool adds_all = false;
  // Formats of tensors and gradients, instead of those given in the code. The first that matches a path
  // counts.
  std::vector<FormatOfPaths> formats;
  // Tensors beyond this many bytes in a dump are dumped as statistics.
  int64_t max_bytes_per_dump = std::numeric_limits<int64_t>::max();
  // A directory of dumps as dir is. Tensors that are bit for bit those of its dump COUNT are dumped as
  // statistics, so that full data is kept where runs differ. Empty: none.
  std::string reference_dir;

  // Threads that write dumps behind the training's back; 0: Dump() returns when all is written.
  int num_writer_threads = 0;
  // Threads that turn one dump's numbers into text, for dumps as JSON; 0: as many as the machine has cores.
  int num_json_threads = 1;
  // Limit for the dumps that wait to be written, and for memory that is kept for the next dump.
  int64_t max_queued_bytes = int64_t{1} << 30;
  // Memory that Enable() reserves for the first dump, which otherwise takes several times as long as later
  // ones (BufferPool::Reserve); what that dump does not need is given back after it.
  int64_t reserved_bytes = int64_t{256} << 20;
  // If there is no room for a dump: false: Dump() waits; true: the dump is dropped, and counted.
  bool drop_when_full = false;
  // Writer threads run where the training leaves a CPU idle, and hardly otherwise.
  bool writers_in_background = true;

  // Called once, with the size of the first dump that was written, on the thread that wrote it.
  std::function<void(const DumpSize&)> on_first_dump;
  // Called with the work of adding tensors, which it must call: for measuring how much of the program's time
  // that takes.
  std::function<void(const std::function<void()>&)> around_add;
};

// Says how one call's tensors are stored.
struct AddOptions {
  explicit AddOptions(DumpFormat dump_format = DumpFormat::kJson) : format(dump_format) {}

  DumpFormat format;
  // By a name within the data, which is a whole name in one of its maps and may hold dots, without the path
  // that the data are added at. For a tensor "w" in a map "layer1", the entry of "w" counts, or else that of
  // "layer1".
  std::map<std::string, DumpFormat> format_overrides;
  // Tensors, or their gradients, are dumped with their axes in this order, as by torch.permute; empty: as
  // they are.
  std::vector<int> permute_axes;
  std::map<std::string, std::vector<int>> permute_axes_overrides;  // by name, as above
  // Names within the data, at any level, that are left out, both before and after objects are converted.
  std::vector<std::string> exclude;
};

// The gradient that a GradientProvider found for one tensor.
struct Gradient {
  enum class Kind : uint8_t {
    kComputed,
    kRequiresNoGrad,  // dumped as the string "`.requires_grad == False`"
    kNotInGraph,      // the function values do not depend on the tensor; dumped as null
  };
  Kind kind = Kind::kNotInGraph;
  // kComputed: of the tensor's shape.
  std::optional<Tensor> gradient;
};

// Computes d(function values) / d(tensor) for each tensor, without touching the training's gradients.
using GradientProvider = std::function<absl::StatusOr<std::vector<Gradient>>(absl::Span<const NamedTensor>)>;

// Collects copies of tensors under paths, and writes them when told to, in the format of ACCV-Lab's Python
// TensorDumper (dump_writer.h).
//
//   TensorDumper::Get().Enable({.dir = run_dir + "/rank_00000/dumps"});
//   ...
//   TensorDumper::Get().AddTensorData("weights.w1", TensorView(w1.data(), {64, 32}), DumpFormat::kBinary);
//   TensorDumper::Get().Dump();
//
// Off until enabled. While it is off, every call returns OK at once and calls no callable among its
// arguments; converters, formats and the mode of comparing are remembered, counts and actions are not.
// Thread-safe. What two threads add has no defined order; the ranges are the process's, not the thread's.
class TensorDumper {
 public:
  TensorDumper() = default;
  TensorDumper(const TensorDumper&) = delete;
  TensorDumper& operator=(const TensorDumper&) = delete;

  // Returns the one instance of the process. Aborts if another version of this library is in use in the
  // process.
  static TensorDumper& Get() { return process_wide_.Get(); }

  // Returns the options that an ott.Config asks for. The caller sets dir, rank and world_size; and
  // reference_dir, since DumpConfig.reference_run names a run directory instead of a directory of dumps.
  static TensorDumperOptions FromConfig(const DumpConfig& config);

  // Calls f(dumper) where the process's instance is enabled and not paused; one load and a branch otherwise.
  template <typename F>
  static void RunIfEnabled(F&& f) {
    if (TensorDumper* const dumper = process_wide_.IfEnabled()) std::forward<F>(f)(*dumper);
  }

  // Starts dumping. FAILED_PRECONDITION when called twice, INVALID_ARGUMENT without a directory or with a
  // wrong selection.
  absl::Status Enable(TensorDumperOptions options);
  // Writes what was dumped, and forgets what is pending, the count, the ranges, the actions,
  // SetDumpTypeForAll() and SetDumpIsCompare(); it may be enabled again. The error of Flush(). REQUIRES: no
  // other thread uses it
  absl::Status Disable();

  // Returns true from Enable() until Disable().
  bool enabled() const {
    const std::lock_guard lock(mutex_);
    return enabled_;
  }
  // Returns true if enabled, not paused, and at an iteration and rank that are selected.
  bool active() const { return active_.load(std::memory_order_relaxed); }

  // Ignores calls until Resume(), for iterations that are not wanted, except those that set something. What
  // is pending stays.
  void Pause();
  void Resume();

  // Sets whether tensors without gaps in device memory are digested in the order of their stream instead of
  // copied: what tensors() and grads() return stays on the device and brings its digest along
  // (core/digest/digest_on_device.h). REQUIRES: while this is so, nothing is dumped
  void SetKeepOnDevice(bool keep);

  // Adds data at a path within the current ranges: a Value or what one is made from (TensorView, Tensor,
  // ValueMap...), an object of a type with a converter, a vector of these, or a callable that returns such.
  // Tensors in host memory are copied before the call returns, those of a device in the order of their
  // stream, which is not waited for. Errors: as InsertAt, CloneToHost, PermuteAxes, Converters::Apply and
  // CheckDumpable; the tree is then as it was.
  template <typename T>
  absl::Status AddTensorData(std::string_view path, const T& data, DumpFormat format = DumpFormat::kJson) {
    if (!active()) return absl::OkStatus();
    return Add(path, Evaluate(data), AddOptions(format));
  }
  template <typename T>
  absl::Status AddTensorData(std::string_view path, const T& data, const AddOptions& options) {
    if (!active()) return absl::OkStatus();
    return Add(path, Evaluate(data), options);
  }

  // Asks for the gradients with respect to the tensors in data, which are computed by SetGradients() and must
  // live until then.
  template <typename T>
  absl::Status AddGradData(std::string_view path, const T& data, DumpFormat format = DumpFormat::kJson) {
    if (!active()) return absl::OkStatus();
    return AddGrad(path, Evaluate(data), AddOptions(format));
  }
  template <typename T>
  absl::Status AddGradData(std::string_view path, const T& data, const AddOptions& options) {
    if (!active()) return absl::OkStatus();
    return AddGrad(path, Evaluate(data), options);
  }

  // Computes, by `provider`, the gradients for all tensors of AddGradData() since the last call, in their
  // order, and copies them. INVALID_ARGUMENT if the provider returns another number or shape than asked
  // for; else its error. A path that cannot be used costs no other gradient; the error is that of the first.
  absl::Status SetGradients(const GradientProvider& provider);

  // Paths between a push and its pop start with the range's name. FAILED_PRECONDITION for a pop without a
  // push. Where active() may change in between, as by Dump(), use DumpRange.
  template <typename T>
  absl::Status PushRange(const T& name) {
    if (!active()) return absl::OkStatus();
    if constexpr (std::is_invocable_v<const T&>) {
      return Push(std::string(name()));
    } else {
      return Push(std::string(name));
    }
  }
  absl::Status PopRange();

  // Objects of type T that are added from now on are dumped as what this returns for them: a Value or what
  // one is made from, which may hold objects of other types that have a converter, or a StatusOr of it.
  template <typename T, typename F>
  void RegisterConverter(F convert) {
    const std::lock_guard lock(mutex_);
    auto converters = std::make_shared<Converters>(*converters_);
    converters->Register<T>(std::move(convert));
    converters_ = std::move(converters);
  }

  // Dumps RaggedBatch objects that are added from now on as a map of their members, or as lists of samples.
  void EnableRaggedBatchDumping(bool as_per_sample = false);

  // Overrides every format given in the code for tensors, for gradients, or both.
  void SetDumpTypeForAll(DumpFormat format, bool include_tensors = true, bool include_grads = true);

  // Sets the number of the next dump, 0 at first; Dump() adds 1. A training run that dumps some iterations
  // sets the iteration's number. Also while paused, but not before it is enabled.
  void SetDumpCount(int64_t count);
  void ResetDumpCount() { SetDumpCount(0); }
  int64_t dump_count() const;

  // Calls action once, when the dump count is this or more, for example to end the program there. Replaces an
  // earlier action of the same count. Nothing before the dumper is enabled.
  void PerformAfterDumpCount(int64_t count, std::function<void()> action);

  // Writes what is pending to DIR/COUNT, and clears it whether or not that succeeds. Without dump_if_empty
  // nothing is written, compared or counted where nothing is pending. FAILED_PRECONDITION if gradients
  // were asked for and not set; else WriteDump's error, with writer threads that of an earlier dump.
  absl::Status Dump(bool dump_if_empty = true);

  // Waits for the writer threads. Returns the first error that no call has returned yet. When the process
  // ends by exit() or by returning from main(), its instance is flushed, and an error printed to stderr.
  absl::Status Flush();

  // Dumps that were dropped since there was no room.
  int64_t num_dropped_dumps() const;

  // Compares what is pending with the dump in DIR/COUNT (the reference), then clears it and counts, as Dump()
  // does. Where they are equal, a line on stderr says so. Waits for writer threads, whose errors are
  // returned. Where nothing is compared, the verdict is kCouldNotCompare, so that it is not taken for equal:
  // while the dumper is not active, and, without compare_if_empty, where nothing is pending.
  absl::StatusOr<TreeComparison> CompareToDumpedData(const CompareOptions& options = {},
                                                     bool compare_if_empty = true);

  // Dump() then compares instead, and returns FAILED_PRECONDITION with the report where the verdict is not
  // "equal", or only prints it to stderr. dump_if_empty is compare_if_empty.
  enum class OnDifference : uint8_t { kFail, kWarn };
  void SetDumpIsCompare(CompareOptions options, OnDifference on_difference = OnDifference::kFail);

  // Forgets what is pending.
  void Discard();

  // Returns what is pending, as it would be dumped, without the gradients that are not set yet; the elements
  // are shared, not copied. The error of a copy from a device.
  absl::StatusOr<Value> tensors() const { return Finished(&Pending::tensors); }
  absl::StatusOr<Value> grads() const { return Finished(&Pending::grads); }
  // Returns the paths of what they hold in the order in which it was added, which the trees do not keep.
  std::vector<std::string> tensor_order() const { return OrderOf(&Pending::tensor_order); }
  std::vector<std::string> grad_order() const { return OrderOf(&Pending::grad_order); }

 private:
  using Formats = std::unordered_map<std::string, DumpFormat>;

  // Holds what one call adds: a tree without objects, and without what is excluded or not selected.
  struct Prepared {
    struct StoredTensor {
      std::string path;
      Tensor tensor;
      DumpFormat format;
      std::vector<int> permute_axes;
    };
    std::string path;
    Value tree;
    // The tensors of the tree, in its order.
    std::vector<StoredTensor> tensors;
  };

  // The class that makes it.
  class Preparation;

  struct Pending {
    Value tensors = ValueMap();
    Value grads = ValueMap();
    // Paths of their leaves, in the order of adding.
    std::vector<std::string> tensor_order;
    std::vector<std::string> grad_order;
    bool has_grads = false;
    Formats tensor_formats;
    Formats grad_formats;
    // Bytes of the elements of all tensors.
    int64_t num_bytes = 0;
    std::vector<Prepared> wanted_gradients;
    // The copies from device memory.
    std::vector<CopyDone> copies;

    // Returns the first error of a copy.
    absl::Status WaitForCopies() const;
  };

  template <typename T>
  static Value Evaluate(const T& data) {
    if constexpr (std::is_invocable_v<const T&>) {
      return Value::From(data());
    } else {
      return Value::From(data);
    }
  }

  absl::Status Add(std::string_view path, const Value& data, const AddOptions& options);
  absl::Status AddNow(std::string_view path, const Value& data, const AddOptions& options);
  absl::Status AddGrad(std::string_view path, const Value& data, const AddOptions& options);
  // Returns nullopt if nothing is left to add.
  absl::StatusOr<std::optional<Prepared>> Prepare(std::string_view path, const Value& data,
                                                  const AddOptions& options) const;
  // Replaces the tensors by copies with their axes in order, in buffers of the pools; copies from a device
  // are appended to those that are on their way.
  absl::Status Copy(std::vector<Prepared::StoredTensor>& tensors, std::vector<CopyDone>& copies);
  absl::Status Push(std::string name);
  absl::Status Pop();
  std::string InRanges(std::string_view path) const;
  void UpdateActive();
  bool Selected() const;
  absl::StatusOr<Value> Finished(Value Pending::*tree) const;
  std::vector<std::string> OrderOf(std::vector<std::string> Pending::*order) const;
  // If the dumper is on: clears what is pending and calls use(pending, count) if it is wanted; counts.
  template <typename Use>
  absl::Status FinishDump(bool if_empty, Use use);
  absl::StatusOr<Pending> TakePending();
  // Calls the actions that are due, without the lock.
  void SetCount(int64_t count, std::unique_lock<std::mutex> lock);
  void KeepSelected(Pending& pending) const;
  absl::Status Write(Pending pending, int64_t count);
  // Says so where they are equal.
  absl::StatusOr<TreeComparison> Compare(const Pending& pending, int64_t count,
                                         const CompareOptions& options);

  struct CompareMode {
    CompareOptions options;
    OnDifference on_difference;
  };

  friend class DumpRange;

  static ProcessWide<TensorDumper> process_wide_;
  static const ProcessWide<TensorDumper>::JoinAtLoad join_at_load_;

  std::atomic<bool> active_{false};
  mutable std::mutex mutex_;
  bool enabled_ = false;
  bool paused_ = false;
  std::atomic<bool> keep_on_device_{false};
  TensorDumperOptions options_;
  Selection selection_;
  std::optional<BufferPool> pool_;
  std::optional<BufferPool> pinned_pool_;
  std::optional<WriteQueue> queue_;
  std::optional<CompareMode> compare_mode_;
  std::map<int64_t, std::function<void()>> actions_;
  std::shared_ptr<const Converters> converters_ = std::make_shared<const Converters>();
  std::optional<DumpFormat> format_for_all_tensors_;
  std::optional<DumpFormat> format_for_all_grads_;
  int64_t dump_count_ = 0;
  std::vector<std::string> ranges_;
  Pending pending_;
};

// PushRange and PopRange for a scope, of the process's instance. A range that was pushed is popped, whether
// or not the dumper is still active.
class DumpRange {
 public:
  explicit DumpRange(std::string_view name) : pushed_(TensorDumper::Get().active()) {
    if (pushed_) TensorDumper::Get().PushRange(name).IgnoreError();
  }
  DumpRange(const DumpRange&) = delete;
  DumpRange& operator=(const DumpRange&) = delete;
  ~DumpRange() {
    if (pushed_) TensorDumper::Get().Pop().IgnoreError();
  }

 private:
  const bool pushed_;
};

}  // namespace ott

#endif  // OTT_CORE_DUMPER_TENSOR_DUMPER_H_
