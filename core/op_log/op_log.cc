#include "ott/core/op_log/op_log.h"

#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/digest/statistics_on_device.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/op_log/op_log_format.h"

namespace ott {
namespace {

using internal::OpLogNonFinite;
using internal::OpLogRecordHeader;
using internal::OpLogTensor;

// Limits an argument that is a string.
constexpr size_t kMaxStringArgument = 200;

template <typename T>
void AppendBytes(const T& value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendString(std::string_view text, std::string& out) {
  AppendBytes(static_cast<uint32_t>(text.size()), out);
  out.append(text);
}

void AppendArgument(const OpArg& arg, size_t index, std::string& text) {
  if (arg.kind() == OpArg::Kind::kTensor || arg.kind() == OpArg::Kind::kNone) return;
  if (!text.empty()) text += ", ";
  absl::StrAppend(&text, arg.name().empty() ? absl::StrCat("argument", index) : std::string(arg.name()), "=");
  switch (arg.kind()) {
    case OpArg::Kind::kBool:
      text += arg.bool_value() ? "true" : "false";
      break;
    case OpArg::Kind::kInt:
      absl::StrAppend(&text, arg.int_value());
      break;
    case OpArg::Kind::kDouble:
      absl::StrAppendFormat(&text, "%.17g", arg.double_value());
      break;
    case OpArg::Kind::kString:
      text.append(arg.string_value().substr(0, kMaxStringArgument));
      break;
    case OpArg::Kind::kInts:
      text += ShapeToString(arg.ints());
      break;
    default:
      break;
  }
}

}  // namespace

struct OpLog::OpenOp {
  // A tensor in device memory, by its place in `tensors`.
  struct OnDevice {
    size_t tensor;
    std::unique_ptr<const StatisticsOnDevice> statistics;
  };

