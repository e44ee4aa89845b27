#include "ott/core/compare/compare.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/report.h"
#include "ott/core/digest/digest.h"
#include "ott/core/dump/adding_order.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/image.h"
#include "ott/core/dump/stand_in.h"
#include "ott/core/tensor/parallel_for.h"

namespace ott {
namespace {

// Returns the digest of a tensor, or of its stand-in.
std::optional<std::string> DigestText(const Value& value) {
  if (value.is_tensor()) {
    const absl::StatusOr<TensorDigest> digest = ComputeDigest(value.tensor().view);
    return digest.ok() ? std::optional<std::string>(digest->root.ToString()) : std::nullopt;
  }
  return DigestOfStandIn(value);
}

// Counts the elements of a tensor, or of its stand-in.
int64_t NumElements(const Value& value) {
  if (value.is_tensor()) return value.tensor().view.num_elements();
  if (const ValueMap* const image = ImageOf(value)) return NumElements(*image->Find("pixels"));
  const Value* const count = StatisticsOf(value)->Find("num_elements");
  return count != nullptr && count->kind() == Value::Kind::kInt ? count->int_value() : 0;
}

bool IsOrStandsForATensor(const Value& value) {
  return value.is_tensor() || StatisticsOf(value) != nullptr || ImageOf(value) != nullptr;
}

class TreeComparer {
 public:
  explicit TreeComparer(const CompareOptions& options) : options_(options) {}

  void Compare(const std::string& path, const Value& reference, const Value& current) {
    if (CompareStandIns(path, reference, current)) return;
    const std::optional<Tensor> reference_tensor = AsTensor(reference);
    const std::optional<Tensor> current_tensor = AsTensor(current);
    if (reference_tensor.has_value() && current_tensor.has_value()) {
      TensorCompareOptions options = options_.tensors;
      options.tolerance = ToleranceFor(path, current_tensor->view.dtype());
      // Only tensors have a dtype that was chosen.
      options.compare_dtype &= reference.is_tensor() && current.is_tensor() &&
                               reference_tensor->dtype_known && current_tensor->dtype_known;
      places_.push_back({results_.size(), within_image_});
      pairs_.push_back({*reference_tensor, *current_tensor, options});
      results_.push_back({path, TensorComparison()});
    } else if (reference.is_map() && current.is_map()) {
      CompareMaps(path, reference.map(), current.map());
    } else if (IsListOfValues(reference, reference_tensor) && IsListOfValues(current, current_tensor)) {
      CompareLists(path, reference, current);
    } else if (reference.kind() != current.kind()) {
      Add(path, CompareStatus::kKindDiffers,
          absl::StrCat("reference ", std::string(Name(reference.kind())), ", current ",
                       std::string(Name(current.kind()))));
    } else if (reference.kind() == Value::Kind::kString &&
               reference.string_value() != current.string_value()) {
      Add(path, CompareStatus::kMismatch,
          absl::StrCat("reference \"", reference.string_value(), "\", current \"", current.string_value(),
                       "\""));
    }
  }

  TreeComparison Finish() && {
    return std::move(*this).Finish([this](absl::Span<const ComparedTensors> pairs) {
      return ComparePairs(pairs, options_.tensors.num_threads);
    });
  }

  // An empty comparison is a result of its own, unless both sides agree on it.
  template <typename F>
  TreeComparison Finish(const F& compare_pairs) && {
    std::vector<TensorComparison> comparisons = compare_pairs(absl::MakeConstSpan(pairs_));
    for (size_t i = 0; i < places_.size(); ++i) {
      TensorComparison& comparison = results_[places_[i].result].comparison;
      comparison = std::move(comparisons[i]);
      // Other tensors make the same image.
      if (places_[i].within_image && comparison.status == CompareStatus::kBitwiseEqual)
        comparison.status = CompareStatus::kEqual;
    }
    const bool agree = options_.allow_empty && !left_out_ && HaveNoElements();
    if (results_.empty() && !agree) Add("", CompareStatus::kEmpty, "there is nothing to compare");
    return {std::move(results_), agree};
  }

  // Adds a path that only one side has.
  void AddOneSided(bool allowed, const std::string& path, CompareStatus status, const char* detail) {
    left_out_ |= allowed;
    if (!allowed) Add(path, status, detail);
  }

  void Add(std::string path, CompareStatus status, std::string detail) {
    TensorComparison comparison;
    comparison.status = status;
    comparison.detail = std::move(detail);
    results_.push_back({std::move(path), std::move(comparison)});
  }

