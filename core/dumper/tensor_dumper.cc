#include "ott/core/dumper/tensor_dumper.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/helper.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/report.h"
#include "ott/core/digest/digest_on_device.h"
#include "ott/core/dump/adding_order.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/ragged_batch.h"

namespace ott {
namespace {

constexpr char kRequiresNoGrad[] = "`.requires_grad == False`";

// The same tree with what `next` returns, tensor by tensor in the order of ListTensors(), in their places.
Value ReplaceTensors(const Value& value, const std::function<Value()>& next) {
  if (value.is_tensor()) return next();
  if (value.is_list()) {
    Value::List list;
    list.reserve(value.list().size());
    for (const Value& item : value.list()) list.push_back(ReplaceTensors(item, next));
    return list;
  }
  if (!value.is_map()) return value;
  ValueMap map;
  for (const auto& [name, child] : value.map()) map.Insert(name, ReplaceTensors(child, next));
  return map;
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

std::string DumpDir(const std::string& dir, int64_t count) { return absl::StrCat(dir, "/", count); }

DumpSize MeasureDump(const std::string& dir, int64_t tensor_bytes) {
  DumpSize size;
  size.tensor_bytes = tensor_bytes;
  std::error_code error;
  for (std::filesystem::directory_iterator file(dir, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code unreadable;
    const auto bytes = static_cast<int64_t>(file->file_size(unreadable));
    if (unreadable) continue;
    size.file_bytes += bytes;
    const std::string name = file->path().filename().string();
    if (name == kTensorsFile || name == kGradsFile) size.json_bytes += bytes;
  }
  return size;
}

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
  const absl::Status status = TensorDumper::Get().Flush();
  if (!status.ok()) std::fprintf(stderr, "ott: tensor dumper: %s\n", status.ToString().c_str());
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
    queue_options.background = options_.writers_in_background;
    queue_.emplace(queue_options);
    if (this == process_wide_.Find()) internal::CallAtExit([] { FlushAtExit(); });
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
  keep_on_device_ = false;
  UpdateActive();
  queue_.reset();
  pending_ = Pending();
  dump_count_ = 0;
  ranges_.clear();
  actions_.clear();
  format_for_all_tensors_.reset();
  format_for_all_grads_.reset();
  compare_mode_.reset();
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

void TensorDumper::SetKeepOnDevice(bool keep) { keep_on_device_ = keep; }

bool TensorDumper::Selected() const {
  if (options_.adds_all) return true;
  return selection_.WantsIteration(dump_count_) && selection_.WantsRank(options_.rank);
}

void TensorDumper::UpdateActive() {
  const bool active = enabled_ && !paused_ && Selected();
  if (active_.exchange(active, std::memory_order_relaxed) == active) return;
  if (process_wide_.Find() == this) process_wide_.SetEnabled(active);
}

std::string TensorDumper::InRanges(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  return ConcatenatePaths(absl::StrJoin(ranges_, "."), path);
}

// Walks a tree once, and lists its tensors on the way.
class TensorDumper::Preparation {
 public:
  // selection: null selects all.
  Preparation(const AddOptions& options, const TensorDumperOptions& dumper, const Selection* selection)
      : options_(options), dumper_(dumper), selection_(selection) {}

  // nullopt if the value had tensors and none of them is left.
  std::optional<Value> Visit(const std::string& path, const Value& value) {
    return Visit(path, value, {options_.format, &options_.permute_axes});
  }
  std::vector<Prepared::StoredTensor> TakeTensors() { return std::move(tensors_); }

 private:
  struct Storage {
    DumpFormat format;
    const std::vector<int>* permute_axes;
  };

  // Returns how the map's entry of this name is stored.
  Storage Within(const std::string& name, Storage storage) const {
    const auto format = options_.format_overrides.find(name);
    if (format != options_.format_overrides.end()) storage.format = format->second;
    const auto axes = options_.permute_axes_overrides.find(name);
    if (axes != options_.permute_axes_overrides.end()) storage.permute_axes = &axes->second;
    return storage;
  }

  bool IsExcluded(const std::string& name) const {
    return std::find(options_.exclude.begin(), options_.exclude.end(), name) != options_.exclude.end();
  }

  DumpFormat FormatOf(const std::string& path, DumpFormat format) const {
    for (const TensorDumperOptions::FormatOfPaths& formats : dumper_.formats) {
      if (MatchesAnyTensorGlob(path, formats.paths)) return formats.format;
    }
    return format;
  }

  std::optional<Value> Visit(const std::string& path, const Value& value, const Storage& storage) {
    switch (value.kind()) {
      case Value::Kind::kTensor:
        if (selection_ != nullptr && !selection_->WantsPath(path)) return std::nullopt;
        tensors_.push_back({path, value.tensor(), FormatOf(path, storage.format), *storage.permute_axes});
        return value;
      case Value::Kind::kList: {
        Value::List list;
        for (size_t i = 0; i < value.list().size(); ++i) {
          // An item after one that is left out keeps its place.
          list.push_back(
              Visit(JoinPath(path, std::to_string(i)), value.list()[i], storage).value_or(Value()));
        }
        return list;
      }
      case Value::Kind::kMap: {
        ValueMap map;
        bool is_empty = true;
        for (const auto& [name, child] : value.map()) {
          if (IsExcluded(name)) continue;
          is_empty = false;
          if (std::optional<Value> left = Visit(JoinPath(path, name), child, Within(name, storage))) {
            map.Insert(name, *std::move(left));
          }
        }
        if (map.empty() && !is_empty) return std::nullopt;
        return map;
      }
      default:
        return value;
    }
  }

  const AddOptions& options_;
  const TensorDumperOptions& dumper_;
  const Selection* const selection_;
  std::vector<Prepared::StoredTensor> tensors_;
};

absl::StatusOr<std::optional<TensorDumper::Prepared>> TensorDumper::Prepare(std::string_view path,
                                                                            const Value& data,
                                                                            const AddOptions& options) const {
  const std::string full_path = InRanges(path);
  // A converter may take its time, and call the dumper.
  std::shared_ptr<const Converters> converters;
  {
    const std::lock_guard lock(mutex_);
    converters = converters_;
  }
  OTT_ASSIGN_OR_RETURN(const Value converted, converters->Apply(full_path, Exclude(data, options.exclude)));
  Preparation preparation(options, options_, options_.adds_all ? nullptr : &selection_);
  std::optional<Value> tree = preparation.Visit(full_path, converted);
  if (!tree.has_value()) return std::optional<Prepared>();
  OTT_RETURN_IF_ERROR(CheckDumpable(full_path, *tree));
  return std::optional<Prepared>({full_path, *std::move(tree), preparation.TakeTensors()});
}

absl::Status TensorDumper::Copy(std::vector<Prepared::StoredTensor>& tensors, std::vector<CopyDone>& copies) {
  const auto copy = [&](const Prepared::StoredTensor& stored) -> absl::StatusOr<Tensor> {
    TensorView view = stored.tensor.view;
    if (!stored.permute_axes.empty()) {
      OTT_ASSIGN_OR_RETURN(view, PermuteAxes(view, stored.permute_axes));
    }
    if (view.device().kind == Device::Kind::kHost) {
      return CloneToHost(view, [this](int64_t size) { return pool_->Allocate(size); });
    }
    if (keep_on_device_ && view.is_contiguous() && view.num_elements() > 0) {
      OTT_ASSIGN_OR_RETURN(std::shared_ptr<const DigestOnDevice> digest, StartDigestOnDevice(view));
      return WithDigest(std::move(digest));
    }
    return StartCloneToHost(
        view, [this](int64_t size) { return pinned_pool_->Allocate(size); }, &copies);
  };
  for (Prepared::StoredTensor& stored : tensors) {
    absl::StatusOr<Tensor> copied = copy(stored);
    if (!copied.ok()) return WithContext(absl::StrCat("'", stored.path, "'"), copied.status());
    stored.tensor = *std::move(copied);
  }
  return absl::OkStatus();
}

absl::Status TensorDumper::Pending::WaitForCopies() const {
  absl::Status status;
  for (const CopyDone& done : copies) status.Update(done());
  return status;
}

absl::Status TensorDumper::Add(std::string_view path, const Value& data, const AddOptions& options) {
  if (!options_.around_add) return AddNow(path, data, options);
  absl::Status status;
  options_.around_add([&] { status = AddNow(path, data, options); });
  return status;
}

absl::Status TensorDumper::AddNow(std::string_view path, const Value& data, const AddOptions& options) {
  OTT_ASSIGN_OR_RETURN(std::optional<Prepared> prepared, Prepare(path, data, options));
  if (!prepared.has_value()) return absl::OkStatus();
  std::vector<CopyDone> copies;
  OTT_RETURN_IF_ERROR(Copy(prepared->tensors, copies));
  auto next = prepared->tensors.begin();
  Value tree = ReplaceTensors(prepared->tree, [&] { return Value(next++->tensor); });
  const std::lock_guard lock(mutex_);
  OTT_RETURN_IF_ERROR(
      InsertInOrder(prepared->path, std::move(tree), pending_.tensors, pending_.tensor_order));
  pending_.copies.insert(pending_.copies.end(), copies.begin(), copies.end());
  for (const Prepared::StoredTensor& stored : prepared->tensors) {
    pending_.tensor_formats.emplace(stored.path, stored.format);
    pending_.num_bytes += stored.tensor.view.num_bytes();
  }
  return absl::OkStatus();
}

absl::Status TensorDumper::AddGrad(std::string_view path, const Value& data, const AddOptions& options) {
  OTT_ASSIGN_OR_RETURN(std::optional<Prepared> prepared, Prepare(path, data, options));
  if (!prepared.has_value()) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  pending_.has_grads = true;
  pending_.wanted_gradients.push_back(*std::move(prepared));
  return absl::OkStatus();
}

absl::Status TensorDumper::SetGradients(const GradientProvider& provider) {
  if (!active()) return absl::OkStatus();
  std::vector<Prepared> wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted.swap(pending_.wanted_gradients);
  }
  std::vector<NamedTensor> tensors;
  for (const Prepared& request : wanted) {
    for (const Prepared::StoredTensor& stored : request.tensors)
      tensors.push_back({stored.path, stored.tensor});
  }
  OTT_ASSIGN_OR_RETURN(const std::vector<Gradient> gradients, provider(tensors));
  OTT_RETURN_IF_ERROR(CheckGradients(tensors, gradients));

  const std::lock_guard lock(mutex_);
  absl::Status status;
  auto gradient = gradients.begin();
  for (const Prepared& request : wanted) {
    std::vector<Prepared::StoredTensor> computed;
    auto of_request = gradient;
    for (const Prepared::StoredTensor& stored : request.tensors) {
      const Gradient& found = *of_request++;
      if (found.kind != Gradient::Kind::kComputed) continue;
      computed.push_back(stored);
      computed.back().tensor = *found.gradient;
    }
    OTT_RETURN_IF_ERROR(Copy(computed, pending_.copies));
    auto next = computed.begin();
    Value tree = ReplaceTensors(request.tree, [&] {
      const Gradient::Kind kind = gradient++->kind;
      if (kind == Gradient::Kind::kComputed) return Value(next++->tensor);
      return kind == Gradient::Kind::kRequiresNoGrad ? Value(kRequiresNoGrad) : Value();
    });
    const absl::Status inserted =
        InsertInOrder(request.path, std::move(tree), pending_.grads, pending_.grad_order);
    status.Update(inserted);
    if (!inserted.ok()) continue;
    for (const Prepared::StoredTensor& stored : computed) {
      pending_.grad_formats.emplace(stored.path, stored.format);
      pending_.num_bytes += stored.tensor.view.num_bytes();
    }
  }
  return status;
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

void TensorDumper::KeepSelected(Pending& pending) const {
  pending.num_bytes = 0;
  const bool had_grads = !pending.grads.map().empty();
  const AddOptions as_they_are;
  for (Value* const tree : {&pending.tensors, &pending.grads}) {
    Preparation preparation(as_they_are, options_, &selection_);
    *tree = preparation.Visit("", *tree).value_or(ValueMap());
    for (const Prepared::StoredTensor& stored : preparation.TakeTensors()) {
      pending.num_bytes += stored.tensor.view.num_bytes();
    }
  }
  // A dump whose gradients are all left out is like one to which none were added.
  if (had_grads && pending.grads.map().empty()) pending.has_grads = false;
}

absl::Status TensorDumper::Write(Pending pending, int64_t count) {
  if (options_.adds_all) KeepSelected(pending);
  const int64_t num_bytes = pending.num_bytes;
  const auto shared = std::make_shared<const Pending>(std::move(pending));
  auto write = [shared, count, num_bytes, on_first_dump = std::exchange(options_.on_first_dump, nullptr),
                options = options_, all_tensors = format_for_all_tensors_,
                all_grads = format_for_all_grads_] {
    const auto format_by = [](const Formats& formats, const std::optional<DumpFormat>& for_all) {
      return [&](std::string_view path) { return for_all.value_or(formats.at(std::string(path))); };
    };
    OTT_RETURN_IF_ERROR(shared->WaitForCopies());
    DumpContents contents;
    contents.tensors = {&shared->tensors, format_by(shared->tensor_formats, all_tensors),
                        &shared->tensor_order};
    if (shared->has_grads) {
      contents.grads = {&shared->grads, format_by(shared->grad_formats, all_grads), &shared->grad_order};
    }
    contents.iteration = count;
    contents.rank = options.rank;
    contents.world_size = options.world_size;
    contents.max_bytes = options.max_bytes_per_dump;
    contents.num_json_threads = options.num_json_threads;
    // A reference that cannot be read has nothing that could be left out: the dump is written in full.
    absl::StatusOr<std::optional<Manifest>> reference;
    if (!options.reference_dir.empty()) reference = ReadManifest(DumpDir(options.reference_dir, count));
    if (reference.ok() && reference->has_value()) contents.reference = &**reference;
    const std::string dir = DumpDir(options.dir, count);
    OTT_RETURN_IF_ERROR(WriteDump(dir, contents, options.sync));
    if (on_first_dump) on_first_dump(MeasureDump(dir, num_bytes));
    if (options.reference_dir.empty() || reference.ok()) return absl::OkStatus();
    return WithContext(absl::StrCat(dir, " is dumped in full"), reference.status());
  };
  return queue_.has_value() ? queue_->Submit(num_bytes, std::move(write)) : write();
}

absl::Status TensorDumper::Flush() { return queue_.has_value() ? queue_->Flush() : absl::OkStatus(); }

int64_t TensorDumper::num_dropped_dumps() const { return queue_.has_value() ? queue_->num_dropped() : 0; }

absl::StatusOr<TreeComparison> TensorDumper::Compare(const Pending& added, int64_t count,
                                                     const CompareOptions& options) {
  Pending pending = added;
  if (options_.adds_all) KeepSelected(pending);
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

std::vector<std::string> TensorDumper::OrderOf(std::vector<std::string> Pending::*order) const {
  const std::lock_guard lock(mutex_);
  return pending_.*order;
}

void TensorDumper::Discard() {
  const std::lock_guard lock(mutex_);
  pending_ = Pending();
}

}  // namespace ott