  uint32_t number = 0;
  int64_t seq = -1;
  uint32_t thread = 0;
  // "MODULE.OPERATION."
  std::string path;
  std::string definition_begin;
  std::string definition_tensors;
  std::vector<OpLogTensor> tensors;
  std::vector<OpLogNonFinite> non_finite;
  std::vector<OnDevice> on_device;
  bool has_non_finite = false;
  int num_inputs = 0;
  int num_outputs = 0;
  std::string text;
  std::string definition;
  std::string payload;
};

std::string OpTensorPath(uint32_t number, bool is_output, int index) {
  return absl::StrCat("op", number, is_output ? ".output" : ".input", index);
}

OpLog::OpLog(Options options) : options_(std::move(options)) {}

OpLog::~OpLog() = default;

absl::StatusOr<std::unique_ptr<OpLog>> OpLog::Create(const Options& options) {
  std::unique_ptr<OpLog> log(new OpLog(options));
  OTT_ASSIGN_OR_RETURN(log->file_, internal::AppendFile::Create(options.path));
  internal::OpLogHeader header = {};
  std::memcpy(header.magic, internal::kOpLogMagic, sizeof(header.magic));
  header.version = internal::kOpLogVersion;
  header.digest_bits = internal::kOpLogDigestBits;
  header.rank = options.rank;
  header.world_size = options.world_size;
  header.num_sketch_sums = TensorSketch::kNumSums;
  OTT_RETURN_IF_ERROR(log->file_->Append({reinterpret_cast<const char*>(&header), sizeof(header)}));
  if (!options.keep.empty() && !options.kept_dir.empty()) {
    log->kept_ = std::make_unique<TensorDumper>();
    TensorDumperOptions kept;
    kept.dir = options.kept_dir;
    kept.rank = options.rank;
    kept.world_size = options.world_size;
    kept.num_writer_threads = 1;
    kept.reserved_bytes = 0;
    OTT_RETURN_IF_ERROR(log->kept_->Enable(std::move(kept)));
  }
  return log;
}

absl::Status OpLog::FinishKept() {
  return kept_ == nullptr ? absl::OkStatus() : kept_->Dump(/*dump_if_empty=*/false);
}

absl::Status OpLog::BeginIteration(int64_t iteration) {
  absl::Status kept = FinishKept();
  if (kept_ != nullptr) kept_->SetDumpCount(iteration);
  const std::lock_guard<std::mutex> lock(mutex_);
  next_number_ = 0;
  std::string payload;
  AppendBytes(iteration, payload);
  Write(internal::kIteration, 0, 0, payload);
  status_.Update(kept);
  return std::exchange(status_, absl::OkStatus());
}

absl::Status OpLog::Finish() {
  absl::Status kept = FinishKept();
  if (kept_ != nullptr) kept.Update(kept_->Disable());
  const std::lock_guard<std::mutex> lock(mutex_);
  Write(internal::kEnd, 0, 0, "");
  status_.Update(file_->Close());
  status_.Update(kept);
  return std::exchange(status_, absl::OkStatus());
}

int64_t OpLog::num_ops() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return num_ops_;
}

void OpLog::Write(uint16_t kind, uint16_t flags, uint32_t id, const std::string& payload) {
  if (!has_room_) return;
  record_.assign(sizeof(OpLogRecordHeader), '\0');
  record_ += payload;
  record_.append((8 - payload.size() % 8) % 8, '\0');
  OpLogRecordHeader header;
  header.size = static_cast<uint32_t>(record_.size());
  header.check =
      internal::OpLogCheck(record_.data() + sizeof(OpLogRecordHeader), record_.size() - sizeof(header));
  header.kind = kind;
  header.flags = flags;
  header.id = id;
  std::memcpy(record_.data(), &header, sizeof(header));
  const absl::Status written = file_->Append(record_);
  has_room_ = written.ok();
  status_.Update(written);
}

uint32_t OpLog::DefinitionOf(const std::string& definition) {
  const auto [known, is_new] =
      definitions_.try_emplace(definition, static_cast<uint32_t>(definitions_.size()));
  if (is_new) Write(internal::kDefinition, 0, known->second, definition);
  return known->second;
}

OpLog::OpenOp& OpLog::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (unused_.empty()) unused_.push_back(open_.emplace_back(std::make_unique<OpenOp>()).get());
  OpenOp& op = *unused_.back();
  unused_.pop_back();
  op.number = next_number_++;
  return op;
}

