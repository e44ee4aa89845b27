#include "ott/questions/learning/metric_names.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace ott::learning {
namespace {

// Others run the program at another speed, or are told what it is.
constexpr const char* kNoLearning[] = {"throughput", "per_sec", "time",       "flops",      "flos",
                                       "memory",     "mem_",    "loss_scale", "batch_size", "world_size"};
// So are these, but a loss or an accuracy may have them in its name: Lightning's train_loss_epoch,
// DeepSpeed's Train/Samples/train_loss.
constexpr const char* kCounters[] = {"epoch", "step", "samples", "lr", "learning_rate"};

// Returns the name in lower case; Megatron's have dashes and spaces.
std::string Normal(const std::string& name) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"-", "_"}, {" ", "_"}});
}

bool ContainsWord(const std::string& name, std::string_view word) {
  return absl::StrContains(Normal(name), absl::string_view(word.data(), word.size()));
}

bool IsLossOrAccuracy(const std::string& name) { return IsLoss(name) || ContainsWord(name, "accuracy"); }

}  // namespace

bool IsLoss(const std::string& name) {
  return ContainsWord(name, "loss") || ContainsWord(name, "perplexity") || ContainsWord(name, "error");
}

bool IsLearningRate(const std::string& name) {
  const std::string last = Normal(name.substr(name.rfind('/') + 1));
  // Lightning writes the optimizer behind it: lr-AdamW/pg1.
  return last == "lr" || last == "learning_rate" || absl::StartsWith(name, "lr-");
}

bool IsOfLearning(const std::string& name) {
  if (ContainsWord(name, "norm")) return true;
  const auto contains = [&](const char* word) { return ContainsWord(name, word); };
  return std::none_of(std::begin(kNoLearning), std::end(kNoLearning), contains) &&
         (IsLossOrAccuracy(name) || std::none_of(std::begin(kCounters), std::end(kCounters), contains));
}

std::vector<std::string> MetricsOfAll(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b) {
  std::map<std::string, size_t> counts;
  for (const std::vector<RunCurves>* side : {&a, &b}) {
    for (const RunCurves& run : *side) {
      for (const auto& [name, curve] : run.curves) counts[name] += curve.empty() ? 0 : 1;
    }
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) {
    if (count == a.size() + b.size()) names.push_back(name);
  }
  return names;
}

std::string DefaultMetric(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b) {
  const std::vector<std::string> names = MetricsOfAll(a, b);
  const auto rank = [](const std::string& name) {
    const bool is_evaluation = ContainsWord(name, "eval") || ContainsWord(name, "val");
    const bool is_good = IsLossOrAccuracy(name);
    return !IsOfLearning(name) || ContainsWord(name, "norm") ? 4
           : is_evaluation && is_good                        ? 0
           : is_good                                         ? 1
           : is_evaluation                                   ? 2
                                                             : 3;
  };
  const auto best = std::min_element(
      names.begin(), names.end(),
      [&](const std::string& one, const std::string& other) { return rank(one) < rank(other); });
  return best == names.end() ? "" : *best;
}

}  // namespace ott::learning
