#include "ott/core/dumper/tensor_dumper.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/dump/insert.h"
#include "ott/core/tensor/ragged_batch.h"

namespace ott {
namespace {

constexpr char kRequiresNoGrad[] = "`.requires_grad == False`";

// How tensors are stored.
struct Storage {
  explicit Storage(const AddOptions& options) : format(options.format), permute_axes(&options.permute_axes) {}

  // Within the map's entry of this name.
  Storage Within(const std::string& name, const AddOptions& options) const {
    Storage within = *this;
    const auto format_found = options.format_overrides.find(name);
    if (format_found != options.format_overrides.end()) within.format = format_found->second;
    const auto axes_found = options.permute_axes_overrides.find(name);
    if (axes_found != options.permute_axes_overrides.end()) within.permute_axes = &axes_found->second;
    return within;
  }

  DumpFormat format;
  const std::vector<int>* permute_axes;
};

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

// The same tree with the tensors' axes in the order that is asked for. Notes their formats, by path.
absl::StatusOr<Value> Arrange(const std::string& path, const Value& value, const Storage& storage,
                              const AddOptions& options,
                              std::unordered_map<std::string, DumpFormat>& formats) {
  if (!value.is_tensor()) {
    const size_t name_begin = path.empty() ? 0 : path.size() + 1;
    return TransformChildren(path, value, [&](const std::string& child_path, const Value& child) {
      const Storage within =
          value.is_map() ? storage.Within(child_path.substr(name_begin), options) : storage;
      return Arrange(child_path, child, within, options, formats);
    });
  }
  formats[path] = storage.format;
  if (storage.permute_axes->empty()) return value;
  const absl::StatusOr<TensorView> permuted = PermuteAxes(value.tensor().view, *storage.permute_axes);
  if (!permuted.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", permuted.status().message()));
  }
  return Value(Tensor{*permuted, value.tensor().owner});
}

// The tree without the names that are excluded.
Value Exclude(const Value& value, const std::vector<std::string>& names) {
  if (names.empty()) return value;
  if (value.is_list()) {
    Value::List list;
    for (const Value& item : value.list()) list.push_back(Exclude(item, names));
    return list;
  }
  if (!value.is_map()) return value;
  ValueMap map;
  for (const auto& [name, child] : value.map()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) map.Insert(name, Exclude(child, names));
  }
  return map;
}

// The tree without the tensors that are not selected; in a list, null is in their place. Nothing where none
// is left.
std::optional<Value> Select(const std::string& path, const Value& value, const Selection& selection) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      return selection.WantsPath(path) ? std::optional<Value>(value) : std::nullopt;
    case Value::Kind::kList: {
      Value::List list;
      for (size_t i = 0; i < value.list().size(); ++i) {
        list.push_back(
            Select(JoinPath(path, std::to_string(i)), value.list()[i], selection).value_or(Value()));
      }
      return list;
    }
    case Value::Kind::kMap: {
      ValueMap map;
      for (const auto& [name, child] : value.map()) {
        if (std::optional<Value> selected = Select(JoinPath(path, name), child, selection)) {
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

TreeComparison NothingCompared() {
  NamedComparison result;
  result.comparison.status = CompareStatus::kEmpty;
  result.comparison.detail = "the tensor dumper is off, or nothing of this dump is wanted";
  TreeComparison comparison;
  comparison.results.push_back(std::move(result));
  return comparison;
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
  pool_->Reserve(std::min(options_.reserved_bytes, options_.max_queued_bytes));
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

absl::Status TensorDumper::Disable() {
  absl::Status status = Flush();
  const std::lock_guard lock(mutex_);
  if (!enabled_) return status;
  enabled_ = false;
  paused_ = false;
  UpdateActive();
  queue_.reset();
  pending_ = Pending();
  dump_count_ = 0;
  ranges_.clear();
  actions_.clear();
  format_for_all_tensors_.reset();
  format_for_all_grads_.reset();
  return status;
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
  OTT_ASSIGN_OR_RETURN(Value converted, converters->Apply(path, Exclude(data, options.exclude)));
  converted = Exclude(converted, options.exclude);
  OTT_RETURN_IF_ERROR(CheckDumpable(path, converted));
  return Select(path, converted, selection_);
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
  Formats formats;
  OTT_ASSIGN_OR_RETURN(const Value arranged,
                       Arrange(full_path, *selected, Storage(options), options, formats));
  std::vector<CopyDone> copies;
  OTT_ASSIGN_OR_RETURN(Value copy, Copy(arranged, &copies));
  const std::lock_guard lock(mutex_);
  OTT_RETURN_IF_ERROR(InsertAt(full_path, std::move(copy), pending_.tensors));
  pending_.copies.insert(pending_.copies.end(), copies.begin(), copies.end());
  pending_.tensor_formats.insert(formats.begin(), formats.end());
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
    OTT_ASSIGN_OR_RETURN(const Value arranged, Arrange(request.path, found, Storage(request.options),
                                                       request.options, pending_.grad_formats));
    OTT_ASSIGN_OR_RETURN(Value copy, Copy(arranged, &pending_.copies));
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
  if (!enabled_) return;
  actions_.insert_or_assign(count, std::move(action));
}

void TensorDumper::SetDumpIsCompare(CompareOptions options, OnDifference on_difference) {
  const std::lock_guard lock(mutex_);
  compare_mode_ = CompareMode{std::move(options), on_difference};
}

template <typename Use>
absl::Status TensorDumper::FinishDump(bool if_empty, Use use) {
  std::unique_lock lock(mutex_);
  if (!enabled_ || paused_) return absl::OkStatus();
  const int64_t count = dump_count_;
  absl::Status status;
  if (Selected()) {
    if (!if_empty && pending_.tensors.map().empty() && !pending_.has_grads) return absl::OkStatus();
    absl::StatusOr<Pending> taken = TakePending();
    pool_->ReleaseReserve();
    status = taken.ok() ? use(*std::move(taken), count) : taken.status();
  }
  SetCount(count + 1, std::move(lock));
  return status;
}

absl::Status TensorDumper::Dump(bool dump_if_empty) {
  return FinishDump(dump_if_empty, [this](Pending pending, int64_t count) {
    if (!compare_mode_.has_value()) return Write(std::move(pending), count);
    const bool warn = compare_mode_->on_difference == OnDifference::kWarn;
    const absl::StatusOr<TreeComparison> comparison = Compare(pending, count, compare_mode_->options);
    return comparison.ok() ? ReportDifference(*comparison, count, warn) : comparison.status();
  });
}

absl::StatusOr<TreeComparison> TensorDumper::CompareToDumpedData(const CompareOptions& options,
                                                                 bool compare_if_empty) {
  absl::StatusOr<TreeComparison> comparison = NothingCompared();
  OTT_RETURN_IF_ERROR(FinishDump(compare_if_empty, [&](const Pending& pending, int64_t count) {
    comparison = Compare(pending, count, options);
    return comparison.status();
  }));
  return comparison;
}

absl::StatusOr<TensorDumper::Pending> TensorDumper::TakePending() {
  Pending pending = std::exchange(pending_, Pending());
  if (pending.wanted_gradients.empty()) return pending;
  return absl::FailedPreconditionError(
      absl::StrCat("gradients were asked for ('", pending.wanted_gradients[0].path,
                   "'...), but SetGradients was not called before dump ", dump_count_, ", which is lost"));
}

void TensorDumper::SetCount(int64_t count, std::unique_lock<std::mutex> lock) {
  if (!enabled_) return;
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
      return [&](std::string_view path) { return for_all.value_or(formats.at(std::string(path))); };
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
                                                     const CompareOptions& options) {
  OTT_RETURN_IF_ERROR(pending.WaitForCopies());
  // The reference may be one that this process is still writing.
  OTT_RETURN_IF_ERROR(Flush());
  const std::string dir = DumpDir(options_.dir, count);
  TreeComparison comparison =
      CompareToDump(dir, pending.tensors, pending.has_grads ? &pending.grads : nullptr, options);
  if (comparison.verdict() == Verdict::kEqual) {
    std::fprintf(stderr, "ott: compared with the dump %s: %s\n", dir.c_str(),
                 SummaryText(comparison).c_str());
  }
  return comparison;
}

absl::StatusOr<Value> TensorDumper::Finished(Value Pending::*tree) const {
  Pending pending;
  {
    const std::lock_guard lock(mutex_);
    pending.*tree = pending_.*tree;
    pending.copies = pending_.copies;
  }
  OTT_RETURN_IF_ERROR(pending.WaitForCopies());
  return pending.*tree;
}

void TensorDumper::Discard() {
  const std::lock_guard lock(mutex_);
  pending_ = Pending();
}

}  // namespace ott
