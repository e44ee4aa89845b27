#include "ott/questions/right/show/show.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/csv.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/core/base/utf8.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott::show {
namespace {

struct Tree {
  std::string format;
  Value value;
};

absl::StatusOr<Tree> ReadTree(const std::string& path) {
  if (!PathExists(absl::StrCat(path, "/", kTensorsFile))) {
    OTT_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadCheckpoint(path));
    return Tree{std::move(checkpoint.format), std::move(checkpoint.state)};
  }
  OTT_ASSIGN_OR_RETURN(Dump dump, ReadDump(path));
  if (dump.grads.has_value() && dump.tensors.is_map()) {
    dump.tensors.map().Insert("grads", *std::move(dump.grads));
  }
  return Tree{"a dump", std::move(dump.tensors)};
}

// The entries in which frameworks leave their version.
constexpr std::pair<std::string_view, std::string_view> kVersions[] = {
    {"ds_version", "DeepSpeed"},
    {"pytorch-lightning_version", "Lightning"},
    {"transformers_version", "Transformers"},
    {"checkpoint_version", "Megatron, checkpoint version"},
};

// Inserts the programs that the maps of a state name, down to the files' own maps in folders of folders.
void AddWriters(const Value& state, int depth, std::set<std::string>* writers) {
  if (!state.is_map() || depth > 4) return;
  for (const auto& [name, child] : state.map()) {
    for (const auto& [entry, program] : kVersions) {
      if (name != entry) continue;
      if (child.kind() == Value::Kind::kString)
        writers->insert(absl::StrCat(std::string(program), " ", child.string_value()));
      if (child.kind() == Value::Kind::kDouble)
        writers->insert(absl::StrCat(std::string(program), " ", child.double_value()));
    }
    AddWriters(child, depth + 1, writers);
  }
}

std::string Number(double number) { return absl::StrFormat("%.6g", number); }
std::string Number(const std::optional<double>& number) { return number.has_value() ? Number(*number) : ""; }

Value JsonNumber(const std::optional<double>& number) {
  return number.has_value() ? Value(*number) : Value();
}

}  // namespace

absl::StatusOr<Contents> Show(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(Tree tree, ReadTree(path));
  std::set<std::string> writers;
  AddWriters(tree.value, 0, &writers);
  Contents contents{path, std::move(tree.format), absl::StrJoin(writers, ", "), {}};
  std::map<std::pair<const void*, DType>, std::string> by_address;
  for (const NamedTensor& named : ListValues(tree.value)) {
    if (named.content == NamedTensor::Content::kText) continue;
    const TensorView& view = named.tensor.view;
    ShownTensor& shown = contents.tensors.emplace_back();
    shown.path = named.path;
    shown.kind = StateKindOf(named.path, !view.shape().empty());
    shown.dtype = view.dtype();
    shown.shape = view.shape();
    shown.num_bytes = view.num_bytes();
    const ScatteredElements* const scattered = named.tensor.scattered.get();
    if (scattered != nullptr) shown.num_parts = static_cast<int64_t>(scattered->parts().size());
    if (view.num_elements() > 0 && scattered == nullptr) {
      const auto [found, is_new] = by_address.try_emplace({view.data(), view.dtype()}, named.path);
      if (!is_new) shown.shares_with = found->second;
    }
    OTT_ASSIGN_OR_RETURN(const Tensor gathered, Gathered(named.tensor));
    const absl::StatusOr<TensorStatistics> statistics = ComputeStatistics(gathered.view);
    if (!statistics.ok()) return WithContext(named.path, statistics.status());
    shown.statistics = *statistics;
    DropPages(named.tensor, 0, view.num_elements());
  }
  return contents;
}