 private:
  const Tolerance& ToleranceFor(const std::string& path, DType dtype) {
    for (const PathTolerance& entry : options_.path_tolerances) {
      if (MatchesTensorGlob(path, entry.glob)) return entry.tolerance;
    }
    if (!options_.default_tolerances) return options_.tensors.tolerance;
    default_tolerance_ = DefaultTolerance(dtype);
    default_tolerance_.nan_equal = options_.tensors.tolerance.nan_equal;
    return default_tolerance_;
  }

  // False, and nothing done, unless one side was dumped as statistics or as an image, and the other one is,
  // or was, a tensor too.
  bool CompareStandIns(const std::string& path, const Value& reference, const Value& current) {
    const bool statistics = StatisticsOf(reference) != nullptr || StatisticsOf(current) != nullptr;
    const bool images = ImageOf(reference) != nullptr || ImageOf(current) != nullptr;
    if (!statistics && !images) return false;
    const std::optional<std::string> reference_digest = DigestText(reference);
    const std::optional<std::string> current_digest = DigestText(current);
    const bool known = reference_digest.has_value() && current_digest.has_value();
    if (known && *reference_digest == *current_digest) {
      TensorComparison comparison;
      const Value& tensor = current.is_tensor() ? current : reference;
      comparison.status = CompareStatus::kBitwiseEqual;
      comparison.num_elements = NumElements(tensor);
      comparison.cosine_similarity = 1;
      results_.push_back({path, std::move(comparison)});
      return true;
    }
    if (statistics && !(IsOrStandsForATensor(reference) && IsOrStandsForATensor(current))) return false;
    const std::string reason =
        absl::StrCat(known ? "the digests differ" : "there is no digest", ", and only ",
                     statistics ? "statistics" : "images", " were dumped");
    if (statistics) {
      Add(path, CompareStatus::kCouldNotCompare, reason);
    } else {
      CompareImages(path, reference, current, reason);
    }
    return true;
  }

  // At least one side is an image. A tensor on the other side is made one. Images may differ, but are never a
  // pass: other tensors make the same. reason: says why their tensors are not compared.
  void CompareImages(const std::string& path, const Value& reference, const Value& current,
                     const std::string& reason) {
    const absl::StatusOr<Value> reference_image = AsImage(reference, current);
    const absl::StatusOr<Value> current_image = AsImage(current, reference);
    for (const absl::Status& status : {reference_image.status(), current_image.status()}) {
      if (status.ok()) continue;
      Add(path, CompareStatus::kCouldNotCompare, std::string(status.message()));
      return;
    }
    const ValueMap* const reference_map = ImageOf(*reference_image);
    const ValueMap* const current_map = ImageOf(*current_image);
    if (reference_map == nullptr || current_map == nullptr) {
      Add(path, CompareStatus::kKindDiffers, "only one of them is an image");
      return;
    }
    Add(path, CompareStatus::kCouldNotCompare, reason);
    within_image_ = true;
    for (const char* const name : {"pixels", "original_range", "image_format"}) {
      Compare(JoinPath(path, absl::StrCat(kImageName, ".", name)), *reference_map->Find(name),
              *current_map->Find(name));
    }
    within_image_ = false;
  }

  static absl::StatusOr<Value> AsImage(const Value& value, const Value& other) {
    if (!value.is_tensor()) return value;
    OTT_ASSIGN_OR_RETURN(const DumpFormat format,
                         ParseImageFormat(ImageOf(other)->Find("image_format")->string_value()));
    OTT_ASSIGN_OR_RETURN(const Image image, MakeImage(value.tensor().view, format));
    return ImageValue(image, format);
  }

  static bool IsListOfValues(const Value& value, const std::optional<Tensor>& tensor) {
    if (value.is_list()) return true;
    return tensor.has_value() && !tensor->view.shape().empty() && tensor->scattered == nullptr;
  }

  // Every tensor and value below, one by one.
  void AddAll(const std::string& path, CompareStatus status, const Value& value) {
    if (IsOrStandsForATensor(value)) {
      Add(path, status, "a tensor");
    } else if (value.is_map() && !value.map().empty()) {
      for (const auto& [name, child] : value.map()) AddAll(JoinPath(path, name), status, child);
    } else if (value.is_list() && !value.list().empty()) {
      for (size_t i = 0; i < value.list().size(); ++i) {
        AddAll(JoinPath(path, std::to_string(i)), status, value.list()[i]);
      }
    } else {
      Add(path, status, absl::StrCat("a ", std::string(Name(value.kind()))));
    }
  }

