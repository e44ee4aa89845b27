#include "ott/core/op_log/op_log_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"

namespace ott {
namespace {

using internal::OpLogHeader;
using internal::OpLogNonFinite;
using internal::OpLogOp;
using internal::OpLogRecordHeader;
using internal::OpLogTensor;

constexpr uint32_t kMaxTensors = 1 << 16;
constexpr uint32_t kMaxDimensions = 64;

// Reads from the front of some bytes; after a failure nothing.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Read() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      failed_ = true;
      bytes_ = {};
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  // Returns valid UTF-8.
  std::string ReadString() {
    const auto size = Read<uint32_t>();
    if (bytes_.size() < size) {
      failed_ = true;
      bytes_ = {};
      return "";
    }
    std::string text = ValidUtf8(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  bool failed() const { return failed_; }

 private:
  std::string_view bytes_;
  bool failed_ = false;
};

// Null for what is none.
std::unique_ptr<OpDefinition> ReadDefinition(std::string_view bytes) {
  Cursor cursor(bytes);
  auto definition = std::make_unique<OpDefinition>();
  definition->name = cursor.ReadString();
  definition->module = cursor.ReadString();
  definition->phase = cursor.ReadString();
  const std::string file = cursor.ReadString();
  const auto line = cursor.Read<uint32_t>();
  if (!file.empty()) definition->source = absl::StrCat(file, ":", line);
  const auto role = cursor.Read<uint8_t>();
  if (role > static_cast<uint8_t>(OpRole::kCollective)) return nullptr;
  definition->role = static_cast<OpRole>(role);
  definition->is_backward = cursor.Read<uint8_t>() != 0;
  const auto num_tensors = cursor.Read<uint32_t>();
  if (cursor.failed() || num_tensors > kMaxTensors) return nullptr;
  for (uint32_t i = 0; i < num_tensors; ++i) {
    OpTensorDefinition& tensor = definition->tensors.emplace_back();
    tensor.name = cursor.ReadString();
    tensor.is_output = cursor.Read<uint8_t>() != 0;
    const absl::StatusOr<DType> dtype = ParseDType(cursor.ReadString());
    const auto num_dimensions = cursor.Read<uint32_t>();
    if (cursor.failed() || !dtype.ok() || num_dimensions > kMaxDimensions) return nullptr;
    tensor.dtype = *dtype;
    for (uint32_t d = 0; d < num_dimensions; ++d) tensor.shape.push_back(cursor.Read<int64_t>());
    const absl::StatusOr<int64_t> num_bytes = CheckedNumBytes(*dtype, tensor.shape);
    if (cursor.failed() || !num_bytes.ok()) return nullptr;
    tensor.num_elements = *num_bytes / SizeOf(*dtype);
  }
  return definition;
}

absl::Status CheckHeader(const std::string& path, const MappedFile& file, OpLogHeader* header) {
  const auto problem = [&](const std::string& text) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", text));
  };
  if (file.size() < static_cast<int64_t>(sizeof(OpLogHeader))) {
    return problem(
        absl::StrCat(file.size(), " bytes are too few for a log of operations; was it cut as it began?"));
  }
  std::memcpy(header, file.data(), sizeof(*header));
  if (std::memcmp(header->magic, internal::kOpLogMagic, sizeof(header->magic)) != 0) {
    return problem("no log of operations");
  }
  if (header->version != internal::kOpLogVersion) {
    return problem(absl::StrCat("a log of operations of version ", header->version,
                                "; this ott reads version ", internal::kOpLogVersion));
  }
  if (header->digest_bits != internal::kOpLogDigestBits ||
      header->num_sketch_sums != TensorSketch::kNumSums) {
    return problem(absl::StrCat("digests of ", header->digest_bits, " bits and sketches of ",
                                header->num_sketch_sums, " sums; this ott compares ",
                                internal::kOpLogDigestBits, " and ", TensorSketch::kNumSums));
  }
  return absl::OkStatus();
}

// One file's records, appended to `log`.
class PartReader {
 public:
  PartReader(const std::string& path, const MappedFile& file, LoggedOps& log)
      : path_(path),
        file_(file),
        log_(log),
        first_definition_(log.definitions.size()),
        first_iteration_(log.iterations.size()) {}

  void Read() {
    int64_t position = sizeof(OpLogHeader);
    while (!finished_) {
      const absl::StatusOr<int64_t> next = ReadRecord(position);
      if (!next.ok()) {
        log_.cut = absl::StrCat(path_, ": ends at byte ", position, ", after ", log_.ops.size(),
                                " operations: ", std::string(next.status().message()));
        if (log_.iterations.size() > first_iteration_) log_.iterations.back().is_cut = true;
        break;
      }
      position = *next;
    }
    EndIteration();
  }

 private:
  void EndIteration() {
    if (!log_.iterations.empty()) log_.iterations.back().end = log_.ops.size();
  }

