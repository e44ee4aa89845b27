// The texts of op ranges: PyTorch's label, and JSON.

#ifndef OTT_CORE_NVTX_OP_TEXT_H_
#define OTT_CORE_NVTX_OP_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "absl/types/span.h"
#include "ott/core/base/place.h"
#include "ott/core/nvtx/op_arg.h"

namespace ott::internal {

// A text that keeps its memory from one use to the next. Whatever is of unknown size makes room for itself
// and for kRoom bytes of literals after it, which therefore need no check.
class TextBuffer {
 public:
  static constexpr size_t kRoom = 128;

  void Clear() {
    size_ = 0;
    MakeRoom();
  }

  void MakeRoom(size_t size = 0) {
    if (__builtin_expect(size_ + size + kRoom > capacity_, 0)) Grow(size_ + size + kRoom);
  }

  // REQUIRES: kRoom bytes at most since the last call of anything else.
  template <size_t N>
  void Literal(const char (&text)[N]) {
    std::memcpy(text_.get() + size_, text, N - 1);
    size_ += N - 1;
  }

  void Text(std::string_view text) {
    MakeRoom(text.size());
    std::memcpy(text_.get() + size_, text.data(), text.size());
    size_ += text.size();
  }

  // "[1, 2]" with the separator ", ".
  template <size_t N>
  void Ints(absl::Span<const int64_t> values, const char (&separator)[N]) {
    MakeRoom(values.size() * (kMaxIntSize + N));
    Literal("[");
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) Literal(separator);
      AppendInt(values[i]);
    }
    Literal("]");
  }

  void Int(int64_t value) {
    MakeRoom(kMaxIntSize);
    AppendInt(value);
  }

  // Control characters escaped as in C, all else as it is.
  void OneLine(std::string_view text);
  // What is not UTF-8 becomes U+FFFD.
  void JsonEscaped(std::string_view text);
  void JsonString(std::string_view text) {
    Literal("\"");
    JsonEscaped(text);
    Literal("\"");
  }
  // What JSON has no number for becomes "NaN", "Infinity", "-Infinity".
  void JsonNumber(double value);
  // Replaces a comma, if there is one at the end.
  void JsonClose(char bracket) {
    if (text_[size_ - 1] == ',') --size_;
    text_[size_++] = bracket;
  }

  std::string_view view() const { return {text_.get(), size_}; }
  // Until the next change.
  const char* c_str() {
    text_[size_] = '\0';
    return text_.get();
  }

 private:
  static constexpr size_t kMaxIntSize = 20;

  void Grow(size_t capacity);
  void AppendInt(int64_t value);

  std::unique_ptr<char[]> text_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// What of an operation is told.
struct OpRecord {
  bool shapes = true;
  bool dtypes = true;
  // Strides and device.
  bool layouts = true;
};

struct OpDescription {
  std::string_view name;
  absl::Span<const OpArg> args;
  absl::Span<const OpArg> attributes;
  bool backward = false;
  // Below 0: none.
  int64_t seq = -1;
  // Of a node of the backward pass, the kernel's id of the thread that counted seq; else 0.
  int forward_thread = 0;
  // Empty: none.
  std::string_view module;
  // Without a file: none.
  Place source{};
};

// `linear, seq = 12, sizes = [[32, 128], [64, 128], []]`, as torch.autograd.profiler.emit_nvtx labels an
// operation; seq: below 0 for none. Replaces what the buffer holds.
void FormatOpLabel(std::string_view name, int64_t seq, absl::Span<const OpArg> args, const OpRecord& record,
                   TextBuffer& text);

// {"op":"linear","module":"encoder.0","args":[...],"attributes":{...},"direction":"forward","seq":12,
// "source":"train.cc:42"} in one line; what is empty is left out. Replaces what the buffer holds.
void FormatOpJson(const OpDescription& op, const OpRecord& record, TextBuffer& text);

}  // namespace ott::internal

#endif  // OTT_CORE_NVTX_OP_TEXT_H_
