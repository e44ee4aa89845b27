#include "ott/core/dump/json_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/element.h"

namespace ott {
namespace {

// Text is handed on in pieces of about this size.
constexpr size_t kPieceBytes = 1 << 20;

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<std::complex<T>> : std::true_type {};

// Decodes the character that starts at text[position] and moves position behind it. Negative if it is not
// UTF-8 (RFC 3629: shortest form, no surrogates, at most U+10FFFF).
int32_t DecodeUtf8(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const int32_t first = byte(position);
  if (first < 0x80) {
    ++position;
    return first;
  }
  const int length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || position + length > text.size()) return -1;
  int32_t code = first & (0x7f >> length);
  for (int i = 1; i < length; ++i) {
    if ((byte(position + i) & 0xc0) != 0x80) return -1;
    code = code << 6 | (byte(position + i) & 0x3f);
  }
  const int32_t smallest = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  if (code < smallest || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return -1;
  position += length;
  return code;
}

void AppendEscape(uint32_t unit, std::string& text) {
  constexpr char kHex[] = "0123456789abcdef";
  text += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += kHex[unit >> shift & 15];
}

void AppendCharacter(int32_t code, std::string& text) {
  switch (code) {
    case '"':
      text += "\\\"";
      return;
    case '\\':
      text += "\\\\";
      return;
    case '\n':
      text += "\\n";
      return;
    case '\r':
      text += "\\r";
      return;
    case '\t':
      text += "\\t";
      return;
    case '\f':
      text += "\\f";
      return;
    case '\b':
      text += "\\b";
      return;
  }
  if (code >= ' ' && code <= '~') {
    text += static_cast<char>(code);
  } else if (code < 0x10000) {
    AppendEscape(code, text);
  } else {
    AppendEscape(0xd800 + ((code - 0x10000) >> 10), text);
    AppendEscape(0xdc00 + ((code - 0x10000) & 0x3ff), text);
  }
}

// More than any number needs.
constexpr size_t kMaxNumberBytes = 32;

char* Copy(std::string_view text, char* to) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

char* Fill(ptrdiff_t count, char* to) {
  std::memset(to, '0', count);
  return to + count;
}

// Python's repr(), but as JSON's NaN, Infinity and -Infinity. Returns the end; writes at most
// kMaxNumberBytes.
char* FormatFloat(double value, char* to) {
  if (!std::isfinite(value))
    return Copy(std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity", to);
  // The shortest digits that read back as value: d.ddde+xx, which is Python's form for exponents below -4 and
  // above 15.
  char buffer[kMaxNumberBytes];
  const char* const end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  const char* const e = end - (end[-4] == 'e' ? 4 : 5);
  int exponent = e[2] - '0';
  for (const char* digit = e + 3; digit != end; ++digit) exponent = exponent * 10 + (*digit - '0');
  if (e[1] == '-') exponent = -exponent;
  if (exponent < -4 || exponent > 15) return Copy({buffer, static_cast<size_t>(end - buffer)}, to);

  const char* digits = buffer;
  if (*digits == '-') *to++ = *digits++;
  // The digits behind the point, if any.
  const char* const more = digits + 2 < e ? digits + 2 : e;
  const ptrdiff_t num_more = e - more;
  if (exponent < 0) {
    to = Fill(-exponent - 1, Copy("0.", to));
    *to++ = *digits;
    return Copy({more, static_cast<size_t>(num_more)}, to);
  }
  const ptrdiff_t whole = exponent < num_more ? exponent : num_more;
  *to++ = *digits;
  to = Copy({more, static_cast<size_t>(whole)}, to);
  to = Fill(exponent - whole, to);
  *to++ = '.';
  if (whole == num_more) return Copy("0", to);
  return Copy({more + whole, static_cast<size_t>(num_more - whole)}, to);
}

// Of a real element.
template <typename T>
char* FormatElement(T element, char* to) {
  if constexpr (std::is_same_v<T, bool>) {
    return Copy(element ? "true" : "false", to);
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_chars(to, to + kMaxNumberBytes, element).ptr;
  } else {
    return FormatFloat(static_cast<double>(element), to);
  }
}

template <typename T>
void AppendElement(T element, std::string& text) {
  char buffer[kMaxNumberBytes];
  text.append(buffer, FormatElement(element, buffer) - buffer);
}

// The element at an address, which need not be aligned. A byte that is neither 0 nor 1 is true.
template <typename T>
T LoadElement(const char* data) {
  if constexpr (std::is_same_v<T, bool>) {
    return *data != 0;
  } else {
    T element;
    std::memcpy(&element, data, sizeof(element));
    return element;
  }
}

class Writer {
 public:
  explicit Writer(const JsonSink& sink) : sink_(sink) {}

  absl::Status Write(const std::string& path, const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kNull:
        text_ += "null";
        return absl::OkStatus();
      case Value::Kind::kBool:
        AppendElement(value.bool_value(), text_);
        return absl::OkStatus();
      case Value::Kind::kInt:
        AppendElement(value.int_value(), text_);
        return absl::OkStatus();
      case Value::Kind::kDouble:
        AppendElement(value.double_value(), text_);
        return absl::OkStatus();
      case Value::Kind::kString:
        return WriteString(path, value.string_value());
      case Value::Kind::kList:
        return WriteList(path, value.list());
      case Value::Kind::kMap:
        return WriteMap(path, value.map());
      case Value::Kind::kTensor:
        return WriteTensor(path, value.tensor().view);
      case Value::Kind::kObject:
        return absl::InvalidArgumentError(
            absl::StrCat("'", path, "': an object that was not converted cannot be written"));
    }
    __builtin_unreachable();
  }

  absl::Status Flush() {
    OTT_RETURN_IF_ERROR(sink_(text_));
    text_.clear();
    return absl::OkStatus();
  }

 private:
  absl::Status FlushIfLarge() { return text_.size() < kPieceBytes ? absl::OkStatus() : Flush(); }

  void StartLine() {
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }

  // Before item i of a list or map, and after the last one.
  void StartItem(bool first) {
    if (!first) text_ += ',';
    StartLine();
  }
  void Open(char bracket) {
    text_ += bracket;
    ++depth_;
  }
  void Close(char bracket) {
    --depth_;
    StartLine();
    text_ += bracket;
  }

  absl::Status WriteString(const std::string& path, std::string_view string) {
    text_ += '"';
    for (size_t i = 0; i < string.size();) {
      const int32_t code = DecodeUtf8(string, i);
      if (code < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", absl::CHexEscape(path), "': ", CheckUtf8(string).message()));
      }
      AppendCharacter(code, text_);
    }
    text_ += '"';
    return absl::OkStatus();
  }

  absl::Status WriteList(const std::string& path, const Value::List& list) {
    if (list.empty()) {
      text_ += "[]";
      return absl::OkStatus();
    }
    Open('[');
    for (size_t i = 0; i < list.size(); ++i) {
      StartItem(i == 0);
      OTT_RETURN_IF_ERROR(Write(JoinPath(path, std::to_string(i)), list[i]));
      OTT_RETURN_IF_ERROR(FlushIfLarge());
    }
    Close(']');
    return absl::OkStatus();
  }

  absl::Status WriteMap(const std::string& path, const ValueMap& map) {
    if (map.empty()) {
      text_ += "{}";
      return absl::OkStatus();
    }
    Open('{');
    bool first = true;
    for (const auto& [name, value] : map) {
      StartItem(first);
      first = false;
      const std::string child = JoinPath(path, name);
      OTT_RETURN_IF_ERROR(WriteString(child, name));
      text_ += ": ";
      OTT_RETURN_IF_ERROR(Write(child, value));
      OTT_RETURN_IF_ERROR(FlushIfLarge());
    }
    Close('}');
    return absl::OkStatus();
  }

  absl::Status WriteTensor(const std::string& path, const TensorView& tensor) {
    if (tensor.device().kind != Device::Kind::kHost) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "': the tensor is not in host memory; take a Snapshot first"));
    }
    return VisitDType(tensor.dtype(), [&](auto element) {
      return WriteElements<decltype(element)>(tensor, 0, static_cast<const char*>(tensor.data()));
    });
  }

  template <typename T>
  absl::Status WriteElements(const TensorView& tensor, size_t dimension, const char* data) {
    if (dimension == tensor.shape().size()) {
      WriteElement<T>(data);
      return absl::OkStatus();
    }
    const int64_t size = tensor.shape()[dimension];
    if (size == 0) {
      text_ += "[]";
      return absl::OkStatus();
    }
    const int64_t stride = tensor.strides()[dimension] * static_cast<int64_t>(sizeof(T));
    if constexpr (!IsComplex<T>::value) {
      if (dimension + 1 == tensor.shape().size()) return WriteRow<T>(data, stride, size);
    }
    Open('[');
    for (int64_t i = 0; i < size; ++i) {
      StartItem(i == 0);
      OTT_RETURN_IF_ERROR(WriteElements<T>(tensor, dimension + 1, data + i * stride));
      OTT_RETURN_IF_ERROR(FlushIfLarge());
    }
    Close(']');
    return absl::OkStatus();
  }

  // The last dimension: nearly all of a dump's text.
  template <typename T>
  absl::Status WriteRow(const char* data, int64_t stride, int64_t size) {
    Open('[');
    const std::string separator = ",\n" + std::string(2 * depth_, ' ');
    const int64_t piece = static_cast<int64_t>(kPieceBytes / (separator.size() + kMaxNumberBytes)) + 1;
    for (int64_t begin = 0; begin < size; begin += piece) {
      const int64_t end = std::min(begin + piece, size);
      const size_t old_size = text_.size();
      text_.resize(old_size + (end - begin) * (separator.size() + kMaxNumberBytes));
      char* to = &text_[old_size];
      for (int64_t i = begin; i < end; ++i) {
        // No comma before the first one.
        to = Copy(i == 0 ? std::string_view(separator).substr(1) : separator, to);
        to = FormatElement(LoadElement<T>(data + i * stride), to);
      }
      text_.resize(to - text_.data());
      OTT_RETURN_IF_ERROR(FlushIfLarge());
    }
    Close(']');
    return absl::OkStatus();
  }

  template <typename T>
  void WriteElement(const char* data) {
    if constexpr (IsComplex<T>::value) {
      Open('[');
      StartItem(true);
      WriteElement<typename T::value_type>(data);
      StartItem(false);
      WriteElement<typename T::value_type>(data + sizeof(T) / 2);
      Close(']');
    } else {
      AppendElement(LoadElement<T>(data), text_);
    }
  }

  const JsonSink& sink_;
  std::string text_;
  int depth_ = 0;
};

}  // namespace

void AppendPythonFloat(double value, std::string& text) { AppendElement(value, text); }

absl::Status CheckUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (DecodeUtf8(text, i) < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", absl::CHexEscape(std::string(text)), "\" is not UTF-8 from byte ", i, " on"));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteJson(const Value& value, const JsonSink& sink) {
  Writer writer(sink);
  OTT_RETURN_IF_ERROR(writer.Write("", value));
  return writer.Flush();
}

absl::StatusOr<std::string> ToJson(const Value& value) {
  std::string text;
  OTT_RETURN_IF_ERROR(WriteJson(value, [&text](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  }));
  return text;
}

}  // namespace ott
