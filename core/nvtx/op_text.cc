#include "ott/core/nvtx/op_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "ott/core/json/json_string.h"

namespace ott::internal {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// "00" to "99", the first digit in the low byte.
struct DigitPairs {
  constexpr DigitPairs() : pairs() {
    for (int i = 0; i < 100; ++i) pairs[i] = static_cast<uint16_t>(('0' + i / 10) | ('0' + i % 10) << 8);
  }
  uint16_t pairs[100];
};
constexpr DigitPairs kDigitPairs;

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// All of these write to `to` and return the end. Up to four bytes beyond it may be overwritten.

template <size_t N>
char* Literal(const char (&text)[N], char* to) {
  std::memcpy(to, text, N - 1);
  return to + N - 1;
}

char* Text(std::string_view text, char* to) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

constexpr size_t kMaxIntSize = 20;

inline char* Int(int64_t value, char* to) {
  if (static_cast<uint64_t>(value) >= 10000) return std::to_chars(to, to + kMaxIntSize, value).ptr;
  // Four digits, of which leading zeros are shifted out.
  const auto small = static_cast<uint32_t>(value);
  const int leading = (small < 10) + (small < 100) + (small < 1000);
  const uint32_t digits = kDigitPairs.pairs[small / 100] | uint32_t{kDigitPairs.pairs[small % 100]} << 16;
  const uint32_t shifted = digits >> (8 * leading);
  std::memcpy(to, &shifted, sizeof(shifted));
  return to + 4 - leading;
}

// "[1, 2]" with the separator ", ".
template <size_t N>
char* Ints(absl::Span<const int64_t> values, const char (&separator)[N], char* to) {
  *to++ = '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) to = Literal(separator, to);
    to = Int(values[i], to);
  }
  *to++ = ']';
  return to;
}

size_t MaxSizeOfInts(size_t count) { return count * (kMaxIntSize + 2) + 2; }

size_t MaxSizeOfOneLine(std::string_view text) { return 4 * text.size(); }

char* OneLine(std::string_view text, char* to) {
  if (std::none_of(text.begin(), text.end(), IsControl)) return Text(text, to);
  for (const char c : text) {
    if (!IsControl(c)) {
      *to++ = c;
    } else if (c == '\n') {
      to = Literal("\\n", to);
    } else if (c == '\t') {
      to = Literal("\\t", to);
    } else {
      to = Literal("\\x", to);
      *to++ = kHexDigits[c >> 4];
      *to++ = kHexDigits[c & 15];
    }
  }
  return to;
}

size_t MaxSizeOfEscaped(std::string_view text) { return MaxEscapedJsonSize(text.size()); }

char* String(std::string_view text, char* to) {
  *to++ = '"';
  to = EscapeJson(text, to);
  *to++ = '"';
  return to;
}

char* Number(double value, char* to) {
  // The longest is -2.2250738585072014e-308.
  constexpr size_t kMaxSize = 24;
  if (std::isnan(value)) return Literal("\"NaN\"", to);
  if (std::isinf(value)) return value > 0 ? Literal("\"Infinity\"", to) : Literal("\"-Infinity\"", to);
  return std::to_chars(to, to + kMaxSize, value).ptr;
}

// Replaces a comma, if there is one before.
char* Close(char bracket, char* to) {
  if (to[-1] == ',') --to;
  *to++ = bracket;
  return to;
}

char* Tensor(const TensorView& tensor, const OpRecord& record, char* to) {
  if (record.dtypes) {
    to = Literal("\"dtype\":\"", to);
    to = Text(Name(tensor.dtype()), to);
    to = Literal("\",", to);
  }
  if (record.shapes) {
    to = Literal("\"shape\":", to);
    to = Ints(tensor.shape(), ",", to);
    *to++ = ',';
  }
  if (!record.layouts) return to;
  to = Literal("\"strides\":", to);
  to = Ints(tensor.strides(), ",", to);
  if (tensor.device().kind == Device::Kind::kHost) return Literal(",\"device\":\"cpu\"", to);
  to = Literal(",\"device\":\"cuda:", to);
  to = Int(tensor.device().ordinal, to);
  *to++ = '"';
  return to;
}

char* Value(const OpArg& arg, char* to) {
  switch (arg.kind()) {
    case OpArg::Kind::kBool:
      return arg.bool_value() ? Literal("true", to) : Literal("false", to);
    case OpArg::Kind::kInt:
      return Int(arg.int_value(), to);
    case OpArg::Kind::kDouble:
      return Number(arg.double_value(), to);
    case OpArg::Kind::kString:
      return String(arg.string_value(), to);
    case OpArg::Kind::kInts:
      return Ints(arg.ints(), ",", to);
    case OpArg::Kind::kNone:
    case OpArg::Kind::kTensor:
      break;
  }
  return Literal("null", to);
}

