#include "ott/core/dump/npy.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/json/json_cursor.h"

namespace ott {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// The elements start at a multiple of this.
constexpr size_t kAlignment = 64;

struct Header {
  std::string_view description;  // empty: not there yet
  std::optional<bool> fortran_order;
  std::optional<Dims> shape;
};

// The header is a Python dictionary with just these three entries.
absl::StatusOr<Header> ParseHeader(std::string_view text) {
  Header header;
  JsonCursor cursor(text, JsonDialect::kLiteral);
  JsonScalar scalar;
  const bool parsed = cursor.Object([&](std::string_view name) {
    if (name == "descr") return cursor.String(&header.description);
    if (name == "fortran_order") {
      if (!cursor.Scalar(&scalar)) return false;
      header.fortran_order = scalar.kind == JsonScalar::Kind::kTrue;
      return *header.fortran_order || scalar.kind == JsonScalar::Kind::kFalse;
    }
    if (name != "shape") return false;
    header.shape.emplace();
    return cursor.List([&] {
      return cursor.Scalar(&scalar) && scalar.kind == JsonScalar::Kind::kInteger &&
             absl::SimpleAtoi(absl::string_view(scalar.text.data(), scalar.text.size()),
                              &header.shape->emplace_back());
    });
  });
  cursor.Peek();
  if (!parsed || !cursor.at_end() || header.description.empty() || !header.fortran_order || !header.shape) {
    return absl::InvalidArgumentError("the .npy header is not what NumPy writes");
  }
  return header;
}

absl::StatusOr<DType> DTypeFromDescription(std::string_view description) {
  for (const DTypeInfo& known : kDTypes) {
    // Single bytes have no order, so any mark of one will do.
    const bool same_byte = known.size == 1 && description.size() == known.numpy.size() &&
                           description.substr(1) == known.numpy.substr(1);
    if (known.numpy == description || same_byte) return known.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the .npy header has the dtype '", std::string(description), "', which no tensor has"));
}

uint32_t LittleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

absl::StatusOr<std::string> NpyHeader(DType dtype, absl::Span<const int64_t> shape) {
  const std::string name(InfoOf(dtype).numpy);
  if (name.empty()) {
    return absl::UnimplementedError(absl::StrCat("NumPy has no ", std::string(Name(dtype))));
  }
  const absl::string_view comma = shape.size() == 1 ? "," : "";
  std::string text = absl::StrCat("{'descr': '", name, "', 'fortran_order': False, 'shape': (",
                                  absl::StrJoin(shape, ", "), comma, "), }");
  const size_t prefix = kMagic.size() + 4;
  text.append(kAlignment - 1 - (prefix + text.size()) % kAlignment, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)};
  return header + text;
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
  OTT_ASSIGN_OR_RETURN(const Header header, ParseHeader(file.substr(prefix, header_size)));
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
