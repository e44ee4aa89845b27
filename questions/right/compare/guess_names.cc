#include "ott/questions/right/compare/guess_names.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/digest/digest.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott::compare {
namespace {

enum Means { kName, kElements, kTransposed, kNeighbours, kShape, kNumMeans };
constexpr std::array<const char*, kNumMeans> kMeans = {"name", "equal elements", "equal elements, transposed",
                                                       "the names around them", "shape and order"};

bool IsNumber(std::string_view part) {
  return !part.empty() && part.find_first_not_of("0123456789") == part.npos;
}

// A name with {n0}, {n1}, ... in place of its numbers.
struct Pattern {
  explicit Pattern(const std::string& name) {
    std::vector<std::string> parts = absl::StrSplit(name, '.');
    for (std::string& part : parts) {
      if (!IsNumber(part)) continue;
      numbers.push_back(part);
      part = absl::StrCat("{n", numbers.size() - 1, "}");
    }
    text = absl::StrJoin(parts, ".");
  }

  std::string text;
  std::vector<std::string> numbers;
};

// A name, which a pattern takes as it is unless it has what patterns are made of.
bool CanBePath(const std::string& name) { return name.find_first_of("{}*") == name.npos; }

struct Named {
  explicit Named(const NamedTensor& named)
      : name(named.path), tensor(named.tensor), is_text(named.content == NamedTensor::Content::kText) {}

  std::string name;
  Tensor tensor;
  bool is_text;
  Pattern pattern{name};
  Named* partner = nullptr;
  Means means = kName;

  // Scalars, and constants of one element, are equal by chance.
  bool IsTelling() const { return tensor.view.num_elements() >= 2 && !is_text; }
  std::string Parent() const { return name.substr(0, std::min(name.rfind('.'), name.size())); }
  std::string Last() const { return name.substr(Parent().size()); }
};

std::vector<Named> ListOf(const Value& state) {
  std::vector<Named> all;
  for (const NamedTensor& named : ListValues(state)) {
    if (CanBePath(named.path)) all.emplace_back(named);
  }
  return all;
}

class Guesser {
 public:
  Guesser(const Value& reference, const Value& current)
      : reference_(ListOf(reference)), current_(ListOf(current)) {
    for (Named& named : reference_) by_name_.emplace(named.name, &named);
  }

  GuessedNames Guess() && {
    for (Named& named : current_) Pair(by_name_.find(named.name), kName, &named);
    PairByKey([](const Named& named) { return DigestKey(named.tensor); }, kElements, /*only_one=*/true);
    PairTransposed();
    PairNeighbours();
    PairByKey([](const Named& named) { return ShapeToString(named.tensor.view.shape()); }, kShape,
              /*only_one=*/false);
    PairNeighbours();
    return Rules();
  }

 private:
  static std::string DigestKey(const Tensor& tensor) {
    const std::optional<std::string> digest = DigestOf(tensor);
    return digest.has_value() ? absl::StrCat(*digest, ShapeToString(tensor.view.shape()),
                                             std::string(Name(tensor.view.dtype())))
                              : "";
  }

  bool Pair(std::map<std::string, Named*>::iterator found, Means means, Named* current) {
    if (found == by_name_.end() || current->partner != nullptr || found->second->partner != nullptr)
      return false;
    current->partner = found->second;
    found->second->partner = current;
    current->means = means;
    return true;
  }

  // The tensors of a side without a partner, by key; "" is none. Of one key in the order of their numbers.
  template <typename Key>
  static std::map<std::string, std::vector<Named*>> LeftByKey(std::vector<Named>& side, const Key& key) {
    std::map<std::string, std::vector<Named*>> by_key;
    for (Named& named : side) {
      if (named.partner != nullptr || !named.IsTelling()) continue;
      if (std::string text = key(named); !text.empty()) by_key[std::move(text)].push_back(&named);
    }
    const auto numbers = [](const Named* named) {
      std::vector<std::pair<size_t, std::string>> all;
      for (const std::string& number : named->pattern.numbers) all.emplace_back(number.size(), number);
      return all;
    };
    for (auto& [text, all] : by_key) {
      std::stable_sort(all.begin(), all.end(),
                       [&](const Named* a, const Named* b) { return numbers(a) < numbers(b); });
    }
    return by_key;
  }

  template <typename Key>
  void PairByKey(const Key& key, Means means, bool only_one) {
    const auto reference = LeftByKey(reference_, key);
    for (const auto& [text, all] : LeftByKey(current_, key)) {
      const auto found = reference.find(text);
      if (found == reference.end() || found->second.size() != all.size() || (only_one && all.size() > 1))
        continue;
      for (size_t i = 0; i < all.size(); ++i) Pair(by_name_.find(found->second[i]->name), means, all[i]);
    }
  }

