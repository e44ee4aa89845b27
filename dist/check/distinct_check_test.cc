#include "ott/dist/check/distinct_check.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dist/check/ranks_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/digest/digest.h"
#include "ott/dist/check/verdict.h"

namespace ott {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using Content = NamedTensor::Content;

NamedTensor Named(const std::string& path, std::vector<float> data, Content content = Content::kElements) {
  const auto owner = std::make_shared<const std::vector<float>>(std::move(data));
  const TensorView view(owner->data(), {static_cast<int64_t>(owner->size())});
  const bool is_digest = content == Content::kDigest;
  return {path, Tensor{view, owner}, content, is_digest ? ComputeDigest(view)->root.ToString() : ""};
}

// Returns the elements that another rank may have as well.
std::vector<float> Elements(const NamedTensor& tensor) {
  if (tensor.content == Content::kStandIn) return {};
  const auto* const data = static_cast<const float*>(tensor.tensor.view.data());
  return std::vector<float>(data, data + tensor.tensor.view.num_elements());
}

struct Rank {
  std::vector<NamedTensor> tensors;
  absl::Status problem = absl::OkStatus();
  int64_t iteration = 30;
  bool comes = true;
};

// Returns the verdict of each rank that comes. unmatched: of rank 0.
std::vector<CrossCheckVerdict> CheckAll(const std::vector<Rank>& ranks, const std::vector<int64_t>& groups,
                                        const std::string& unmatched = "",
                                        std::chrono::nanoseconds timeout = std::chrono::seconds(60)) {
  std::vector<CrossCheckVerdict> verdicts(ranks.size());
  OnRanks(static_cast<int>(ranks.size()), [&](int rank, Communicator& communicator) {
    const Rank& mine = ranks[rank];
    DistinctCheck check(GroupOf(communicator), timeout, std::make_shared<SilentRanks>(), groups);
    if (!mine.comes) return;
    verdicts[rank] =
        check.Run(mine.iteration, mine.tensors, rank == 0 ? unmatched : "rank 0's counts", mine.problem);
  });
  return verdicts;
}

// Returns the one verdict of all ranks.
CrossCheckVerdict Check(const std::vector<Rank>& ranks, const std::vector<int64_t>& groups,
                        const std::string& unmatched = "") {
  const std::vector<CrossCheckVerdict> verdicts = CheckAll(ranks, groups, unmatched);
  for (const CrossCheckVerdict& verdict : verdicts)
    EXPECT_EQ(verdict.SerializeAsString(), verdicts[0].SerializeAsString());
  return verdicts[0];
}

// Two ranks of different groups that have the same elements of a tensor differ in nothing, and a tensor that
// not all have, or none, is not compared.
TEST(DistinctCheck, OfAnyRanksTheVerdictIsThatOfTheDefinition) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 400; ++trial) {
    std::vector<Rank> ranks(1 + random() % 5);
    std::vector<int64_t> groups;
    std::vector<std::string> reasons;
    const std::string unmatched = random() % 8 == 0 ? "distinct: \"x\" matches no tensor" : "";
    if (!unmatched.empty()) reasons.push_back(unmatched);
    if (ranks.size() == 1) reasons.push_back("one rank alone has nobody to differ from");
    std::vector<std::string> paths;  // in rank 0's order; what it lacks behind it
    std::map<std::string, std::map<int, const NamedTensor*>> having;
    for (size_t i = 0; i < ranks.size(); ++i) {
      groups.push_back(static_cast<int64_t>(random() % 3));
      std::vector<std::string> order = {"a", "b", "c"};
      std::shuffle(order.begin(), order.end(), random);
      for (const std::string& path : order) {
        if (random() % 8 == 0) continue;
        const Content contents[] = {Content::kElements, Content::kElements, Content::kElements,
                                    Content::kDigest, Content::kStandIn};
        ranks[i].tensors.push_back(
            Named(path,
                  std::vector<float>(trial % 2 == 0 ? 1 : random() % 3,
                                     static_cast<float>(random() % (trial % 2 == 0 ? 2 : 6))),
                  contents[random() % 5]));
      }
      const std::string rank = absl::StrCat("rank ", i, " (node", i, "): ");
      if (i > 0 && random() % 9 == 0) ranks[i].iteration = 31;
      if (random() % 9 == 0) {
        ranks[i].problem = absl::InternalError("no copy");
        reasons.push_back(rank + "no copy");
      } else if (ranks[i].iteration == 31) {
        reasons.push_back(rank + "is in iteration 31");
      } else {
        for (const NamedTensor& tensor : ranks[i].tensors) {
          if (having.count(tensor.path) == 0) paths.push_back(tensor.path);
          having[tensor.path][static_cast<int>(i)] = &tensor;
        }
      }
    }
    if (paths.empty() && unmatched.empty()) reasons.push_back("no tensors to compare");
    std::vector<std::string> different;
    std::vector<int> culprits;
    std::vector<int64_t> shape;
    for (const std::string& path : paths) {
      bool has_elements = false;
      std::vector<int> alike;
      for (const auto& [rank, tensor] : having[path]) {
        const std::vector<float> elements = Elements(*tensor);
        if (elements.empty()) continue;
        has_elements = true;
        std::vector<int> same;
        bool is_of_another = false;
        for (const auto& [other, theirs] : having[path]) {
          if (Elements(*theirs) != elements) continue;
          same.push_back(other);
          is_of_another = is_of_another || groups[other] != groups[rank];
        }
        if (!alike.empty() || !is_of_another) continue;
        alike = same;
        if (different.empty()) shape = {static_cast<int64_t>(elements.size())};
      }
      if (!has_elements) reasons.push_back(path + ": no rank has elements of it");
      if (alike.empty() && having[path].size() < ranks.size()) {
        reasons.push_back(
            absl::StrCat(path, ": on ", having[path].size(), " of ", ranks.size(), " ranks only"));
      }
      if (alike.empty()) continue;
      if (different.empty()) culprits = alike;
      different.push_back(path);
    }
    const CrossCheckVerdict verdict = Check(ranks, groups, unmatched);
    EXPECT_EQ(verdict.outcome(), !different.empty() ? DIFFERENT
                                 : !reasons.empty() ? NOT_COMPARED
                                                    : ALL_DISTINCT);
    EXPECT_EQ(verdict.mode(), DISTINCT);
    EXPECT_EQ(verdict.iteration(), 30);
    EXPECT_EQ(verdict.worst_outcome(), verdict.outcome());
    EXPECT_EQ(verdict.reason(), absl::StrJoin(reasons, "; "));
    EXPECT_EQ(verdict.num_tensors(), paths.size());
    EXPECT_EQ(verdict.num_different_tensors(), different.size());
    EXPECT_EQ(verdict.tensor(), different.empty() ? "" : different[0]);
    EXPECT_EQ(verdict.dtype(), different.empty() ? "" : "float32");
    EXPECT_THAT(verdict.shape(), ElementsAreArray(shape));
    EXPECT_THAT(verdict.culprit_ranks(), ElementsAreArray(culprits));
    ASSERT_EQ(verdict.culprit_hosts_size(), verdict.culprit_ranks_size());
    for (size_t i = 0; i < culprits.size(); ++i)
      EXPECT_EQ(verdict.culprit_hosts(static_cast<int>(i)), absl::StrCat("node", culprits[i]));
  }
}