size_t MaxSizeOfArgs(absl::Span<const OpArg> args) {
  // More than keys, braces, a dtype, a device or a number take.
  constexpr size_t kMaxFixedSize = 160;
  size_t size = 0;
  for (const OpArg& arg : args) {
    size += kMaxFixedSize + MaxSizeOfEscaped(arg.name());
    if (arg.kind() == OpArg::Kind::kTensor) {
      size += 2 * MaxSizeOfInts(arg.tensor().shape().size());
    } else if (arg.kind() == OpArg::Kind::kInts) {
      size += MaxSizeOfInts(arg.ints().size());
    } else if (arg.kind() == OpArg::Kind::kString) {
      size += MaxSizeOfEscaped(arg.string_value());
    }
  }
  return size;
}

char* Args(absl::Span<const OpArg> args, const OpRecord& record, char* to) {
  to = Literal("\"args\":[", to);
  for (const OpArg& arg : args) {
    *to++ = '{';
    if (!arg.name().empty()) {
      to = Literal("\"name\":", to);
      to = String(arg.name(), to);
      *to++ = ',';
    }
    if (arg.kind() == OpArg::Kind::kTensor) {
      to = Tensor(arg.tensor(), record, to);
    } else {
      to = Literal("\"value\":", to);
      to = Value(arg, to);
    }
    to = Close('}', to);
    *to++ = ',';
  }
  to = Close(']', to);
  *to++ = ',';
  return to;
}

char* Attributes(absl::Span<const OpArg> attributes, char* to) {
  to = Literal("\"attributes\":{", to);
  for (const OpArg& attribute : attributes) {
    to = String(attribute.name(), to);
    *to++ = ':';
    to = Value(attribute, to);
    *to++ = ',';
  }
  to = Close('}', to);
  *to++ = ',';
  return to;
}

// More than the fixed words of a label or of the JSON take, with three numbers.
constexpr size_t kMaxFixedSize = 256;

// sizes_of: of each of the arguments that are shown.
template <typename Args, typename SizesOf>
void FormatLabel(std::string_view name, int64_t seq, const Args& args, const SizesOf& sizes_of,
                 TextBuffer& text) {
  size_t max_size = kMaxFixedSize + MaxSizeOfOneLine(name);
  for (const auto& arg : args) max_size += 2 + MaxSizeOfInts(sizes_of(arg).size());
  char* to = text.Start(max_size);
  to = OneLine(name, to);
  if (seq >= 0) {
    to = Literal(", seq = ", to);
    to = Int(seq, to);
  }
  if (!args.empty()) {
    to = Literal(", sizes = [", to);
    for (size_t i = 0; i < args.size(); ++i) {
      if (i > 0) to = Literal(", ", to);
      to = Ints(sizes_of(args[i]), ", ", to);
    }
    *to++ = ']';
  }
  text.Finish(to);
}

}  // namespace

void TextBuffer::Grow(size_t capacity) {
  capacity_ = std::max(capacity, 2 * capacity_);
  text_.reset(new char[capacity_]);
}

void FormatOpLabel(std::string_view name, int64_t seq, absl::Span<const OpArg> args, const OpRecord& record,
                   TextBuffer& text) {
  const auto sizes_of = [](const OpArg& arg) {
    return arg.kind() == OpArg::Kind::kTensor ? absl::Span<const int64_t>(arg.tensor().shape())
                                              : absl::Span<const int64_t>();
  };
  FormatLabel(name, seq, record.shapes ? args : absl::Span<const OpArg>(), sizes_of, text);
}

void FormatOpLabel(std::string_view name, int64_t seq, absl::Span<const absl::Span<const int64_t>> sizes,
                   TextBuffer& text) {
  FormatLabel(
      name, seq, sizes, [](absl::Span<const int64_t> of_arg) { return of_arg; }, text);
}

void FormatLayerLabel(std::string_view name, TextBuffer& text) {
  text.Finish(OneLine(name, Literal("layer:", text.Start(kMaxFixedSize + MaxSizeOfOneLine(name)))));
}

void FormatOpJson(const LabelledOp& op, const OpRecord& record, TextBuffer& text) {
  const std::string_view file = op.source.file == nullptr ? "" : op.source.file;
  char* to = text.Start(kMaxFixedSize + MaxSizeOfEscaped(op.name) + MaxSizeOfEscaped(op.module) +
                        MaxSizeOfEscaped(file) + MaxSizeOfArgs(op.args) + MaxSizeOfArgs(op.attributes));
  to = Literal("{\"op\":", to);
  to = String(op.name, to);
  *to++ = ',';
  if (!op.module.empty()) {
    to = Literal("\"module\":", to);
    to = String(op.module, to);
    *to++ = ',';
  }
  to = Args(op.args, record, to);
  if (!op.attributes.empty()) to = Attributes(op.attributes, to);
  to = op.backward ? Literal("\"direction\":\"backward\"", to) : Literal("\"direction\":\"forward\"", to);
  if (op.seq >= 0) {
    to = Literal(",\"seq\":", to);
    to = Int(op.seq, to);
  }
  if (op.forward_thread != 0) {
    to = Literal(",\"forward_thread\":", to);
    to = Int(op.forward_thread, to);
  }
  if (!file.empty()) {
    to = Literal(",\"source\":\"", to);
    to = EscapeJson(file, to);
    *to++ = ':';
    to = Int(op.source.line, to);
    *to++ = '"';
  }
  *to++ = '}';
  text.Finish(to);
}

}  // namespace ott::internal