  void CompareMaps(const std::string& path, const ValueMap& reference, const ValueMap& current) {
    for (const auto& [name, value] : reference) {
      const std::string child = JoinPath(path, name);
      if (const Value* found = current.Find(name)) {
        Compare(child, value, *found);
      } else {
        AddAllOneSided(options_.allow_missing, child, CompareStatus::kMissing, value);
      }
    }
    for (const auto& [name, value] : current) {
      if (reference.Find(name) == nullptr)
        AddAllOneSided(options_.allow_extra, JoinPath(path, name), CompareStatus::kExtra, value);
    }
    if (options_.compare_order) CompareOrder(path, reference, current);
  }

  void AddAllOneSided(bool allowed, const std::string& path, CompareStatus status, const Value& value) {
    left_out_ |= allowed;
    if (!allowed) AddAll(path, status, value);
  }

  // Compares the order of the names that both have.
  void CompareOrder(const std::string& path, const ValueMap& reference, const ValueMap& current) {
    auto at = current.begin();
    for (const auto& [name, value] : reference) {
      if (current.Find(name) == nullptr) continue;
      while (reference.Find(at->first) == nullptr) ++at;
      if (at->first != name) {
        Add(path, CompareStatus::kOrderDiffers,
            absl::StrCat("the reference has \"", name, "\" where the current has \"", at->first, "\""));
        return;
      }
      ++at;
    }
  }

  void CompareLists(const std::string& path, const Value& reference, const Value& current) {
    const Value::List reference_items = Items(reference);
    const Value::List current_items = Items(current);
    if (reference_items.size() != current_items.size()) {
      Add(path, CompareStatus::kLengthDiffers,
          absl::StrCat("reference ", reference_items.size(), " items, current ", current_items.size()));
    }
    for (size_t i = 0; i < std::min(reference_items.size(), current_items.size()); ++i) {
      Compare(JoinPath(path, std::to_string(i)), reference_items[i], current_items[i]);
    }
  }

  // Returns the items of a list, or along the first dimension of a tensor.
  static Value::List Items(const Value& value) {
    if (value.is_list()) return value.list();
    Value::List items;
    for (int64_t i = 0; i < value.tensor().view.shape()[0]; ++i) {
      items.push_back(ItemOf(value.tensor(), i));
    }
    return items;
  }

  // Says where the comparison of a pair goes.
  struct Place {
    size_t result;
    bool within_image;
  };

  bool HaveNoElements() const {
    return std::all_of(results_.begin(), results_.end(), [](const NamedComparison& result) {
      return Passes(result.comparison.status) && result.comparison.num_elements == 0;
    });
  }

