// The texts of op ranges: PyTorch's label, and JSON.

#ifndef OTT_CORE_NVTX_OP_TEXT_H_
#define OTT_CORE_NVTX_OP_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/types/span.h"
#include "ott/core/base/place.h"
#include "ott/core/nvtx/op_arg.h"

namespace ott::internal {

// A text that keeps its memory from one use to the next.
class TextBuffer {
 public:
  // Returns room for at most so many bytes and a terminating zero.
  char* Start(size_t max_size) {
    if (__builtin_expect(max_size >= capacity_, 0)) Grow(max_size + 1);
    return text_.get();
  }
  // Sets the end of what was written.
  void Finish(char* end) {
    *end = '\0';
    size_ = end - text_.get();
  }

  std::string_view view() const { return {text_.get(), size_}; }
  const char* c_str() const { return text_.get(); }

 private:
  void Grow(size_t capacity);

  std::unique_ptr<char[]> text_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Holds what is written of an operation besides its name and arguments.
struct OpRecord {
  bool shapes = true;
  bool dtypes = true;
  // Strides and device.
  bool layouts = true;
};

struct LabelledOp {
  std::string_view name;
  absl::Span<const OpArg> args;
  absl::Span<const OpArg> attributes;
  bool backward = false;
  // Below 0: none.
  int64_t seq = -1;
  // In a node of the backward pass, the kernel's id of the thread that counted seq; else 0.
  int forward_thread = 0;
  // Empty: none.
  std::string_view module;
  // Without a file: none.
  Place source{};
};

// Writes `linear, seq = 12, sizes = [[32, 128], [64, 128], []]`, as torch.autograd.profiler.emit_nvtx labels
// an operation; seq: below 0 for none. Control characters of the name are escaped as in C.
void FormatOpLabel(std::string_view name, int64_t seq, absl::Span<const OpArg> args, const OpRecord& record,
                   TextBuffer& text);

// Writes the same with the sizes of each argument; none: without that part.
void FormatOpLabel(std::string_view name, int64_t seq, absl::Span<const absl::Span<const int64_t>> sizes,
                   TextBuffer& text);

// Writes `layer:NAME`, escaped likewise.
void FormatLayerLabel(std::string_view name, TextBuffer& text);

// {"op":"linear","module":"encoder.0","args":[...],"attributes":{...},"direction":"forward","seq":12,
// "source":"train.cc:42"} in one line; what is empty is left out. What is not UTF-8 becomes U+FFFD; numbers
// that JSON lacks become "NaN", "Infinity" and "-Infinity".
void FormatOpJson(const LabelledOp& op, const OpRecord& record, TextBuffer& text);

}  // namespace ott::internal

#endif  // OTT_CORE_NVTX_OP_TEXT_H_
