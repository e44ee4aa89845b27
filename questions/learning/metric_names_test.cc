#include "ott/questions/learning/metric_names.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::learning {
namespace {

using ::testing::ElementsAre;

RunCurves RunOf(const std::vector<std::string>& metrics) {
  RunCurves run;
  for (const std::string& metric : metrics) run.curves[metric] = {{1, 2}};
  return run;
}

TEST(MetricNames, TellLossesRatesAndWhatIsNotOfLearning) {
  for (const char* name : {"loss", "eval_loss", "Train/Perplexity", "word_error_rate"})
    EXPECT_TRUE(IsLoss(name)) << name;
  for (const char* name : {"accuracy", "grad_norm", "lr"}) EXPECT_FALSE(IsLoss(name)) << name;
  for (const char* name : {"lr", "train/lr", "a/b/learning_rate", "learning-rate", "lr-AdamW/pg1"})
    EXPECT_TRUE(IsLearningRate(name)) << name;
  for (const char* name : {"lr_scale", "my_lr", "lr/x", "loss"}) EXPECT_FALSE(IsLearningRate(name)) << name;
  const std::vector<std::string> others = absl::StrSplit(
      "throughput tokens_per_second iter_Time train_runtime total_flops memory epoch num_steps "
      "samples lr learning_rate total_flos loss_scale loss-scale batch-size world-size "
      "mem-reserved-bytes learning-rate tokens_per_sec Train/Samples/elapsed_time_ms",
      ' ');
  for (const std::string& name : others) EXPECT_FALSE(IsOfLearning(name)) << name;
  for (const char* name : {"loss", "grad_norm", "norm_of_step", "train_loss_step", "train_accuracy_epoch",
                           "Train/Samples/train_loss", "lm loss"})
    EXPECT_TRUE(IsOfLearning(name)) << name;
}

TEST(MetricNames, AreOfAllRunsThatHaveAPoint) {
  RunCurves empty = RunOf({"a", "b", "c"});
  empty.curves["c"].clear();
  EXPECT_THAT(MetricsOfAll({RunOf({"d", "c", "b", "a"})}, {empty, RunOf({"b", "a", "c"})}),
              ElementsAre("a", "b"));
}

TEST(MetricNames, TheDefaultSaysMostAboutLearning) {
  EXPECT_EQ(DefaultMetric({RunOf({"loss"})}, {RunOf({"accuracy"})}), "");
  // Each is taken before those that follow.
  const std::vector<std::vector<std::string>> order = {
      {"eval_accuracy", "my_val_loss"},
      {"accuracy", "loss", "train_loss_step", "train_perplexity"},
      {"eval_f1"},
      {"f1"},
      {"eval_grad_norm", "eval_loss_time", "loss_scale", "lr"}};
  for (size_t i = 0; i < order.size(); ++i) {
    for (const std::string& better : order[i]) {
      for (size_t j = i + 1; j < order.size(); ++j) {
        for (const std::string& other : order[j])
          EXPECT_EQ(DefaultMetric({RunOf({better, other})}, {RunOf({other, better})}), better) << other;
      }
    }
    EXPECT_EQ(DefaultMetric({RunOf(order[i])}, {RunOf(order[i])}), order[i][0]);
  }
}

}  // namespace
}  // namespace ott::learning