  void PairTransposed() {
    const auto turned = [](const Named& named) -> std::string {
      if (named.tensor.view.shape().size() != 2) return "";
      const absl::StatusOr<Tensor> gathered = Gathered(named.tensor);
      if (!gathered.ok()) return "";
      const absl::StatusOr<TensorView> view = PermuteAxes(gathered->view, {1, 0});
      return view.ok() ? DigestKey(Tensor{*view, gathered->owner, gathered->file_backed}) : "";
    };
    const auto reference = LeftByKey(reference_, [](const Named& named) { return DigestKey(named.tensor); });
    for (const auto& [text, all] : LeftByKey(current_, turned)) {
      const auto found = reference.find(text);
      if (found == reference.end() || found->second.size() > 1 || all.size() > 1) continue;
      Pair(by_name_.find(found->second[0]->name), kTransposed, all[0]);
    }
  }

  // Names that differ from those of a pair in their numbers, or in their last part, go together as those do.
  void PairNeighbours() {
    bool any = true;
    while (any) {
      any = false;
      std::map<std::string, std::set<std::string>> patterns, parents;
      for (const Named& named : current_) {
        if (named.partner == nullptr) continue;
        if (named.pattern.numbers == named.partner->pattern.numbers)
          patterns[named.pattern.text].insert(named.partner->pattern.text);
        parents[named.Parent()].insert(named.partner->Parent());
      }
      for (Named& named : current_) {
        if (named.partner != nullptr) continue;
        if (const auto found = patterns.find(named.pattern.text);
            found != patterns.end() && found->second.size() == 1) {
          any |=
              Pair(by_name_.find(Filled(*found->second.begin(), named.pattern.numbers)), kNeighbours, &named);
        }
        if (const auto found = parents.find(named.Parent());
            found != parents.end() && found->second.size() == 1) {
          any |= Pair(by_name_.find(*found->second.begin() + named.Last()), kNeighbours, &named);
        }
      }
    }
  }

  static std::string Filled(std::string text, const std::vector<std::string>& numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const std::string name = absl::StrCat("{n", i, "}");
      if (const size_t at = text.find(name); at != text.npos) text.replace(at, name.size(), numbers[i]);
    }
    return text;
  }

  // What a rule says, in which numbers are names where all tensors of the pattern are alike.
  GuessedNames Rules() const {
    std::map<std::string, std::set<std::tuple<std::string, bool>>> wholes_of;
    for (const Named& named : current_) {
      const bool alike = named.partner != nullptr && named.pattern.numbers == named.partner->pattern.numbers;
      wholes_of[named.pattern.text].emplace(alike ? named.partner->pattern.text : "",
                                            named.means == kTransposed);
    }
    GuessedNames guessed;
    std::array<int64_t, kNumMeans> counts{};
    std::set<std::string> done;
    for (const Named& named : current_) {
      if (named.partner == nullptr) continue;
      ++counts[named.means];
      const auto& wholes = wholes_of.at(named.pattern.text);
      const bool as_pattern = wholes.size() == 1 && !std::get<0>(*wholes.begin()).empty();
      const std::string& path = as_pattern ? named.pattern.text : named.name;
      if (!done.insert(path).second) continue;
      TensorRule* const rule = guessed.names.mutable_b()->add_tensors();
      rule->set_path(path);
      rule->set_whole(as_pattern ? named.partner->pattern.text : named.partner->name);
      if (named.means == kTransposed) {
        rule->add_transpose(1);
        rule->add_transpose(0);
      }
    }
    // A {name} stands for more than numbers, so a rule comes before those with more of them.
    const auto num_names = [](const TensorRule* rule) {
      return std::count(rule->path().begin(), rule->path().end(), '{');
    };
    auto& rules = *guessed.names.mutable_b()->mutable_tensors();
    std::stable_sort(rules.pointer_begin(), rules.pointer_end(),
                     [&](const auto* one, const auto* other) { return num_names(one) < num_names(other); });
    std::vector<std::string> texts;
    for (int means = 0; means < kNumMeans; ++means) {
      if (counts[means] > 0) texts.push_back(absl::StrCat(counts[means], " by ", kMeans[means]));
    }
    guessed.by = texts.empty() ? "none" : absl::StrJoin(texts, ", ");
    return guessed;
  }

  std::vector<Named> reference_;
  std::vector<Named> current_;
  std::map<std::string, Named*> by_name_;  // of the reference
};

}  // namespace

GuessedNames GuessNames(const Value& reference, const Value& current) {
  return Guesser(reference, current).Guess();
}

std::optional<std::string> DigestOf(const Tensor& tensor) {
  const absl::StatusOr<Tensor> gathered = Gathered(tensor);
  if (!gathered.ok()) return std::nullopt;
  const absl::StatusOr<TensorDigest> digest = ComputeDigest(gathered->view);
  DropPages(tensor, 0, tensor.view.num_elements());
  return digest.ok() ? std::optional<std::string>(digest->root.ToString()) : std::nullopt;
}

}  // namespace ott::compare
