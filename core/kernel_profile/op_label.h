// Reads what the text of an NVTX range says.

#ifndef OTT_CORE_KERNEL_PROFILE_OP_LABEL_H_
#define OTT_CORE_KERNEL_PROFILE_OP_LABEL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ott/core/op_cost/op_description.h"

namespace ott::kernels {

inline constexpr uint64_t kNoSequenceNumber = ~uint64_t{0};

// The text of a range without its sequence number and operator ids: what recurs from call to call, in two
// parts that make the label together.
struct LabelParts {
  std::string_view head;  // of the text
  std::string_view tail;  // of the text, or of a constant
  uint64_t sequence_number = kNoSequenceNumber;
};

// A text that only begins like a label is a head as a whole.
//
//   "aten::mm, seq = 12, op_id = 7, sizes = [[2, 3], [3, 4]]" -> "aten::mm", ", sizes = [[2, 3], [3, 4]]", 12
//   {"op":"mm","seq":12}                                      -> {"op":"mm", }, 12
LabelParts SplitLabel(std::string_view text);

// Returns false if numbers is not what SplitLabel() leaves out of a text at one place: ", seq = 12, op_id =
// 7", or a part of it; in JSON ,"seq":12. *sequence_number: left alone if there is none.
bool ParseNumbers(std::string_view numbers, bool is_json, uint64_t* sequence_number);

struct OpLabel {
  enum class Kind {
    kOther,   // a range of the program's own: text
    kMarker,  // {"op":...}, or PyProf's {'mod': ..., 'op': ...}: description, direction, source
    kOp,      // PyTorch's name[, sizes = [...]]: description, direction
    kLayer,   // layer:NAME: text
    kTrace,   // PyProf's {'traceMarker': [...]}: source
    kModule,  // PyProf's {'mod': ..., 'strRepr': ...}: text
  };

  Kind kind = Kind::kOther;
  std::string text;
  std::string source;  // "file:line", several separated by commas
  OpDescription description;
  OpDirection direction = OpDirection::kUnknown;
  // JSON lists as PyTorch's traces have them, of all arguments: "[[2,3],[]]", "[\"float\",\"Scalar\"]",
  // "[[3,1],[]]", "[\"\",\"1\"]". Empty if they are not told.
  std::string shapes, types, strides, inputs;
  std::string module_hierarchy;  // "SELF(Net)::forward.SELF(Linear)", of TorchScript
  // A node of the backward pass, which runs for the forward op with its sequence number: AddmmBackward0.
  bool is_backward_node = false;
};

// The sequence number is left out.
OpLabel ParseLabel(const LabelParts& parts);

}  // namespace ott::kernels

#endif  // OTT_CORE_KERNEL_PROFILE_OP_LABEL_H_
