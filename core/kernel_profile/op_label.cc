#include "ott/core/kernel_profile/op_label.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ott/core/kernel_profile/literal.h"
#include "ott/core/op_cost/op_call.h"

namespace ott::kernels {
namespace {

constexpr char kOpId[] = ", op_id = ";
constexpr char kSizes[] = ", sizes = ";
constexpr char kJsonSequenceNumber[] = ",\"seq\":";
constexpr char kEvaluate[] = "autograd::engine::evaluate_function: ";

template <size_t n>
bool ConsumePrefix(const char (&prefix)[n], std::string_view* text) {
  if (text->size() < n - 1 || std::memcmp(text->data(), prefix, n - 1) != 0) return false;
  text->remove_prefix(n - 1);
  return true;
}

// PyTorch's labels have these; before 1.5 nodes of the backward pass had "stashed seq".
bool ConsumeSequencePrefix(std::string_view* text) {
  return ConsumePrefix(", seq = ", text) || ConsumePrefix(", seq=", text) ||
         ConsumePrefix(", stashed seq = ", text) || ConsumePrefix(", stashed seq=", text);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool ConsumeNumber(std::string_view* text, uint64_t* number) {
  constexpr size_t kMostDigits = 19;  // which 64 bits hold
  size_t size = 0;
  for (*number = 0; size < text->size() && IsDigit((*text)[size]); ++size) {
    *number = 10 * *number + static_cast<uint64_t>((*text)[size] - '0');
  }
  text->remove_prefix(size);
  return size > 0 && size <= kMostDigits;
}

// A bracketed list, brackets within it included.
bool ConsumeList(std::string_view* text) {
  int depth = 0;
  for (size_t i = 0; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (depth == 0) {
      if (i == 0) return false;
      text->remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

// rest: what follows the name, from its comma on. *sizes: with ", sizes = " before them.
bool ConsumeParts(std::string_view rest, std::string_view* sizes, uint64_t* sequence_number) {
  uint64_t op_id;
  while (!rest.empty()) {
    if (ConsumeSequencePrefix(&rest)) {
      if (!ConsumeNumber(&rest, sequence_number)) return false;
    } else if (ConsumePrefix(kOpId, &rest)) {
      if (!ConsumeNumber(&rest, &op_id)) return false;
    } else if (std::string_view part = rest; ConsumePrefix(kSizes, &rest)) {
      if (!ConsumeList(&rest)) return false;
      *sizes = part.substr(0, part.size() - rest.size());
    } else if (ConsumePrefix(", input_op_ids = ", &rest)) {
      if (!ConsumeList(&rest)) return false;
    } else {
      return false;
    }
  }
  return true;
}

// Returns where the parts after the name begin.
size_t EndOfName(std::string_view text) {
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',', comma + 1)) {
    std::string_view rest = text.substr(comma);
    if (ConsumeSequencePrefix(&rest) || ConsumePrefix(kOpId, &rest) || ConsumePrefix(kSizes, &rest) ||
        ConsumePrefix(", input_op_ids = ", &rest)) {
      return comma;
    }
  }
  return text.size();
}

LabelParts SplitJson(std::string_view text) {
  const size_t field = text.rfind(kJsonSequenceNumber);
  if (field != std::string_view::npos) {
    LabelParts parts;
    parts.head = text.substr(0, field);
    parts.tail = text.substr(field + sizeof(kJsonSequenceNumber) - 1);
    if (ConsumeNumber(&parts.tail, &parts.sequence_number) && !parts.tail.empty() &&
        (parts.tail[0] == ',' || parts.tail[0] == '}')) {
      return parts;
    }
  }
  return {text, {}, kNoSequenceNumber};
}

// [1, 2] or 3 or true, as numbers.
bool AppendNumbers(const Literal& literal, std::vector<double>* numbers) {
  if (literal.is_number()) {
    numbers->push_back(literal.number);
    return true;
  }
  return literal.is_list() &&
         std::all_of(literal.items.begin(), literal.items.end(),
                     [&](const Literal& item) { return item.is_number() && AppendNumbers(item, numbers); });
}

OpArgument ToArgument(std::string_view name, int position, const Literal& value) {
  OpArgument argument;
  argument.name = name;
  argument.position = position;
  if (!AppendNumbers(value, &argument.numbers)) argument.numbers.clear();
  argument.text = value.text;
  return argument;
}

// One of "args": {"name":..., "shape":..., "dtype":...} or {"name":..., "value":...}.
void AppendArgument(const Literal& map, int position, std::vector<OpArgument>* arguments) {
  const Literal* shape = map.Find("shape");
  const Literal* value = map.Find("value");
  if (shape != nullptr) {
    const std::optional<std::vector<int64_t>> sizes = shape->ToShape();
    if (!sizes.has_value()) return;
    OpArgument& argument = arguments->emplace_back();
    argument.name = map.FindText("name");
    argument.position = position;
    argument.is_tensor = true;
    argument.shape = *sizes;
    argument.dtype = TypeOfTorchName(map.FindText("dtype"));
  } else if (value != nullptr) {
    // A list of tensors is a list of maps.
    for (const Literal& item : value->items) {
      if (item.is_map()) AppendArgument(item, position, arguments);
    }
    arguments->push_back(ToArgument(map.FindText("name"), position, *value));
  }
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

OpDirection DirectionOf(std::string_view name) {
  if (EndsWith(name, "_backward_data") || EndsWith(name, "AccumulateGrad")) return OpDirection::kBackward;
  while (!name.empty() && IsDigit(name.back())) name.remove_suffix(1);
  if (!name.empty() && name.back() == 's') name.remove_suffix(1);
  constexpr std::string_view kSuffix = "ackward";
  const bool backward = name.size() > kSuffix.size() && EndsWith(name, kSuffix) &&
                        (name[name.size() - kSuffix.size() - 1] | 0x20) == 'b';
  return backward ? OpDirection::kBackward : OpDirection::kForward;
}

// Takes what is before the last colon off the name: "aten" of "aten::mm", "nccl" of "nccl:all_reduce";
// nothing where no name would be left.
std::string_view ConsumeNamespace(std::string_view* name) {
  const size_t colon =
      name->find_last_of(": ") == name->size() - 1 ? std::string_view::npos : name->rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view space = name->substr(0, colon);
  while (!space.empty() && space.back() == ':') space.remove_suffix(1);
  name->remove_prefix(colon + 1);
  while (!name->empty() && name->front() == ' ') name->remove_prefix(1);
  return space;
}

// Autograd's nodes have no namespace but its own. aten::convolution_backward is an op like any other, which a
// node calls.
bool IsBackwardNode(std::string_view space, OpDirection direction) {
  return direction == OpDirection::kBackward &&
         (space.empty() || space.find("autograd") != std::string_view::npos);
}

bool ParseMap(std::string_view key, OpLabel* label) {
  const std::optional<Literal> map = ParseLiteral(key);
  if (!map.has_value() || !map->is_map()) return false;
  if (const Literal* trace = map->Find("traceMarker"); trace != nullptr) {
    label->kind = OpLabel::Kind::kTrace;
    label->source = trace->text;
    for (const Literal& place : trace->items) {
      absl::StrAppend(&label->source, label->source.empty() ? "" : ",", place.text);
    }
    return true;
  }
  if (map->Find("strRepr") != nullptr) {
    label->kind = OpLabel::Kind::kModule;
    label->text = map->FindText("mod");
    return true;
  }
  std::string_view op = map->FindText("op");
  if (op.empty()) return false;
  const std::string_view space = op.find("::") == std::string_view::npos ? "" : ConsumeNamespace(&op);
  label->kind = OpLabel::Kind::kMarker;
  label->source = map->FindText("source");
  OpDescription& description = label->description;
  description.op = op;
  description.module = map->FindText(map->Find("module") != nullptr ? "module" : "mod");
  if (description.module.empty()) description.module = space;
  if (const Literal* arguments = map->Find("args"); arguments != nullptr) {
    int position = 0;
    for (const Literal& argument : arguments->items) {
      AppendArgument(argument, position++, &description.arguments);
    }
  }
  if (const Literal* attributes = map->Find("attributes"); attributes != nullptr) {
    for (size_t i = 0; i < attributes->names.size(); ++i) {
      description.arguments.push_back(ToArgument(attributes->names[i], -1, attributes->items[i]));
    }
  }
  label->is_backward_node = IsBackwardNode(space, DirectionOf(op));
  const std::string_view direction = map->FindText("direction");
  label->direction =
      direction == "backward" || direction == "bprop" ? OpDirection::kBackward : DirectionOf(op);
  return true;
}

void AppendSizes(const Literal& sizes, std::vector<OpArgument>* arguments) {
  for (size_t i = 0; i < sizes.items.size(); ++i) {
    const Literal& item = sizes.items[i];
    if (!item.is_list() || item.items.empty()) continue;  // [] is a scalar, or no tensor at all
    const auto append = [&](const Literal& literal) {
      const std::optional<std::vector<int64_t>> shape = literal.ToShape();
      if (!shape.has_value()) return;
      OpArgument& argument = arguments->emplace_back();
      argument.position = static_cast<int>(i);
      argument.is_tensor = true;
      argument.shape = *shape;
    };
    if (item.items[0].is_list()) {
      std::for_each(item.items.begin(), item.items.end(), append);
    } else {
      append(item);
    }
  }
}

// aten::mm, autograd::engine::evaluate_function: MmBackward0, MmBackward0, nccl:all_reduce, ncclAllReduce.
bool LooksLikeOp(std::string_view name) {
  if (!name.empty() && IsDigit(name.back()) && DirectionOf(name) == OpDirection::kBackward) {
    return true;
  }
  const size_t colons = name.find("::");
  if (colons != std::string_view::npos && colons > 0) {
    return ConsumePrefix(kEvaluate, &name) || name.find(' ') == std::string_view::npos;
  }
  if (!ConsumePrefix("nccl", &name) || name.empty()) return false;
  return name[0] == ':' || (name[0] >= 'A' && name[0] <= 'Z');
}

}  // namespace

LabelParts SplitLabel(std::string_view text) {
  if (!text.empty() && text[0] == '{') return SplitJson(text);
  const size_t end_of_name = EndOfName(text);
  LabelParts parts;
  parts.head = text.substr(0, end_of_name);
  if (!ConsumeParts(text.substr(end_of_name), &parts.tail, &parts.sequence_number)) {
    return {text, {}, kNoSequenceNumber};
  }
  // An op in sight of autograd without sizes is still an op; an operator id alone is any range's of PyTorch.
  if (parts.sequence_number == kNoSequenceNumber &&
      std::none_of(parts.tail.begin(), parts.tail.end(), IsDigit)) {
    parts.tail = {};
  } else if (parts.tail.empty()) {
    parts.tail = ", sizes = []";
  }
  return parts;
}

bool ParseNumbers(std::string_view numbers, bool is_json, uint64_t* sequence_number) {
  uint64_t op_id;
  if (is_json) {
    return ConsumePrefix(kJsonSequenceNumber, &numbers) && ConsumeNumber(&numbers, sequence_number) &&
           numbers.empty();
  }
  if (ConsumeSequencePrefix(&numbers) && !ConsumeNumber(&numbers, sequence_number)) return false;
  if (ConsumePrefix(kOpId, &numbers) && !ConsumeNumber(&numbers, &op_id)) return false;
  return numbers.empty();
}

OpLabel ParseLabel(const LabelParts& parts) {
  const std::string joined = absl::StrCat(std::string(parts.head), std::string(parts.tail));
  const std::string_view text = joined;
  OpLabel label;
  if (!text.empty() && text[0] == '{' && ParseMap(text, &label)) return label;
  std::string_view name = text;
  if (ConsumePrefix("layer:", &name)) {
    label.kind = OpLabel::Kind::kLayer;
    label.text = name;
    return label;
  }
  label.text = text;
  const size_t end_of_name = EndOfName(text);
  name = text.substr(0, end_of_name);
  if (end_of_name == text.size() && !LooksLikeOp(name)) return label;
  std::string_view sizes = text.substr(end_of_name);
  if (ConsumePrefix(kSizes, &sizes)) {
    const std::optional<Literal> literal = ParseLiteral(sizes);
    if (!literal.has_value()) return label;
    AppendSizes(*literal, &label.description.arguments);
    label.description.tensors_only = true;
  } else if (!sizes.empty()) {
    return label;
  }
  label.kind = OpLabel::Kind::kOp;
  const bool is_evaluated = ConsumePrefix(kEvaluate, &name);
  label.description.module = ConsumeNamespace(&name);
  if (name.substr(0, 4) == "nccl") label.description.module = "nccl";
  label.description.op = name;
  label.direction = is_evaluated ? OpDirection::kBackward : DirectionOf(name);
  label.is_backward_node = IsBackwardNode(label.description.module, label.direction);
  return label;
}

}  // namespace ott::kernels
