#include "ott/core/dump/json_writer.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"
#include "ott/core/json/json_string.h"
#include "ott/core/tensor/element.h"
#include "ott/core/tensor/parallel_for.h"

namespace ott {
namespace {

// Text is handed on in pieces of about this size.
constexpr size_t kPieceBytes = 1 << 20;

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
  const double magnitude = std::fabs(value);
  if (magnitude >= 1e-4 && magnitude < 1e16) {
    // Nearly always d.ddd, as Python has it. An exponent, here of two digits, is shorter for few digits;
    // whole numbers lack ".0".
    char* const end = std::to_chars(to, to + kMaxNumberBytes, value).ptr;
    if (end - to < 5 || end[-4] != 'e') {
      return std::memchr(to, '.', end - to) == nullptr ? Copy(".0", end) : end;
    }
  }
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

// Writes a real element.
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

// Memory that is kept, and not cleared, for the next piece.
class Buffer {
 public:
  char* Get(size_t size) {
    if (size > size_) {
      memory_.reset(new char[size]);
      size_ = size;
    }
    return memory_.get();
  }

 private:
  size_t size_ = 0;
  std::unique_ptr<char[]> memory_;
};

// Items of a tensor that are formatted at once.
constexpr int64_t kPieceItems = 1 << 14;

// Formats a tensor of real elements as nested lists, any range of its items on its own. An item is an
// element, or where a dimension is 0, the empty list there.
template <typename T>
class TensorFormatter {
 public:
  // depth: of the lists and maps around it.
  TensorFormatter(const TensorView& tensor, int depth) : data_(static_cast<const char*>(tensor.data())) {
    for (size_t i = 0; i < tensor.shape().size(); ++i) {
      empty_lists_ = tensor.shape()[i] == 0;
      if (empty_lists_) break;
      shape_.push_back(tensor.shape()[i]);
      strides_.push_back(tensor.strides()[i] * static_cast<int64_t>(sizeof(T)));
      num_items_ *= tensor.shape()[i];
    }
    const size_t num_dims = shape_.size();
    const auto line = [&](size_t dimension) { return "\n" + std::string(2 * (depth + dimension), ' '); };
    for (size_t i = 0; i < num_dims; ++i) opening_ += "[" + line(i + 1);
    for (size_t i = num_dims; i-- > 0;) closing_ += line(i) + "]";
    for (size_t num_ended = 0; num_ended < num_dims; ++num_ended) {
      std::string separator;
      for (size_t i = 0; i < num_ended; ++i) separator += line(num_dims - 1 - i) + "]";
      separator += "," + line(num_dims - num_ended);
      for (size_t i = num_dims - num_ended; i < num_dims; ++i) separator += "[" + line(i + 1);
      separators_.push_back(std::move(separator));
    }
    if (num_dims > 0) separators_.front().copy(short_separator_, kShortBytes);
  }

  int64_t num_items() const { return num_items_; }

  // The text of items [begin, end), and of the brackets before them; those at the end are the last item's.
  // Lies in the buffer.
  std::string_view Format(int64_t begin, int64_t end, Buffer& buffer) const {
    const int64_t row = shape_.empty() ? 1 : shape_.back();
    const size_t short_bytes = separators_.empty() ? 0 : separators_.front().size();
    const size_t long_bytes = separators_.empty() ? 0 : separators_.back().size();
    char* const text = buffer.Get((end - begin) * (short_bytes + kMaxNumberBytes) +
                                  ((end - begin) / row + 2) * long_bytes + opening_.size() + closing_.size());
    char* to = begin == 0 ? Copy(opening_, text) : text;
    Dims index = IndexAt(shape_, begin);
    const int64_t stride = shape_.empty() ? 0 : strides_.back();
    for (int64_t item = begin; item < end;) {
      const char* from = data_;
      for (size_t i = 0; i < index.size(); ++i) from += index[i] * strides_[i];
      const int64_t in_row = item % row;
      const int64_t row_end = std::min(end, item - in_row + row);
      if (item > 0) to = Copy(separators_[NumEnded(index)], to);
      to = FormatItem(from, to);
      for (++item, from += stride; item < row_end; ++item, from += stride) {
        to = FormatItem(from, CopySeparator(to));
      }
      index = IndexAt(shape_, item < end ? item : 0);
    }
    if (end == num_items_) to = Copy(closing_, to);
    return {text, static_cast<size_t>(to - text)};
  }

