#include "ott/core/dump/npy.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// The elements start at a multiple of this.
constexpr size_t kAlignment = 64;

struct Header {
  std::string description;  // empty: not there yet
  std::optional<bool> fortran_order;
  std::optional<Dims> shape;
};

// The header is a Python dictionary with just these three entries.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  absl::StatusOr<Header> Parse() {
    Header header;
    if (!Consume('{')) return Bad();
    while (!Consume('}')) {
      const std::optional<std::string> name = String();
      if (!name.has_value() || !Consume(':') || !Entry(*name, header)) return Bad();
      if (!Consume(',')) {
        if (!Consume('}')) return Bad();
        break;
      }
    }
    SkipSpace();
    if (!text_.empty() || header.description.empty() || !header.fortran_order || !header.shape) return Bad();
    return header;
  }

 private:
  static absl::Status Bad() { return absl::InvalidArgumentError("the .npy header is not what NumPy writes"); }

  bool Entry(const std::string& name, Header& header) {
    if (name == "descr") {
      header.description = String().value_or("");
      return !header.description.empty();
    }
    if (name == "fortran_order") return (header.fortran_order = Bool()).has_value();
    if (name == "shape") return (header.shape = Tuple()).has_value();
    return false;
  }

  void SkipSpace() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }

  bool Consume(char c) {
    SkipSpace();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool ConsumeWord(std::string_view word) {
    SkipSpace();
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  std::optional<std::string> String() {
    if (!Consume('\'')) return std::nullopt;
    const size_t end = text_.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    std::string string(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    return string;
  }

  std::optional<bool> Bool() {
    if (ConsumeWord("True")) return true;
    if (ConsumeWord("False")) return false;
    return std::nullopt;
  }

  std::optional<Dims> Tuple() {
    if (!Consume('(')) return std::nullopt;
    Dims dims;
    while (!Consume(')')) {
      SkipSpace();
      int64_t dimension = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dimension);
      if (error != std::errc()) return std::nullopt;
      text_.remove_prefix(end - text_.data());
      dims.push_back(dimension);
      if (!Consume(',')) {
        if (!Consume(')')) return std::nullopt;
        break;
      }
    }
    return dims;
  }

  std::string_view text_;
};

absl::StatusOr<DType> DTypeFromDescription(const std::string& description) {
  for (const DTypeInfo& known : kDTypes) {
    if (known.numpy.empty()) continue;
    // Single bytes have no order, so any mark of one will do.
    const bool same_byte = known.size == 1 && description.size() == known.numpy.size() &&
                           std::string_view(description).substr(1) == known.numpy.substr(1);
    if (known.numpy == description || same_byte) return known.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the .npy header has the dtype '", description, "', which no tensor has"));
}

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

absl::StatusOr<std::string> NpyHeader(DType dtype, absl::Span<const int64_t> shape) {
  for (const DTypeInfo& known : kDTypes) {
    if (known.dtype != dtype || known.numpy.empty()) continue;
    const absl::string_view comma = shape.size() == 1 ? "," : "";
    std::string text =
        absl::StrCat("{'descr': '", std::string(known.numpy), "', 'fortran_order': False, 'shape': (",
                     absl::StrJoin(shape, ", "), comma, "), }");
    const size_t prefix = kMagic.size() + 4;
    text.append(kAlignment - 1 - (prefix + text.size()) % kAlignment, ' ');
    text += '\n';
    std::string header(kMagic);
    header += {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
    return header + text;
  }
  return absl::UnimplementedError(
      absl::StrCat("NumPy has no ", std::string(Name(dtype)), "; dump it as BINARY or SAFETENSORS"));
}

absl::StatusOr<TensorView> ParseNpy(std::string_view file) {
  const absl::Status truncated = absl::DataLossError(absl::StrCat(
      "a .npy file cut at byte ", file.size(), "; the program was probably killed while writing"));
  if (file.size() < kMagic.size() + 4) return truncated;
  if (file.substr(0, kMagic.size()) != kMagic) return absl::InvalidArgumentError("not a .npy file");
  const char version = file[kMagic.size()];
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(absl::StrCat("a .npy file of version ", static_cast<int>(version)));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t prefix = kMagic.size() + 2 + length_bytes;
  if (file.size() < prefix) return truncated;
  const size_t header_size = LittleEndian(file.substr(prefix - length_bytes, length_bytes));
  if (file.size() - prefix < header_size) return truncated;
  OTT_ASSIGN_OR_RETURN(const Header header, HeaderParser(file.substr(prefix, header_size)).Parse());
  OTT_ASSIGN_OR_RETURN(const DType dtype, DTypeFromDescription(header.description));
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(dtype, *header.shape));

  const std::string_view data = file.substr(prefix + header_size);
  if (static_cast<int64_t>(data.size()) < num_bytes) return truncated;
  if (static_cast<int64_t>(data.size()) > num_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the .npy file has ", data.size(),
                                                   " bytes of elements, but ", ShapeToString(*header.shape),
                                                   " ", std::string(Name(dtype)), " has ", num_bytes));
  }
  if (!*header.fortran_order) return TensorView(data.data(), dtype, *header.shape);
  Dims strides(header.shape->size());
  int64_t stride = 1;
  for (size_t i = 0; i < strides.size(); ++i) {
    strides[i] = stride;
    if ((*header.shape)[i] > 0) stride *= (*header.shape)[i];
  }
  return TensorView(data.data(), dtype, *header.shape, strides);
}

}  // namespace ott
