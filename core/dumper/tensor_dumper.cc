#include "ott/core/dumper/tensor_dumper.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/dump/insert.h"
#include "ott/core/tensor/ragged_batch.h"

namespace ott {
namespace {

constexpr char kRequiresNoGrad[] = "`.requires_grad == False`";

// The entry of the closest name that has one.
template <typename T>
const T& Closest(const std::string& path, const std::map<std::string, T>& overrides, const T& otherwise) {
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (const auto found = overrides.find(*name); found != overrides.end()) return found->second;
  }
  return otherwise;
}

DumpFormat FormatOf(const std::string& path, const AddOptions& options) {
  return Closest(path, options.format_overrides, options.format);
}

// The same tree with the gradients, which come in the order of ListTensors(), in place of the tensors.
absl::StatusOr<Value> ReplaceTensors(const std::string& path, const Value& value,
                                     absl::Span<const Gradient>::iterator& gradient) {
  if (value.is_tensor()) {
    const Gradient& found = *gradient++;
    if (found.kind == Gradient::Kind::kComputed) return Value(*found.gradient);
    return found.kind == Gradient::Kind::kRequiresNoGrad ? Value(kRequiresNoGrad) : Value();
  }
  return TransformChildren(path, value, [&](const std::string& child_path, const Value& child) {
    return ReplaceTensors(child_path, child, gradient);
  });
}

// The same tree with the tensors' axes in the order that is asked for.
absl::StatusOr<Value> Permute(const std::string& path, const Value& value, const AddOptions& options) {
  if (!value.is_tensor()) {
    return TransformChildren(path, value, [&](const std::string& child_path, const Value& child) {
      return Permute(child_path, child, options);
    });
  }
  const std::vector<int>& axes = Closest(path, options.permute_axes_overrides, options.permute_axes);
  if (axes.empty()) return value;
  const absl::StatusOr<TensorView> permuted = PermuteAxes(value.tensor().view, axes);
  if (!permuted.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", permuted.status().message()));
  }
  return Value(Tensor{*permuted, value.tensor().owner});
}

// The tree without the tensors that are not selected, and the names that are excluded; in a list, null is in
// their place. Nothing where none is left.
std::optional<Value> Select(const std::string& path, const Value& value, const Selection& selection,
                            const std::vector<std::string>& exclude) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      return selection.WantsPath(path) ? std::optional<Value>(value) : std::nullopt;
    case Value::Kind::kList: {
      Value::List list;
      for (size_t i = 0; i < value.list().size(); ++i) {
        list.push_back(
            Select(JoinPath(path, std::to_string(i)), value.list()[i], selection, exclude).value_or(Value()));
      }
      return list;
    }
    case Value::Kind::kMap: {
      ValueMap map;
      for (const auto& [name, child] : value.map()) {
        if (std::find(exclude.begin(), exclude.end(), name) != exclude.end()) continue;
        if (std::optional<Value> selected = Select(JoinPath(path, name), child, selection, exclude)) {
          map.Insert(name, *std::move(selected));
        }
      }
      if (map.empty() && !value.map().empty()) return std::nullopt;
      return map;
    }
    default:
      return value;
  }
}

std::string DumpDir(const std::string& dir, int64_t count) { return absl::StrCat(dir, "/", count); }

absl::Status ReportDifference(const TreeComparison& comparison, int64_t count, bool warn) {
  if (comparison.verdict() == Verdict::kEqual) return absl::OkStatus();
  const std::string report =
      absl::StrCat("dump ", count, " is not what was dumped before:\n", ToText(comparison));
  if (!warn) return absl::FailedPreconditionError(report);
  std::fputs(report.c_str(), stderr);
  return absl::OkStatus();
}

void FlushAtExit() {
  static const pid_t process = getpid();
  std::atexit([] {
    if (getpid() != process) return;
    const absl::Status status = TensorDumper::Get().Flush();
    if (!status.ok()) std::fprintf(stderr, "ott: tensor dumper: %s\n", status.ToString().c_str());
  });
}