 private:
  char* FormatItem(const char* data, char* to) const {
    return empty_lists_ ? Copy("[]", to) : FormatElement(LoadElement<T>(data), to);
  }

  char* CopySeparator(char* to) const {
    const std::string& separator = separators_.front();
    if (separator.size() > kShortBytes) return Copy(separator, to);
    // A fixed size is quicker; the number that follows has room for it.
    std::memcpy(to, short_separator_, kShortBytes);
    return to + separator.size();
  }

  // Lists that end before the item at this index.
  static size_t NumEnded(const Dims& index) {
    size_t num_ended = 0;
    while (num_ended < index.size() && index[index.size() - 1 - num_ended] == 0) ++num_ended;
    return num_ended;
  }

  const char* const data_;
  Dims shape_;
  Dims strides_;  // in bytes
  int64_t num_items_ = 1;
  bool empty_lists_ = false;
  std::string opening_;
  std::string closing_;
  std::vector<std::string> separators_;  // by the number of lists that end before an item
  // The first of them again, if it is short.
  static constexpr size_t kShortBytes = 16;
  static_assert(kShortBytes <= kMaxNumberBytes);
  char short_separator_[kShortBytes] = {};
};

class Writer {
 public:
  Writer(const JsonSink& sink, int num_threads) : sink_(sink), num_threads_(num_threads) {}

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
    if (const absl::Status utf8 = CheckUtf8(string); !utf8.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(path), "': ", utf8.message()));
    }
    AppendJsonString(string, text_, JsonCharset::kAscii);
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
      using T = decltype(element);
      if constexpr (kIsComplex<T>) {
        // Its two parts are one more dimension.
        Dims shape = tensor.shape();
        Dims strides = tensor.strides();
        for (int64_t& stride : strides) stride *= 2;
        shape.push_back(2);
        strides.push_back(1);
        using Part = typename T::value_type;
        return WriteElements<Part>(TensorView(tensor.data(), DTypeOf<Part>(), shape, strides));
      } else {
        return WriteElements<T>(tensor);
      }
    });
  }

  template <typename T>
  absl::Status WriteElements(const TensorView& tensor) {
    const TensorFormatter<T> formatter(tensor, depth_);
    const int64_t num_pieces = (formatter.num_items() + kPieceItems - 1) / kPieceItems;
    if (num_pieces == 1) {
      Buffer buffer;
      text_ += formatter.Format(0, formatter.num_items(), buffer);
      return FlushIfLarge();
    }
    OTT_RETURN_IF_ERROR(Flush());
    // Each thread formats the next piece and hands it on when those before it are.
    std::atomic<int64_t> next{0};
    std::mutex mutex;
    std::condition_variable turn_came;
    int64_t turn = 0;
    absl::Status status;
    ParallelFor(std::min<int64_t>(num_threads_, num_pieces), num_threads_, [&](int64_t) {
      Buffer buffer;
      for (int64_t i = next++; i < num_pieces; i = next++) {
        const int64_t end = std::min((i + 1) * kPieceItems, formatter.num_items());
        const std::string_view piece = formatter.Format(i * kPieceItems, end, buffer);
        std::unique_lock lock(mutex);
        turn_came.wait(lock, [&] { return turn == i; });
        if (status.ok()) status = sink_(piece);
        ++turn;
        turn_came.notify_all();
      }
    });
    return status;
  }

  const JsonSink& sink_;
  const int num_threads_;
  std::string text_;
  int depth_ = 0;
};

}  // namespace

void AppendPythonFloat(double value, std::string& text) { AppendElement(value, text); }

absl::Status CheckUtf8(std::string_view text) {
  const size_t valid = ValidUtf8Length(text);
  if (valid == text.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::CHexEscape(std::string(text)), "\" is not UTF-8 from byte ", valid, " on"));
}

absl::Status WriteJson(const Value& value, const JsonSink& sink, int num_threads) {
  Writer writer(sink, NumThreads(num_threads));
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