  const CompareOptions& options_;
  Tolerance default_tolerance_;
  bool within_image_ = false;
  // True if a path that only one side has was not compared.
  bool left_out_ = false;
  std::vector<ComparedTensors> pairs_;
  std::vector<Place> places_;  // of each pair
  std::vector<NamedComparison> results_;
};

const Value* GradsOf(const Dump& dump) { return dump.grads.has_value() ? &*dump.grads : nullptr; }

void CompareGroup(const std::string& name, const Value* reference, const Value* current,
                  const CompareOptions& options, TreeComparer& comparer) {
  if (reference != nullptr && current != nullptr) {
    comparer.Compare(name, *reference, *current);
  } else if (reference != nullptr) {
    comparer.AddOneSided(options.allow_missing, name, CompareStatus::kMissing, "the current dump has none");
  } else if (current != nullptr) {
    comparer.AddOneSided(options.allow_extra, name, CompareStatus::kExtra, "the reference dump has none");
  }
}

// Lists the paths of both groups in the order of adding, below their names; of a group that was added in its
// tree's order, the name alone.
std::vector<std::string> OrderOf(const Dump& dump) {
  std::vector<std::string> order;
  if (!dump.manifest.has_value()) return order;
  const Manifest& manifest = *dump.manifest;
  const auto add = [&](const std::string& group, const std::vector<std::string>& added) {
    // All that is in it keeps its order.
    if (added.empty()) order.push_back(group);
    for (const std::string& path : added) order.push_back(JoinPath(group, path));
  };
  add("tensors", manifest.tensor_order);
  add("grads", manifest.grad_order);
  return order;
}

// From the path in the dump, "tensors.w", to the tensor's name.
void NameTensors(bool has_gradients, TreeComparison& comparison) {
  constexpr std::string_view kTensors = "tensors.";
  for (NamedComparison& result : comparison.results) {
    if (result.path.size() == kTensors.size() || result.path.rfind(kTensors, 0) != 0) continue;
    result.path = TensorName(std::string_view(result.path).substr(kTensors.size()), has_gradients);
  }
}

TreeComparison CompareToReadDump(const absl::StatusOr<Dump>& reference, const Value& current,
                                 const Value* current_grads, const CompareOptions& options) {
  TreeComparer comparer(options);
  if (!reference.ok()) {
    comparer.Add("", CompareStatus::kCouldNotCompare,
                 absl::StrCat("the reference: ", reference.status().message()));
    return std::move(comparer).Finish();
  }
  CompareGroup("tensors", &reference->tensors, &current, options, comparer);
  CompareGroup("grads", GradsOf(*reference), current_grads, options, comparer);
  TreeComparison comparison = std::move(comparer).Finish();
  AddingOrder(OrderOf(*reference)).Sort(comparison.results);
  NameTensors(reference->grads.has_value() || current_grads != nullptr, comparison);
  return comparison;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"equal", "different", "could not compare"};
  return kNames[static_cast<size_t>(verdict)];
}

Verdict TreeComparison::verdict() const {
  bool could_not_compare = false;
  int64_t num_elements = 0;
  for (const NamedComparison& result : results) {
    const CompareStatus status = result.comparison.status;
    if (CouldNotCompare(status)) {
      could_not_compare = true;
    } else if (!Passes(status)) {
      return Verdict::kDifferent;
    }
    num_elements += result.comparison.num_elements;
  }
  could_not_compare |= num_elements == 0 && !agree_without_elements;
  return could_not_compare ? Verdict::kCouldNotCompare : Verdict::kEqual;
}

bool TreeComparison::bitwise_equal() const {
  if (verdict() != Verdict::kEqual) return false;
  for (const NamedComparison& result : results) {
    if (result.comparison.status != CompareStatus::kBitwiseEqual) return false;
  }
  return true;
}

const NamedComparison* TreeComparison::first_failure() const {
  for (const NamedComparison& result : results) {
    if (!Passes(result.comparison.status)) return &result;
  }
  return nullptr;
}

Tolerance DefaultTolerance(DType dtype) {
  Tolerance tolerance;
  tolerance.atol = InfoOf(dtype).atol;
  tolerance.rtol = InfoOf(dtype).rtol;
  return tolerance;
}

TreeComparison CompareTrees(const Value& reference, const Value& current, const CompareOptions& options) {
  TreeComparer comparer(options);
  comparer.Compare("", reference, current);
  return std::move(comparer).Finish();
}

std::vector<TensorComparison> ComparePairs(absl::Span<const ComparedTensors> pairs, int num_threads) {
  constexpr int64_t kLarge = 1 << 20;
  constexpr int64_t kWorthAThread = 1 << 16;
  std::vector<TensorComparison> comparisons(pairs.size());
  const auto compare = [&](size_t i, int threads) {
    TensorCompareOptions options = pairs[i].options;
    options.num_threads = threads;
    comparisons[i] = CompareTensors(pairs[i].reference, pairs[i].current, options);
  };
  std::vector<size_t> small, large;
  int64_t num_small_elements = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const int64_t num_elements = pairs[i].current.view.num_elements();
    (num_elements > kLarge ? large : small).push_back(i);
    if (num_elements <= kLarge) num_small_elements += num_elements;
  }
  const int64_t threads_of_small =
      std::min<int64_t>(NumThreads(num_threads), 1 + num_small_elements / kWorthAThread);
  ParallelFor(static_cast<int64_t>(small.size()), static_cast<int>(threads_of_small),
              [&](int64_t i) { compare(small[i], 1); });
  for (const size_t i : large) compare(i, num_threads);
  return comparisons;
}

TreeComparison CompareTrees(
    const Value& reference, const Value& current, const CompareOptions& options,
    const std::function<std::vector<TensorComparison>(absl::Span<const ComparedTensors>)>& compare_pairs) {
  TreeComparer comparer(options);
  comparer.Compare("", reference, current);
  return std::move(comparer).Finish(compare_pairs);
}

TreeComparison CompareToDump(const std::string& reference_dir, const Value& current,
                             const Value* current_grads, const CompareOptions& options) {
  return CompareToReadDump(ReadDump(reference_dir), current, current_grads, options);
}

TreeComparison CompareDumps(const std::string& reference_dir, const std::string& current_dir,
                            const CompareOptions& options) {
  const std::string* const dirs[2] = {&reference_dir, &current_dir};
  absl::StatusOr<Dump> dumps[2];
  // JSON takes most of the time to read.
  ParallelFor(2, NumThreads(options.tensors.num_threads), [&](int64_t i) { dumps[i] = ReadDump(*dirs[i]); });
  const auto& [reference, current] = dumps;
  if (!current.ok()) {
    TreeComparer comparer(options);
    comparer.Add("", CompareStatus::kCouldNotCompare,
                 absl::StrCat("the current: ", current.status().message()));
    return std::move(comparer).Finish();
  }
  return CompareToReadDump(reference, current->tensors, GradsOf(*current), options);
}

}  // namespace ott
