#include "ott/questions/right/layout/tree_layout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/questions/right/layout/run_rules.h"

namespace ott::crosscheck {
namespace {

// The elements [begin, begin + size) of a dimension. REQUIRES: the tensor is not scattered and has them
Tensor SliceOf(const Tensor& tensor, int dim, int64_t begin, int64_t size) {
  const TensorView& view = tensor.view;
  Dims shape = view.shape();
  shape[dim] = size;
  const char* const data =
      static_cast<const char*>(view.data()) + begin * view.strides()[dim] * SizeOf(view.dtype());
  Tensor slice = tensor;
  slice.view = TensorView(data, view.dtype(), shape, view.strides());
  return slice;
}

absl::StatusOr<int> DimOf(const Tensor& tensor, int dim) {
  const auto num_dims = static_cast<int>(tensor.view.shape().size());
  const int resolved = dim < 0 ? dim + num_dims : dim;
  if (resolved >= 0 && resolved < num_dims) return resolved;
  return absl::InvalidArgumentError(absl::StrCat("it has ", num_dims, " dimensions, and no dim ", dim));
}

absl::StatusOr<Tensor> CutSection(const Rule& rule, const Rule::Section& section, const Tensor& tensor) {
  OTT_ASSIGN_OR_RETURN(const int dim, DimOf(tensor, rule.fused_dim));
  const int64_t extent = tensor.view.shape()[dim];
  const int64_t group = rule.group > 0 ? rule.group : std::max<int64_t>(extent, rule.num_shares);
  if (extent % group != 0 || group % rule.num_shares != 0) {
    return absl::InvalidArgumentError(absl::StrCat("dim ", rule.fused_dim, " of its shape ",
                                                   ShapeToString(tensor.view.shape()), " is no sections of ",
                                                   rule.num_shares, " shares in groups of ", group));
  }
  const int64_t share = group / rule.num_shares;
  const int64_t width = section.share * share;
  std::vector<TensorPart> parts;
  for (int64_t first = 0; first < extent; first += group) {
    Dims offset(tensor.view.shape().size());
    offset[dim] = first / group * width;
    parts.push_back({SliceOf(tensor, dim, first + section.begin * share, width), std::move(offset)});
  }
  Dims shape = tensor.view.shape();
  shape[dim] = extent / group * width;
  return ScatteredElements::Join(tensor.view.dtype(), shape, shape, std::move(parts));
}

// What one section of a rule makes of a tensor.
absl::StatusOr<Tensor> WholeOf(const Rule& rule, const Rule::Section& section, Tensor tensor) {
  if (rule.sections.size() > 1 || rule.group > 0) {
    OTT_ASSIGN_OR_RETURN(tensor, Gathered(tensor));
    OTT_ASSIGN_OR_RETURN(tensor, CutSection(rule, section, tensor));
  }
  if (!rule.transpose.empty()) {
    OTT_ASSIGN_OR_RETURN(tensor, Gathered(tensor));
    OTT_ASSIGN_OR_RETURN(tensor.view, PermuteAxes(tensor.view, rule.transpose));
  }
  for (const Padding& padding : rule.padding) {
    OTT_ASSIGN_OR_RETURN(tensor, Gathered(tensor));
    OTT_ASSIGN_OR_RETURN(const int dim, DimOf(tensor, padding.dim()));
    if (tensor.view.shape()[dim] < padding.size()) {
      return absl::InvalidArgumentError(absl::StrCat("its shape ", ShapeToString(tensor.view.shape()),
                                                     " is shorter than ", padding.size(), " in dim ", dim));
    }
    tensor = SliceOf(tensor, dim, 0, padding.size());
  }
  return tensor;
}

class TreeBinder {
 public:
  TreeBinder(const RunRules& rules, std::vector<std::string>* problems)
      : rules_(rules), matched_(rules.rules.size()), problems_(problems) {}

  absl::Status Add(const std::string& path, const Value& value) {
    if (value.is_map()) {
      for (const auto& [name, child] : value.map()) OTT_RETURN_IF_ERROR(Add(JoinPath(path, name), child));
      return absl::OkStatus();
    }
    if (value.is_list()) {
      for (size_t i = 0; i < value.list().size(); ++i) {
        OTT_RETURN_IF_ERROR(Add(JoinPath(path, absl::StrCat(i)), value.list()[i]));
      }
      return absl::OkStatus();
    }
    return AddLeaf(path, value);
  }

  Value Finish() && {
    for (size_t i = 0; i < matched_.size(); ++i) {
      if (matched_[i]) continue;
      problems_->push_back(absl::StrCat("no tensor is like the rule of ", rules_.rules[i].path.text()));
    }
    return std::move(wholes_);
  }

 private:
  absl::Status AddLeaf(const std::string& path, const Value& value) {
    for (const PathPattern& ignored : rules_.ignore) {
      if (ignored.Match(path).has_value()) return absl::OkStatus();
    }
    for (size_t i = 0; i < rules_.rules.size(); ++i) {
      const std::optional<Captures> captures = rules_.rules[i].path.Match(path);
      if (!captures.has_value()) continue;
      matched_[i] = true;
      return AddWholes(path, value, rules_.rules[i], *captures);
    }
    problems_->push_back(absl::StrCat(path, " is like no rule"));
    return absl::OkStatus();
  }

  absl::Status AddWholes(const std::string& path, const Value& value, const Rule& rule,
                         const Captures& captures) {
    for (const Rule::Section& section : rule.sections) {
      if (!section.whole.has_value()) continue;
      Value whole = value;
      if (value.is_tensor()) {
        absl::StatusOr<Tensor> tensor = WholeOf(rule, section, value.tensor());
        if (!tensor.ok()) return WithContext(path, tensor.status());
        whole = *std::move(tensor);
      }
      const std::string name = section.whole->Expand(captures);
      if (wholes_.Insert(name, std::move(whole)) == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat(path, ": another tensor is ", name, ", too"));
      }
    }
    return absl::OkStatus();
  }

  const RunRules& rules_;
  std::vector<bool> matched_;
  std::vector<std::string>* const problems_;
  ValueMap wholes_;
};

}  // namespace

absl::StatusOr<Value> ToWholes(const Value& tree, const RunLayout& layout,
                               std::vector<std::string>* problems) {
  OTT_ASSIGN_OR_RETURN(const RunRules rules, RunRules::Create(layout, DeviceMesh(), 1));
  TreeBinder binder(rules, problems);
  OTT_RETURN_IF_ERROR(binder.Add("", tree));
  return std::move(binder).Finish();
}

}  // namespace ott::crosscheck
