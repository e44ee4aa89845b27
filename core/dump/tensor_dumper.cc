#include "ott/core/dump/tensor_dumper.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/dump/insert.h"

namespace ott {
namespace {

constexpr char kRequiresNoGrad[] = "`.requires_grad == False`";

// The format of the closest name that has one.
DumpFormat FormatOf(const std::string& path, const AddOptions& options) {
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (const auto found = options.format_overrides.find(*name); found != options.format_overrides.end()) {
      return found->second;
    }
  }
  return options.format;
}

// The same tree with the gradients, which come in the order of ListTensors(), in place of the tensors.
Value ReplaceTensors(const Value& value, absl::Span<const Gradient>::iterator& gradient) {
  switch (value.kind()) {
    case Value::Kind::kTensor: {
      const Gradient& found = *gradient++;
      if (found.kind == Gradient::Kind::kComputed) return *found.gradient;
      return found.kind == Gradient::Kind::kRequiresNoGrad ? Value(kRequiresNoGrad) : Value();
    }
    case Value::Kind::kList: {
      Value::List list;
      for (const Value& item : value.list()) list.push_back(ReplaceTensors(item, gradient));
      return list;
    }
    case Value::Kind::kMap: {
      ValueMap map;
      for (const auto& [name, child] : value.map()) map.Insert(name, ReplaceTensors(child, gradient));
      return map;
    }
    default:
      return value;
  }
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
  options_ = std::move(options);
  enabled_ = true;
  SetActive(true);
  return absl::OkStatus();
}

void TensorDumper::Pause() {
  const std::lock_guard lock(mutex_);
  SetActive(false);
}

void TensorDumper::Resume() {
  const std::lock_guard lock(mutex_);
  SetActive(enabled_);
}

void TensorDumper::SetActive(bool active) {
  active_.store(active, std::memory_order_relaxed);
  if (const absl::StatusOr<TensorDumper*> found = process_wide_.Find(); found.ok() && *found == this) {
    process_wide_.SetEnabled(active);
  }
}

std::string TensorDumper::InRanges(std::string_view path) const {
  return ConcatenatePaths(absl::StrJoin(ranges_, "."), path);
}

absl::Status TensorDumper::Add(std::string_view path, const Value& data, const AddOptions& options) {
  OTT_ASSIGN_OR_RETURN(Value copy, Snapshot(data));
  const std::lock_guard lock(mutex_);
  const std::string full_path = InRanges(path);
  const std::vector<NamedTensor> added = ListTensors(copy);
  OTT_RETURN_IF_ERROR(InsertAt(full_path, std::move(copy), pending_.tensors));
  for (const NamedTensor& tensor : added) {
    const std::string tensor_path = ConcatenatePaths(full_path, tensor.path);
    pending_.tensor_formats[tensor_path] = FormatOf(tensor_path, options);
  }
  return absl::OkStatus();
}

absl::Status TensorDumper::AddGrad(std::string_view path, Value data, const AddOptions& options) {
  const std::lock_guard lock(mutex_);
  pending_.has_grads = true;
  pending_.wanted_gradients.push_back({InRanges(path), std::move(data), options});
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
    OTT_ASSIGN_OR_RETURN(Value copy, Snapshot(ReplaceTensors(request.data, gradient)));
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

absl::Status TensorDumper::PopRange() {
  if (!active()) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  if (ranges_.empty()) return absl::FailedPreconditionError("PopRange without a PushRange");
  ranges_.pop_back();
  return absl::OkStatus();
}

void TensorDumper::SetDumpTypeForAll(DumpFormat format) {
  const std::lock_guard lock(mutex_);
  format_for_all_ = format;
}

void TensorDumper::SetDumpCount(int64_t count) {
  const std::lock_guard lock(mutex_);
  dump_count_ = count;
}

int64_t TensorDumper::dump_count() const {
  const std::lock_guard lock(mutex_);
  return dump_count_;
}

absl::Status TensorDumper::Dump() {
  if (!active()) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  const Pending pending = std::exchange(pending_, Pending());
  const int64_t count = dump_count_++;
  if (!pending.wanted_gradients.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("gradients were asked for ('", pending.wanted_gradients[0].path,
                     "'...), but SetGradients was not called before dump ", count, ", which is lost"));
  }
  const auto format_by = [this](const Formats& formats) {
    return [this, &formats](std::string_view path) {
      return format_for_all_.value_or(formats.at(absl::string_view(path.data(), path.size())));
    };
  };
  DumpContents contents;
  contents.tensors = {&pending.tensors, format_by(pending.tensor_formats)};
  if (pending.has_grads) contents.grads = {&pending.grads, format_by(pending.grad_formats)};
  contents.iteration = count;
  contents.rank = options_.rank;
  contents.world_size = options_.world_size;
  return WriteDump(absl::StrCat(options_.dir, "/", count), contents, options_.sync);
}

void TensorDumper::Discard() {
  const std::lock_guard lock(mutex_);
  pending_ = Pending();
}

}  // namespace ott