void OpLog::Keep(const OpenOp& op, const std::string& name, int index, bool is_output,
                 const TensorView& tensor) {
  if (kept_ == nullptr || !MatchesAnyGlob(op.path + name, options_.keep)) return;
  const absl::Status kept =
      kept_->AddTensorData(OpTensorPath(op.number, is_output, index), tensor, DumpFormat::kBinary);
  if (kept.ok()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  status_.Update(kept);
}

void OpLog::SetStatistics(OpenOp& op, size_t tensor, const absl::StatusOr<DigestAndStatistics>& read) {
  if (!read.ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_.Update(read.status());
    return;
  }
  const SketchedStatistics& statistics = read->statistics;
  OpLogTensor& logged = op.tensors[tensor];
  logged.digest_low = read->digest.low;
  logged.digest_high = read->digest.high;
  logged.norm = statistics.norm;
  logged.max_abs = statistics.max_abs;
  std::memcpy(logged.sketch, statistics.sketch.sums.data(), sizeof(logged.sketch));
  op.non_finite[tensor] = {statistics.num_nan, statistics.num_infinite};
  op.has_non_finite = op.has_non_finite || statistics.num_nan + statistics.num_infinite > 0;
}

void OpLog::AddTensor(OpenOp& op, const OpArg& arg, bool is_output) {
  if (arg.kind() != OpArg::Kind::kTensor) return;
  const TensorView& tensor = arg.tensor();
  const int index = is_output ? op.num_outputs++ : op.num_inputs++;
  const std::string name =
      arg.name().empty() ? absl::StrCat(is_output ? "output" : "input", index) : std::string(arg.name());
  std::string& definition = op.definition_tensors;
  AppendString(name, definition);
  AppendBytes(static_cast<uint8_t>(is_output), definition);
  AppendString(Name(tensor.dtype()), definition);
  AppendBytes(static_cast<uint32_t>(tensor.shape().size()), definition);
  for (const int64_t dimension : tensor.shape()) AppendBytes(dimension, definition);

  op.tensors.push_back({});
  op.non_finite.push_back({});
  absl::StatusOr<std::unique_ptr<const StatisticsOnDevice>> on_device = nullptr;
  if (HasStatisticsOnDevice(tensor)) on_device = StartStatisticsOnDevice(tensor);
  if (on_device.ok() && *on_device != nullptr) {
    op.on_device.push_back({op.tensors.size() - 1, *std::move(on_device)});
  } else {
    SetStatistics(op, op.tensors.size() - 1, ComputeDigestAndStatistics(tensor));
  }
  Keep(op, name, index, is_output, tensor);
}

void* OpLog::Begin(const ObservedOp& observed) {
  OpenOp& op = Take();
  op.seq = observed.seq;
  op.thread = static_cast<uint32_t>(observed.thread);
  op.path = observed.module.empty() ? "" : absl::StrCat(std::string(observed.module), ".");
  absl::StrAppend(&op.path, std::string(observed.name), ".");
  op.definition_begin.clear();
  AppendString(observed.name, op.definition_begin);
  AppendString(observed.module, op.definition_begin);
  AppendString(observed.phase, op.definition_begin);
  AppendString(observed.source.file == nullptr ? "" : observed.source.file, op.definition_begin);
  AppendBytes(static_cast<uint32_t>(observed.source.line), op.definition_begin);
  AppendBytes(static_cast<uint8_t>(observed.role), op.definition_begin);
  AppendBytes(static_cast<uint8_t>(observed.is_backward), op.definition_begin);
  op.definition_tensors.clear();
  op.tensors.clear();
  op.non_finite.clear();
  op.on_device.clear();
  op.has_non_finite = false;
  op.num_inputs = 0;
  op.num_outputs = 0;
  op.text.clear();
  size_t index = 0;
  for (const absl::Span<const OpArg> args : {observed.args, observed.attributes}) {
    for (const OpArg& arg : args) {
      AppendArgument(arg, index++, op.text);
      AddTensor(op, arg, /*is_output=*/false);
    }
  }
  return &op;
}

void OpLog::AddOutputs(void* handle, absl::Span<const OpArg> outputs) {
  OpenOp& op = *static_cast<OpenOp*>(handle);
  for (const OpArg& output : outputs) AddTensor(op, output, /*is_output=*/true);
}

void OpLog::End(void* handle) {
  OpenOp& op = *static_cast<OpenOp*>(handle);
  for (const OpenOp::OnDevice& on_device : op.on_device) {
    SetStatistics(op, on_device.tensor, on_device.statistics->Get());
  }
  op.on_device.clear();
  op.definition = op.definition_begin;
  AppendBytes(static_cast<uint32_t>(op.tensors.size()), op.definition);
  op.definition += op.definition_tensors;
  op.payload.clear();
  AppendBytes(
      internal::OpLogOp{op.seq, op.thread, op.number, static_cast<uint32_t>(op.text.size()), /*reserved=*/0},
      op.payload);
  for (const OpLogTensor& tensor : op.tensors) AppendBytes(tensor, op.payload);
  if (op.has_non_finite) {
    for (const OpLogNonFinite& counts : op.non_finite) AppendBytes(counts, op.payload);
  }
  op.payload += op.text;

  const std::lock_guard<std::mutex> lock(mutex_);
  const uint32_t id = DefinitionOf(op.definition);
  Write(internal::kOp, op.has_non_finite ? internal::kOpHasNonFinite : 0, id, op.payload);
  ++num_ops_;
  unused_.push_back(&op);
}

}  // namespace ott
