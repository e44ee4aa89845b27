#include "ott/core/kineto/op_arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <system_error>
#include <utility>

#include "ott/core/chrome_trace/event_parser.h"
#include "ott/core/kernel_profile/literal.h"

namespace ott::kineto {
namespace {

using kernels::Literal;
using kernels::ParseLiteral;

struct KnownType {
  std::string_view name;  // in lower case, without its namespace
  DType dtype;
};

// C++'s names, as at::typeMetaToScalarType and caffe2::TypeMeta print them, and at::ScalarType's.
constexpr KnownType kTypes[] = {
    {"float", DType::kFloat32},
    {"double", DType::kFloat64},
    {"half", DType::kFloat16},
    {"bfloat16", DType::kBFloat16},
    {"float8_e4m3fn", DType::kFloat8E4M3},
    {"float8_e4m3fnuz", DType::kFloat8E4M3},
    {"float8_e5m2", DType::kFloat8E5M2},
    {"float8_e5m2fnuz", DType::kFloat8E5M2},
    {"long int", DType::kInt64},
    {"long", DType::kInt64},
    {"int", DType::kInt32},
    {"short int", DType::kInt16},
    {"short", DType::kInt16},
    {"signed char", DType::kInt8},
    {"char", DType::kInt8},
    {"unsigned char", DType::kUInt8},
    {"byte", DType::kUInt8},
    {"unsigned short", DType::kUInt16},
    {"short unsigned int", DType::kUInt16},
    {"uint16", DType::kUInt16},
    {"unsigned int", DType::kUInt32},
    {"uint32", DType::kUInt32},
    {"unsigned long", DType::kUInt64},
    {"long unsigned int", DType::kUInt64},
    {"uint64", DType::kUInt64},
    {"bool", DType::kBool},
    {"complex<float>", DType::kComplex64},
    {"complexfloat", DType::kComplex64},
    {"complex<double>", DType::kComplex128},
    {"complexdouble", DType::kComplex128},
};

void AddTensor(int position, const Literal& sizes, std::optional<DType> dtype,
               std::vector<OpArgument>* arguments) {
  std::optional<std::vector<int64_t>> shape = sizes.ToShape();
  if (!shape.has_value()) return;
  OpArgument& argument = arguments->emplace_back();
  argument.position = position;
  argument.is_tensor = true;
  argument.shape = *std::move(shape);
  argument.dtype = dtype;
}

// "1", "[16, 32]", "True", "tanh"; "" is a tensor's, and what was left out.
void AddValue(int position, const std::string& text, std::vector<OpArgument>* arguments) {
  if (text.empty() || text == "None") return;
  OpArgument argument;
  argument.position = position;
  const Literal value = ParseLiteral(text).value_or(Literal());
  if (value.is_number()) argument.numbers = {value.number};
  if (value.is_list()) {
    for (const Literal& item : value.items) {
      if (!item.is_number()) return;
      argument.numbers.push_back(item.number);
    }
  }
  if (argument.numbers.empty()) argument.text = text;
  arguments->push_back(std::move(argument));
}

std::vector<Literal> ItemsOf(std::string_view json) { return ParseLiteral(json).value_or(Literal()).items; }

}  // namespace

std::optional<DType> ToDType(std::string_view name) {
  if (name.substr(0, 5) == "c10::") name.remove_prefix(5);
  std::string lower;
  std::transform(name.begin(), name.end(), std::back_inserter(lower),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const KnownType& known : kTypes) {
    if (known.name == lower) return known.dtype;
  }
  return std::nullopt;
}

void AddNumber(std::string_view name, std::string_view number, std::vector<OpArgument>* arguments) {
  const Literal value = ParseLiteral(number).value_or(Literal());
  if (!value.is_number()) return;
  OpArgument& argument = arguments->emplace_back();
  argument.name = name;
  argument.numbers = {value.number};
}

std::vector<OpArgument> ParseArguments(std::string_view shapes, std::string_view types,
                                       std::string_view inputs) {
  const std::vector<Literal> sizes = ItemsOf(shapes);
  const std::vector<Literal> kinds = ItemsOf(types);
  const std::vector<Literal> values = ItemsOf(inputs);
  std::vector<OpArgument> arguments;
  for (size_t i = 0; i < std::max(sizes.size(), values.size()); ++i) {
    const int position = static_cast<int>(i);
    const std::string kind = i < kinds.size() ? kinds[i].text : "";
    // Tags of what is no tensor, such as "Int" and "Scalar", begin with a capital letter.
    const bool is_tag = std::isupper(static_cast<unsigned char>(kind[0])) != 0;
    const std::optional<DType> dtype = is_tag ? std::nullopt : ToDType(kind);
    if (i < sizes.size()) {
      const std::vector<Literal>& items = sizes[i].items;
      if (!items.empty() && items[0].is_list()) {
        for (const Literal& item : items) AddTensor(position, item, dtype, &arguments);
      } else if (!items.empty() || dtype.has_value()) {
        // Without sizes it is a tensor of no dimension if it has an element type, else no tensor at all.
        AddTensor(position, sizes[i], dtype, &arguments);
      }
    }
    if (i < values.size()) AddValue(position, values[i].text, &arguments);
  }
  return arguments;
}

bool ParseSizes(std::string_view list, int64_t* sizes) {
  int found = 0;
  for (size_t i = 0; i < list.size() && found < 3;) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(list.data() + i, list.data() + list.size(), size);
    if (error != std::errc()) {
      ++i;
      continue;
    }
    sizes[found++] = size;
    i = static_cast<size_t>(end - list.data());
  }
  return found == 3;
}

int64_t SequenceNumberIn(std::string_view inputs) {
  const size_t comma = inputs.find(',');
  const size_t begin = comma == std::string_view::npos ? comma : inputs.find('"', comma);
  const size_t end = begin == std::string_view::npos ? begin : inputs.find('"', begin + 1);
  if (end == std::string_view::npos) return -1;
  return std::max<int64_t>(chrome_trace::ParseInteger(inputs.substr(begin + 1, end - begin - 1)), -1);
}

std::string Compact(std::string_view json) {
  std::string result;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '\\') {
      result.append(json.substr(i++, 2));
      continue;
    }
    if (json[i] == '"') in_string = !in_string;
    if (in_string || static_cast<unsigned char>(json[i]) > ' ') result.push_back(json[i]);
  }
  return result;
}

}  // namespace ott::kineto