  // Returns where the next one begins.
  absl::StatusOr<int64_t> ReadRecord(int64_t position) {
    const int64_t rest = file_.size() - position;
    OpLogRecordHeader header;
    if (rest < static_cast<int64_t>(sizeof(header))) {
      return absl::DataLossError("the run was killed, or the disk was full");
    }
    const char* const data = file_.data() + position;
    std::memcpy(&header, data, sizeof(header));
    if (header.size == 0) return absl::DataLossError("the run was killed, goes on, or the disk was full");
    if (header.size < sizeof(header) || header.size % 8 != 0) return absl::DataLossError("damaged");
    if (header.size > rest) return absl::DataLossError("the file was cut");
    const std::string_view payload(data + sizeof(header), header.size - sizeof(header));
    if (internal::OpLogCheck(payload.data(), payload.size()) != header.check) {
      return absl::DataLossError("damaged");
    }
    OTT_RETURN_IF_ERROR(Take(header, payload, data));
    return position + header.size;
  }

  absl::Status Take(const OpLogRecordHeader& header, std::string_view payload, const char* data) {
    switch (header.kind) {
      case internal::kDefinition: {
        std::unique_ptr<OpDefinition> definition = ReadDefinition(payload);
        if (definition == nullptr) return absl::DataLossError("damaged");
        definition->index = log_.definitions.size();
        log_.definitions.push_back(std::move(definition));
        return absl::OkStatus();
      }
      case internal::kIteration: {
        if (payload.size() != 8) return absl::DataLossError("damaged");
        EndIteration();
        LoggedOps::Iteration& iteration = log_.iterations.emplace_back();
        std::memcpy(&iteration.number, payload.data(), 8);
        iteration.begin = log_.ops.size();
        return absl::OkStatus();
      }
      case internal::kOp:
        return TakeOp(header, payload, data);
      case internal::kEnd:
        finished_ = true;
        return absl::OkStatus();
      default:
        return absl::DataLossError("damaged");
    }
  }

  absl::Status TakeOp(const OpLogRecordHeader& header, std::string_view payload, const char* data) {
    if (header.id >= log_.definitions.size() - first_definition_ || payload.size() < sizeof(OpLogOp) ||
        log_.iterations.empty()) {
      return absl::DataLossError("damaged");
    }
    const OpDefinition& definition = *log_.definitions[first_definition_ + header.id];
    const auto* const op = reinterpret_cast<const OpLogOp*>(payload.data());
    const size_t of_tensor =
        sizeof(OpLogTensor) + (header.flags & internal::kOpHasNonFinite ? sizeof(OpLogNonFinite) : 0);
    const size_t needed = sizeof(OpLogOp) + definition.tensors.size() * of_tensor + op->num_text_bytes;
    if (payload.size() < needed) return absl::DataLossError("damaged");
    log_.ops.emplace_back(&definition, data);
    return absl::OkStatus();
  }

  const std::string& path_;
  const MappedFile& file_;
  LoggedOps& log_;
  const size_t first_definition_;
  const size_t first_iteration_;
  bool finished_ = false;
};

}  // namespace

OpLogNonFinite LoggedOp::non_finite(int tensor) const {
  if ((header().flags & internal::kOpHasNonFinite) == 0) return {0, 0};
  return reinterpret_cast<const OpLogNonFinite*>(tensors() + num_tensors())[tensor];
}

std::string_view LoggedOp::arguments() const {
  const char* text = reinterpret_cast<const char*>(tensors() + num_tensors());
  if ((header().flags & internal::kOpHasNonFinite) != 0) text += num_tensors() * sizeof(OpLogNonFinite);
  return {text, op().num_text_bytes};
}

std::string OpLogPart(const std::string& path, int part) {
  if (part == 1) return path;
  const std::filesystem::path whole(path);
  return (whole.parent_path() / absl::StrCat(whole.stem().string(), "_", part, whole.extension().string()))
      .string();
}

absl::StatusOr<LoggedOps> ReadOpLog(const std::string& path) {
  LoggedOps log;
  for (int part = 1;; ++part) {
    const std::string part_path = OpLogPart(path, part);
    if (part > 1 && !PathExists(part_path)) break;
    OTT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(part_path));
    OpLogHeader header;
    OTT_RETURN_IF_ERROR(CheckHeader(part_path, *file, &header));
    log.rank = static_cast<int>(header.rank);
    log.world_size = static_cast<int>(header.world_size);
    // The first run ended where the second goes on.
    log.cut.clear();
    PartReader(part_path, *file, log).Read();
    log.files.push_back(std::move(file));
  }
  // Keeps the last run of an iteration that ran again.
  std::map<int64_t, size_t> last;
  for (size_t i = 0; i < log.iterations.size(); ++i) last[log.iterations[i].number] = i;
  std::vector<LoggedOps::Iteration> iterations;
  for (size_t i = 0; i < log.iterations.size(); ++i) {
    if (last[log.iterations[i].number] == i) iterations.push_back(log.iterations[i]);
  }
  log.iterations = std::move(iterations);
  return log;
}

}  // namespace ott