// One for each tensor, of its shape.
absl::Status CheckGradients(absl::Span<const NamedTensor> tensors, absl::Span<const Gradient> gradients) {
  if (gradients.size() != tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the gradient provider returned ", gradients.size(),
                                                   " gradients for ", tensors.size(), " tensors"));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (gradients[i].kind != Gradient::Kind::kComputed) continue;
    const Dims& expected = tensors[i].tensor.view.shape();
    if (!gradients[i].gradient.has_value() || gradients[i].gradient->view.shape() != expected) {
      return absl::InvalidArgumentError(absl::StrCat("the gradient provider returned no gradient of shape ",
                                                     ShapeToString(expected), " for '", tensors[i].path,
                                                     "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ProcessWide<TensorDumper> TensorDumper::process_wide_("ott.TensorDumper");
const ProcessWide<TensorDumper>::JoinAtLoad TensorDumper::join_at_load_(process_wide_);

absl::Status TensorDumper::Enable(TensorDumperOptions options) {
  const std::lock_guard lock(mutex_);
  if (enabled_) {
    return absl::FailedPreconditionError(
        absl::StrCat("the tensor dumper is enabled already, with the directory ", options_.dir));
  }
  if (options.dir.empty()) return absl::InvalidArgumentError("the tensor dumper needs a directory");
  OTT_ASSIGN_OR_RETURN(selection_, Selection::Create(options.selection));
  options_ = std::move(options);
  pool_.emplace(options_.max_queued_bytes);
  pinned_pool_.emplace(options_.max_queued_bytes, AllocatePinned);
  if (options_.num_writer_threads > 0) {
    WriteQueue::Options queue_options;
    queue_options.num_threads = options_.num_writer_threads;
    queue_options.max_bytes = options_.max_queued_bytes;
    queue_options.drop_when_full = options_.drop_when_full;
    queue_.emplace(queue_options);
    if (this == process_wide_.Find().value_or(nullptr)) FlushAtExit();
  }
  enabled_ = true;
  UpdateActive();
  return absl::OkStatus();
}

void TensorDumper::Pause() {
  const std::lock_guard lock(mutex_);
  paused_ = true;
  UpdateActive();
}

void TensorDumper::Resume() {
  const std::lock_guard lock(mutex_);
  paused_ = false;
  UpdateActive();
}

bool TensorDumper::Selected() const {
  return selection_.WantsIteration(dump_count_) && selection_.WantsRank(options_.rank);
}

void TensorDumper::UpdateActive() {
  const bool active = enabled_ && !paused_ && Selected();
  active_.store(active, std::memory_order_relaxed);
  if (const absl::StatusOr<TensorDumper*> found = process_wide_.Find(); found.ok() && *found == this) {
    process_wide_.SetEnabled(active);
  }
}

std::string TensorDumper::InRanges(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  return ConcatenatePaths(absl::StrJoin(ranges_, "."), path);
}

absl::StatusOr<std::optional<Value>> TensorDumper::Prepare(const std::string& path, const Value& data,
                                                           const AddOptions& options) const {
  // A converter may take its time, and call the dumper.
  std::shared_ptr<const Converters> converters;
  {
    const std::lock_guard lock(mutex_);
    converters = converters_;
  }
  OTT_ASSIGN_OR_RETURN(const Value converted, converters->Apply(path, data));
  OTT_RETURN_IF_ERROR(CheckDumpable(path, converted));
  return Select(path, converted, selection_, options.exclude);
}

absl::StatusOr<Value> TensorDumper::Copy(const Value& value, std::vector<CopyDone>* copies) {
  return Snapshot(value, [&](const TensorView& tensor) {
    if (tensor.device().kind == Device::Kind::kHost) {
      return CloneToHost(tensor, [this](int64_t size) { return pool_->Allocate(size); });
    }
    return StartCloneToHost(
        tensor, [this](int64_t size) { return pinned_pool_->Allocate(size); }, copies);
  });
}

absl::Status TensorDumper::Pending::WaitForCopies() const {
  absl::Status status;
  for (const CopyDone& done : copies) status.Update(done());
  return status;
}

absl::Status TensorDumper::Add(std::string_view path, const Value& data, const AddOptions& options) {
  const std::string full_path = InRanges(path);
  OTT_ASSIGN_OR_RETURN(const std::optional<Value> selected, Prepare(full_path, data, options));
  if (!selected.has_value()) return absl::OkStatus();
  OTT_ASSIGN_OR_RETURN(const Value permuted, Permute(full_path, *selected, options));
  std::vector<CopyDone> copies;
  OTT_ASSIGN_OR_RETURN(Value copy, Copy(permuted, &copies));
  const std::lock_guard lock(mutex_);
  pending_.copies.insert(pending_.copies.end(), copies.begin(), copies.end());
  const std::vector<NamedTensor> added = ListTensors(copy);
  OTT_RETURN_IF_ERROR(InsertAt(full_path, std::move(copy), pending_.tensors));
  for (const NamedTensor& tensor : added) {
    const std::string tensor_path = ConcatenatePaths(full_path, tensor.path);
    pending_.tensor_formats[tensor_path] = FormatOf(tensor_path, options);
  }
  return absl::OkStatus();
}

absl::Status TensorDumper::AddGrad(std::string_view path, const Value& data, const AddOptions& options) {
  const std::string full_path = InRanges(path);
  OTT_ASSIGN_OR_RETURN(std::optional<Value> selected, Prepare(full_path, data, options));
  if (!selected.has_value()) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  pending_.has_grads = true;
  pending_.wanted_gradients.push_back({full_path, *std::move(selected), options});
  return absl::OkStatus();
}

absl::Status TensorDumper::SetGradients(const GradientProvider& provider) {
  if (!active()) return absl::OkStatus();
  std::vector<WantedGradients> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted.swap(pending_.wanted_gradients);
  }
  std::vector<NamedTensor> tensors;
  for (const WantedGradients& request : wanted) {
    for (NamedTensor& tensor : ListTensors(request.data)) {
      tensors.push_back({ConcatenatePaths(request.path, tensor.path), std::move(tensor.tensor)});
    }
  }
  OTT_ASSIGN_OR_RETURN(const std::vector<Gradient> gradients, provider(tensors));
  OTT_RETURN_IF_ERROR(CheckGradients(tensors, gradients));

  const std::lock_guard lock(mutex_);
  absl::Span<const Gradient>::iterator gradient = absl::MakeConstSpan(gradients).begin();
  for (const WantedGradients& request : wanted) {
    OTT_ASSIGN_OR_RETURN(const Value found, ReplaceTensors(request.path, request.data, gradient));
    OTT_ASSIGN_OR_RETURN(const Value permuted, Permute(request.path, found, request.options));
    OTT_ASSIGN_OR_RETURN(Value copy, Copy(permuted, &pending_.copies));
    for (const NamedTensor& tensor : ListTensors(copy)) {
      const std::string path = ConcatenatePaths(request.path, tensor.path);
      pending_.grad_formats[path] = FormatOf(path, request.options);
    }
    OTT_RETURN_IF_ERROR(InsertAt(request.path, std::move(copy), pending_.grads));
  }
  return absl::OkStatus();
}

absl::Status TensorDumper::Push(std::string name) {
  const std::lock_guard lock(mutex_);
  ranges_.push_back(std::move(name));
  return absl::OkStatus();
}

absl::Status TensorDumper::PopRange() { return active() ? Pop() : absl::OkStatus(); }

absl::Status TensorDumper::Pop() {
  const std::lock_guard lock(mutex_);
  if (ranges_.empty()) return absl::FailedPreconditionError("PopRange without a PushRange");
  ranges_.pop_back();
  return absl::OkStatus();
}

void TensorDumper::EnableRaggedBatchDumping(bool as_per_sample) {
  RegisterConverter<RaggedBatch>([as_per_sample](const RaggedBatch& batch) {
    return as_per_sample ? RaggedBatchSamples(batch) : RaggedBatchStructure(batch);
  });
}

void TensorDumper::SetDumpTypeForAll(DumpFormat format, bool include_tensors, bool include_grads) {
  const std::lock_guard lock(mutex_);
  if (include_tensors) format_for_all_tensors_ = format;
  if (include_grads) format_for_all_grads_ = format;
}

void TensorDumper::SetDumpCount(int64_t count) { SetCount(count, std::unique_lock(mutex_)); }

int64_t TensorDumper::dump_count() const {
  const std::lock_guard lock(mutex_);
  return dump_count_;
}

void TensorDumper::PerformAfterDumpCount(int64_t count, std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  actions_.insert_or_assign(count, std::move(action));
}

void TensorDumper::SetDumpIsCompare(CompareOptions options, OnDifference on_difference) {
  const std::lock_guard lock(mutex_);
  compare_mode_ = CompareMode{std::move(options), on_difference};
}

absl::Status TensorDumper::Dump(bool dump_if_empty) {
  std::unique_lock lock(mutex_);
  if (!enabled_ || paused_) return absl::OkStatus();
  const int64_t next_count = dump_count_ + 1;
  absl::Status status;
  if (Selected()) {
    if (!dump_if_empty && pending_.tensors.map().empty() && !pending_.has_grads) return absl::OkStatus();
    absl::StatusOr<std::pair<Pending, int64_t>> taken = TakePending();
    status = taken.status();
    if (taken.ok() && compare_mode_.has_value()) {
      const absl::StatusOr<TreeComparison> comparison =
          Compare(taken->first, taken->second, compare_mode_->options);
      const bool warn = compare_mode_->on_difference == OnDifference::kWarn;
      status = comparison.ok() ? ReportDifference(*comparison, taken->second, warn) : comparison.status();
    } else if (taken.ok()) {
      status = Write(std::move(taken->first), taken->second);
    }
  }
  SetCount(next_count, std::move(lock));
  return status;
}

absl::StatusOr<std::pair<TensorDumper::Pending, int64_t>> TensorDumper::TakePending() {
  Pending pending = std::exchange(pending_, Pending());
  if (pending.wanted_gradients.empty()) return std::pair(std::move(pending), dump_count_);
  return absl::FailedPreconditionError(
      absl::StrCat("gradients were asked for ('", pending.wanted_gradients[0].path,
                   "'...), but SetGradients was not called before dump ", dump_count_, ", which is lost"));
}

void TensorDumper::SetCount(int64_t count, std::unique_lock<std::mutex> lock) {
  dump_count_ = count;
  UpdateActive();
  std::vector<std::function<void()>> due;
  while (!actions_.empty() && actions_.begin()->first <= count) {
    due.push_back(std::move(actions_.extract(actions_.begin()).mapped()));
  }
  lock.unlock();
  for (const std::function<void()>& action : due) action();
}

absl::Status TensorDumper::Write(Pending pending, int64_t count) {
  int64_t num_bytes = 0;
  for (const Value* tree : {&pending.tensors, &pending.grads}) {
    for (const NamedTensor& tensor : ListTensors(*tree)) num_bytes += tensor.tensor.view.num_bytes();
  }
  const auto shared = std::make_shared<const Pending>(std::move(pending));
  auto write = [shared, count, options = options_, all_tensors = format_for_all_tensors_,
                all_grads = format_for_all_grads_] {
    const auto format_by = [](const Formats& formats, const std::optional<DumpFormat>& for_all) {
      return [&](std::string_view path) {
        return for_all.value_or(formats.at(absl::string_view(path.data(), path.size())));
      };
    };
    OTT_RETURN_IF_ERROR(shared->WaitForCopies());
    DumpContents contents;
    contents.tensors = {&shared->tensors, format_by(shared->tensor_formats, all_tensors)};
    if (shared->has_grads) contents.grads = {&shared->grads, format_by(shared->grad_formats, all_grads)};
    contents.iteration = count;
    contents.rank = options.rank;
    contents.world_size = options.world_size;
    contents.max_bytes = options.max_bytes_per_dump;
    contents.num_json_threads = options.num_json_threads;
    std::optional<Manifest> reference;
    if (!options.reference_dir.empty()) {
      OTT_ASSIGN_OR_RETURN(reference, ReadManifest(DumpDir(options.reference_dir, count)));
      if (reference.has_value()) contents.reference = &*reference;
    }
    return WriteDump(DumpDir(options.dir, count), contents, options.sync);
  };
  return queue_.has_value() ? queue_->Submit(num_bytes, std::move(write)) : write();
}

absl::Status TensorDumper::Flush() { return queue_.has_value() ? queue_->Flush() : absl::OkStatus(); }

int64_t TensorDumper::num_dropped_dumps() const { return queue_.has_value() ? queue_->num_dropped() : 0; }

absl::StatusOr<TreeComparison> TensorDumper::Compare(const Pending& pending, int64_t count,
                                                     const CompareOptions& options) const {
  OTT_RETURN_IF_ERROR(pending.WaitForCopies());
  return CompareToDump(DumpDir(options_.dir, count), pending.tensors,
                       pending.has_grads ? &pending.grads : nullptr, options);
}

absl::StatusOr<TreeComparison> TensorDumper::CompareToDumpedData(const CompareOptions& options) {
  std::unique_lock lock(mutex_);
  if (!active())
    return absl::FailedPreconditionError("the tensor dumper is not active, so there is nothing to compare");
  const int64_t next_count = dump_count_ + 1;
  const absl::StatusOr<std::pair<Pending, int64_t>> taken = TakePending();
  absl::StatusOr<TreeComparison> comparison =
      taken.ok() ? Compare(taken->first, taken->second, options) : taken.status();
  SetCount(next_count, std::move(lock));
  return comparison;
}

void TensorDumper::Discard() {
  const std::lock_guard lock(mutex_);
  pending_ = Pending();
}

}  // namespace ott
