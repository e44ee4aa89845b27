#include "questions/learning/event_file.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ott/questions/learning/tensorboard.pb.h"

namespace ott::learning {
namespace {

constexpr size_t kHeaderBytes = 12;  // length, checksum
constexpr size_t kChecksumBytes = 4;

template <typename T>
T LittleEndian(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < table.size(); ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) table[i] = (table[i] >> 1) ^ (table[i] & 1 ? 0x82f63b78U : 0);
  }
  return table;
}

std::optional<double> ScalarOf(const TensorBoardSummary::Value& value) {
  if (value.has_simple_value()) return value.simple_value();
  if (!value.has_tensor()) return std::nullopt;
  const TensorBoardTensor& tensor = value.tensor();
  if (tensor.float_val_size() == 1) return tensor.float_val(0);
  if (tensor.double_val_size() == 1) return tensor.double_val(0);
  const std::string& content = tensor.tensor_content();
  if (tensor.dtype() == 1 && content.size() == sizeof(float)) return LittleEndian<float>(content, 0);
  if (tensor.dtype() == 2 && content.size() == sizeof(double)) return LittleEndian<double>(content, 0);
  return std::nullopt;
}

}  // namespace

uint32_t MaskedChecksum(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = MakeTable();
  uint32_t checksum = 0xffffffffU;
  for (const char byte : bytes)
    checksum = (checksum >> 8) ^ table[(checksum ^ static_cast<uint8_t>(byte)) & 0xff];
  checksum = ~checksum;
  return ((checksum >> 15) | (checksum << 17)) + 0xa282ead8U;
}

bool IsEventFile(std::string_view bytes) {
  return bytes.size() >= kHeaderBytes &&
         LittleEndian<uint32_t>(bytes, 8) == MaskedChecksum(bytes.substr(0, 8));
}

absl::Status ReadEventFile(const std::string& path, std::string_view bytes, bool over_time,
                           MetricRows* rows) {
  size_t at = 0;
  while (bytes.size() - at >= kHeaderBytes) {
    const std::string_view record = bytes.substr(at);
    const auto damaged = [&](const char* what) {
      return absl::DataLossError(absl::StrCat(path, ": byte ", at, ": ", what));
    };
    if (!IsEventFile(record)) return damaged("the checksum of a record's length is wrong");
    const uint64_t length = LittleEndian<uint64_t>(record, 0);
    if (length > record.size() || record.size() - length < kHeaderBytes + kChecksumBytes) break;
    const std::string_view data = record.substr(kHeaderBytes, length);
    if (LittleEndian<uint32_t>(record, kHeaderBytes + length) != MaskedChecksum(data)) {
      return damaged("the checksum of an event is wrong");
    }
    TensorBoardEvent event;
    if (!event.ParseFromArray(data.data(), static_cast<int>(data.size()))) return damaged("this is no event");
    const double seconds = rows->SecondsOfRun(event.wall_time());
    for (const TensorBoardSummary::Value& value : event.summary().value()) {
      const std::optional<double> scalar = ScalarOf(value);
      if (!scalar.has_value()) continue;
      rows->AddPoint("", value.tag(), over_time ? seconds : static_cast<double>(event.step()), *scalar);
    }
    at += kHeaderBytes + length + kChecksumBytes;
  }
  return absl::OkStatus();
}

}  // namespace ott::learning