std::string ToText(const Contents& contents) {
  TextTable table({"tensor", "dtype", "shape", "bytes", "norm", "min", "max", "NaN", "inf", "state"},
                  TextTable::LastColumn::kLeft);
  std::array<int64_t, kNumStateKinds> bytes_of_kind{};
  int64_t num_bytes = 0;
  std::map<std::string, int64_t> bytes_at;  // of the largest that begins at one element, by the first's path
  for (const ShownTensor& shown : contents.tensors) {
    const TensorStatistics& statistics = shown.statistics;
    std::string remark(Name(shown.kind));
    if (shown.num_parts > 1) absl::StrAppend(&remark, ", in ", shown.num_parts, " parts");
    if (!shown.shares_with.empty()) absl::StrAppend(&remark, ", is ", shown.shares_with);
    table.AddRow({shown.path, std::string(Name(shown.dtype)), ShapeToString(shown.shape),
                  absl::StrCat(shown.num_bytes), Number(statistics.l2_norm), Number(statistics.min),
                  Number(statistics.max), absl::StrCat(statistics.num_nan), absl::StrCat(statistics.num_inf),
                  std::move(remark)});
    // Shared elements are in the file once.
    const bool is_first = shown.shares_with.empty();
    int64_t& counted = bytes_at[is_first ? shown.path : shown.shares_with];
    if (is_first) counted = 0;
    const int64_t more = std::max<int64_t>(shown.num_bytes - counted, 0);
    counted += more;
    bytes_of_kind[static_cast<size_t>(shown.kind)] += more;
    num_bytes += more;
  }
  std::string text = absl::StrCat(
      EscapeControlCharacters(contents.path), ": ", EscapeControlCharacters(contents.format),
      contents.written_by.empty() ? "" : ", written by ", EscapeControlCharacters(contents.written_by), ", ",
      contents.tensors.size(), " tensors and numbers, ", num_bytes, " bytes\n");
  if (!table.empty()) text += table.ToString();
  for (int kind = 0; kind < kNumStateKinds; ++kind) {
    if (bytes_of_kind[kind] == 0) continue;
    absl::StrAppend(&text, std::string(Name(static_cast<StateKind>(kind))), ": ", bytes_of_kind[kind],
                    " bytes\n");
  }
  return text;
}

std::string ToJson(const Contents& contents) {
  Value::List tensors;
  for (const ShownTensor& shown : contents.tensors) {
    Value::List shape(shown.shape.begin(), shown.shape.end());
    const TensorStatistics& statistics = shown.statistics;
    tensors.push_back(ValueMap{{"path", ValidUtf8(shown.path)},
                               {"state", std::string(Name(shown.kind))},
                               {"dtype", std::string(Name(shown.dtype))},
                               {"shape", std::move(shape)},
                               {"num_bytes", shown.num_bytes},
                               {"l2_norm", statistics.l2_norm},
                               {"min", JsonNumber(statistics.min)},
                               {"max", JsonNumber(statistics.max)},
                               {"mean", JsonNumber(statistics.mean)},
                               {"num_nan", statistics.num_nan},
                               {"num_inf", statistics.num_inf},
                               {"num_parts", shown.num_parts},
                               {"shares_with", ValidUtf8(shown.shares_with)}});
  }
  return ott::ToJson(Value(ValueMap{{"path", ValidUtf8(contents.path)},
                                    {"format", ValidUtf8(contents.format)},
                                    {"written_by", ValidUtf8(contents.written_by)},
                                    {"tensors", std::move(tensors)}}))
             .value() +
         "\n";
}

std::string ToCsv(const Contents& contents) {
  std::string text =
      "path,state,dtype,shape,num_bytes,l2_norm,min,max,num_nan,num_inf,num_parts,shares_with\n";
  for (const ShownTensor& shown : contents.tensors) {
    const TensorStatistics& statistics = shown.statistics;
    absl::StrAppend(&text, CsvField(shown.path), ",", std::string(Name(shown.kind)), ",",
                    std::string(Name(shown.dtype)), ",", CsvField(ShapeToString(shown.shape)), ",");
    absl::StrAppend(&text, shown.num_bytes, ",", Number(statistics.l2_norm), ",", Number(statistics.min), ",",
                    Number(statistics.max), ",", statistics.num_nan, ",", statistics.num_inf, ",");
    absl::StrAppend(&text, shown.num_parts, ",", CsvField(shown.shares_with), "\n");
  }
  return text;
}

}  // namespace ott::show
