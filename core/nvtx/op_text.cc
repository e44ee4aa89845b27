#include "ott/core/nvtx/op_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ott::internal {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Whether JSON takes all bytes as they are.
bool IsPlain(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  uint64_t special = 0;
  size_t i = 0;
  // Eight at once, the high bit telling of each. A borrow reaches the next byte only from a special one.
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t bytes;
    std::memcpy(&bytes, text.data() + i, 8);
    special |=
        bytes | (bytes - kOnes * ' ') | ((bytes ^ kOnes * '"') - kOnes) | ((bytes ^ kOnes * '\\') - kOnes);
  }
  bool plain = (special & kOnes * 0x80) == 0;
  for (; i < text.size(); ++i) plain &= text[i] >= ' ' && text[i] != '"' && text[i] != '\\';
  return plain;
}

// Bytes of the UTF-8 character (RFC 3629) that the text begins with; 0 if it begins with none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than need be, a surrogate, or above U+10FFFF.
  const bool is_wrong = (byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
                        (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f);
  return is_wrong ? 0 : length;
}

void JsonTensor(const TensorView& tensor, const OpRecord& record, TextBuffer& text) {
  if (record.dtypes) {
    text.Literal("\"dtype\":\"");
    text.Text(Name(tensor.dtype()));
    text.Literal("\",");
  }
  if (record.shapes) {
    text.Literal("\"shape\":");
    text.Ints(tensor.shape(), ",");
    text.Literal(",");
  }
  if (!record.layouts) return;
  text.Literal("\"strides\":");
  text.Ints(tensor.strides(), ",");
  if (tensor.device().kind == Device::Kind::kHost) {
    text.Literal(",\"device\":\"cpu\"");
  } else {
    text.Literal(",\"device\":\"cuda:");
    text.Int(tensor.device().ordinal);
    text.Literal("\"");
  }
}

void JsonValue(const OpArg& arg, TextBuffer& text) {
  switch (arg.kind()) {
    case OpArg::Kind::kBool:
      return arg.bool_value() ? text.Literal("true") : text.Literal("false");
    case OpArg::Kind::kInt:
      return text.Int(arg.int_value());
    case OpArg::Kind::kDouble:
      return text.JsonNumber(arg.double_value());
    case OpArg::Kind::kString:
      return text.JsonString(arg.string_value());
    case OpArg::Kind::kInts:
      return text.Ints(arg.ints(), ",");
    case OpArg::Kind::kNone:
    case OpArg::Kind::kTensor:
      return text.Literal("null");
  }
}

void JsonArgs(absl::Span<const OpArg> args, const OpRecord& record, TextBuffer& text) {
  text.Literal("\"args\":[");
  for (const OpArg& arg : args) {
    text.MakeRoom();
    text.Literal("{");
    if (!arg.name().empty()) {
      text.Literal("\"name\":");
      text.JsonString(arg.name());
      text.Literal(",");
    }
    if (arg.kind() == OpArg::Kind::kTensor) {
      JsonTensor(arg.tensor(), record, text);
    } else {
      text.Literal("\"value\":");
      JsonValue(arg, text);
    }
    text.JsonClose('}');
    text.Literal(",");
  }
  text.JsonClose(']');
  text.Literal(",");
}

void JsonAttributes(absl::Span<const OpArg> attributes, TextBuffer& text) {
  text.Literal("\"attributes\":{");
  for (const OpArg& attribute : attributes) {
    text.JsonString(attribute.name());
    text.Literal(":");
    JsonValue(attribute, text);
    text.Literal(",");
  }
  text.JsonClose('}');
  text.Literal(",");
}

}  // namespace

void TextBuffer::Grow(size_t capacity) {
  capacity_ = std::max(capacity, 2 * capacity_);
  std::unique_ptr<char[]> grown(new char[capacity_]);
  if (size_ > 0) std::memcpy(grown.get(), text_.get(), size_);
  text_ = std::move(grown);
}

void TextBuffer::AppendInt(int64_t value) {
  char* const begin = text_.get() + size_;
  if (value >= 0 && value < 10) {
    *begin = static_cast<char>('0' + value);
    ++size_;
  } else {
    size_ = std::to_chars(begin, begin + kMaxIntSize, value).ptr - text_.get();
  }
}

void TextBuffer::OneLine(std::string_view text) {
  if (std::none_of(text.begin(), text.end(), IsControl)) return Text(text);
  MakeRoom(text.size() * 4);
  for (const char c : text) {
    if (!IsControl(c)) {
      text_[size_++] = c;
    } else if (c == '\n') {
      Literal("\\n");
    } else if (c == '\t') {
      Literal("\\t");
    } else {
      Literal("\\x");
      text_[size_++] = kHexDigits[c >> 4];
      text_[size_++] = kHexDigits[c & 15];
    }
  }
}

void TextBuffer::JsonEscaped(std::string_view text) {
  if (IsPlain(text)) return Text(text);
  MakeRoom(text.size() * 6);
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) {
      Literal("\\ufffd");
    } else if (IsControl(text[0])) {
      Literal("\\u00");
      text_[size_++] = kHexDigits[text[0] >> 4];
      text_[size_++] = kHexDigits[text[0] & 15];
    } else {
      if (text[0] == '"' || text[0] == '\\') Literal("\\");
      std::memcpy(text_.get() + size_, text.data(), length);
      size_ += length;
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
}

void TextBuffer::JsonNumber(double value) {
  // The longest is -2.2250738585072014e-308.
  constexpr size_t kMaxSize = 24;
  MakeRoom(kMaxSize);
  if (std::isnan(value)) return Literal("\"NaN\"");
  if (std::isinf(value)) return value > 0 ? Literal("\"Infinity\"") : Literal("\"-Infinity\"");
  char* const begin = text_.get() + size_;
  size_ = std::to_chars(begin, begin + kMaxSize, value).ptr - text_.get();
}

void FormatOpLabel(std::string_view name, int64_t seq, absl::Span<const OpArg> args, const OpRecord& record,
                   TextBuffer& text) {
  text.Clear();
  text.OneLine(name);
  if (seq >= 0) {
    text.Literal(", seq = ");
    text.Int(seq);
  }
  if (!record.shapes || args.empty()) return;
  text.Literal(", sizes = [");
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) text.Literal(", ");
    const bool is_tensor = args[i].kind() == OpArg::Kind::kTensor;
    text.Ints(is_tensor ? absl::Span<const int64_t>(args[i].tensor().shape()) : absl::Span<const int64_t>(),
              ", ");
  }
  text.Literal("]");
}

void FormatOpJson(const OpDescription& op, const OpRecord& record, TextBuffer& text) {
  text.Clear();
  text.Literal("{\"op\":");
  text.JsonString(op.name);
  text.Literal(",");
  if (!op.module.empty()) {
    text.Literal("\"module\":");
    text.JsonString(op.module);
    text.Literal(",");
  }
  JsonArgs(op.args, record, text);
  if (!op.attributes.empty()) JsonAttributes(op.attributes, text);
  op.backward ? text.Literal("\"direction\":\"backward\"") : text.Literal("\"direction\":\"forward\"");
  if (op.seq >= 0) {
    text.Literal(",\"seq\":");
    text.Int(op.seq);
  }
  if (op.forward_thread != 0) {
    text.Literal(",\"forward_thread\":");
    text.Int(op.forward_thread);
  }
  if (op.source.file != nullptr) {
    text.Literal(",\"source\":\"");
    text.JsonEscaped(op.source.file);
    text.Literal(":");
    text.Int(op.source.line);
    text.Literal("\"");
  }
  text.Literal("}");
}

}  // namespace ott::internal
