#include "ott/core/nvtx/nvtx_range_wrapper.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/device_sync.h"
#include "ott/core/base/per_thread.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/nvtx/nvtx.h"

namespace ott {
namespace internal {
namespace {

struct OpenRange {
  std::string name;
  Place place;
};

// The ranges of one thread, innermost last. Entries are kept and used again.
class RangeStack {
 public:
  void Push(const char* name, Place place) {
    if (size_ == ranges_.size()) ranges_.emplace_back();
    ranges_[size_].name = name;
    ranges_[size_].place = place;
    ++size_;
  }
  void Pop() { --size_; }

  bool empty() const { return size_ == 0; }
  const std::string& top() const { return ranges_[size_ - 1].name; }

  // Innermost first, one a line.
  std::string Describe() const {
    if (empty()) return "; no range is open on this thread";
    std::string result = "; open on this thread, innermost first:";
    for (size_t i = size_; i > 0; --i) {
      absl::StrAppend(&result, "\n  ", Quoted(ranges_[i - 1].name), ", pushed at ", At(ranges_[i - 1].place));
    }
    return result;
  }

 private:
  std::vector<OpenRange> ranges_;
  size_t size_ = 0;
};

}  // namespace

class NvtxCore {
 public:
  NvtxCore() : NvtxCore(NvtxRangeWrapper::Environment{&SynchronizeDevice}) {}

  explicit NvtxCore(const NvtxRangeWrapper::Environment& environment)
      : environment_(environment),
        stacks_([](RangeStack&) {},
                [this](RangeStack& stack) {
                  if (stack.empty()) return true;
                  Misuse(absl::StrCat("thread ", ThisThreadId(), " ends with open ranges", stack.Describe()));
                  stack = RangeStack();
                  return true;
                }) {}

  absl::Status Enable(const NvtxRangeWrapper::Options& options, Place place) {
    OTT_RETURN_IF_ERROR(NvtxStatus());
    const std::lock_guard<std::mutex> lock(mutex_);
    if (enabled_at_.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("NVTX ranges: enabled at ", At(place), ", but they are since ", At(*enabled_at_)));
    }
    if (options.sync_on_push || options.sync_on_pop) {
      const absl::Status status = environment_.synchronize_device();
      if (!status.ok()) return absl::Status(status.code(), absl::StrCat("NVTX ranges: ", status.message()));
    }
    enabled_at_ = place;
    options_ = options;
    return absl::OkStatus();
  }

  void Push(const char* name, Place place) {
    if (options_.sync_on_push) environment_.synchronize_device().IgnoreError();
    if (options_.keep_track_of_range_order) stacks_.Get().Push(name, place);
    NvtxPush(name);
  }

  void Pop(std::optional<std::string_view> expected, Place place) {
    if (options_.sync_on_pop) environment_.synchronize_device().IgnoreError();
    if (options_.keep_track_of_range_order && !PopTracked(expected, place)) return;
    NvtxPop();
  }

  void FinishIter(Place place) {
    if (!options_.keep_track_of_range_order || stacks_.Get().empty()) return;
    Misuse(absl::StrCat("FinishIter() at ", At(place), " on thread ", ThisThreadId(), " with open ranges",
                        stacks_.Get().Describe()));
  }

  int64_t num_misuses() const { return num_misuses_.load(std::memory_order_relaxed); }

 private:
  // Whether there was a range to pop.
  bool PopTracked(std::optional<std::string_view> expected, Place place) {
    RangeStack& stack = stacks_.Get();
    if (stack.empty() || (expected.has_value() && stack.top() != *expected)) {
      Misuse(absl::StrCat("Pop(", expected.has_value() ? Quoted(*expected) : "", ") at ", At(place),
                          " on thread ", ThisThreadId(), stack.Describe()));
    }
    if (stack.empty()) return false;
    stack.Pop();
    return true;
  }

  void Misuse(const std::string& message) {
    ReportMisuse(options_.on_misuse, absl::StrCat("NVTX ranges: ", message));
    num_misuses_.fetch_add(1, std::memory_order_relaxed);
  }

  const NvtxRangeWrapper::Environment environment_;
  std::mutex mutex_;
  std::optional<Place> enabled_at_;
  // Set by Enable() before any use.
  NvtxRangeWrapper::Options options_;
  std::atomic<int64_t> num_misuses_{0};
  PerThread<RangeStack> stacks_;
};

void PushRange(NvtxCore& core, const char* name, Place place) { core.Push(name, place); }

void PopRange(NvtxCore& core, Place place) { core.Pop(std::nullopt, place); }

void PopRange(NvtxCore& core, std::string_view expected, Place place) { core.Pop(expected, place); }

void MarkMoment(const char* name) { NvtxMark(name); }

void FinishIter(NvtxCore& core, Place place) { core.FinishIter(place); }

}  // namespace internal

constexpr NvtxRangeWrapper::NvtxRangeWrapper(const char* process_wide_name) : core_(process_wide_name) {}

constexpr NvtxRangeWrapperOfThisProcess::Immortal::Immortal() : wrapper("ott.NvtxRangeWrapper") {}

NvtxRangeWrapperOfThisProcess::Immortal NvtxRangeWrapperOfThisProcess::instance;

const ProcessWide<internal::NvtxCore>::JoinAtLoad NvtxRangeWrapperOfThisProcess::join_at_load(
    instance.wrapper.core_);

NvtxRangeWrapper::NvtxRangeWrapper(const Environment& environment)
    : NvtxRangeWrapper(new internal::NvtxCore(environment)) {}

NvtxRangeWrapper::NvtxRangeWrapper(internal::NvtxCore* own_core) : core_(own_core), own_core_(own_core) {}

NvtxRangeWrapper::~NvtxRangeWrapper() { delete own_core_; }

NvtxRangeWrapper::Options NvtxRangeWrapper::FromConfig(const NvtxConfig& config) {
  Options options;
  options.sync_on_push = config.sync_on_push();
  options.sync_on_pop = config.sync_on_pop();
  options.keep_track_of_range_order = config.keep_track_of_range_order();
  return options;
}

absl::Status NvtxRangeWrapper::Enable(const Options& options, Place place) {
  OTT_ASSIGN_OR_RETURN(internal::NvtxCore* const core, core_.Find());
  OTT_RETURN_IF_ERROR(core->Enable(options, place));
  core_.SetEnabled(true);
  return absl::OkStatus();
}

int64_t NvtxRangeWrapper::num_misuses() const {
  const internal::NvtxCore* core = core_.IfEnabled();
  return core == nullptr ? 0 : core->num_misuses();
}

}  // namespace ott