TEST(DistinctCheck, WhoDoesNotComeIsNamed) {
  for (const float second : {1, 2}) {
    std::vector<Rank> ranks = {{{Named("x", {1})}}, {{Named("x", {second})}}, {}};
    ranks[2].comes = false;
    const CrossCheckVerdict verdict = CheckAll(ranks, {0, 1, 2}, "", std::chrono::seconds(1))[1];
    EXPECT_EQ(verdict.outcome(), second == 1 ? DIFFERENT : NOT_COMPARED);
    EXPECT_EQ(verdict.reason(), "nothing from rank 2");
  }
  const CrossCheckVerdict alone =
      CheckAll({{{}, {}, 30, false}, {}}, {0, 1}, "", std::chrono::milliseconds(50))[1];
  EXPECT_EQ(alone.outcome(), NOT_COMPARED);
  EXPECT_EQ(alone.mode(), DISTINCT);
  EXPECT_EQ(alone.iteration(), 30);
  EXPECT_EQ(alone.reason(), "nothing from rank 0 (node0) within 0.05 s");
}

TEST(DistinctCheck, ATensorThatCannotBeReadIsNamed) {
  Rank damaged = {{{"x", Tensor{TensorView(nullptr, DType::kFloat32, {2}), nullptr}}, Named("y", {1})}};
  const CrossCheckVerdict verdict = Check({{{Named("x", {1}), Named("y", {1})}}, damaged}, {0, 1});
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("rank 1 (node1): x: "));
}

}  // namespace
}  // namespace ott
