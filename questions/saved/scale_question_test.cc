// Reads --scale of `ott whatif`: what it selects, and what it says of names that are not there.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/saved/replay_job.h"
#include "ott/questions/saved/small_job_for_test.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

// Returns what a rank's operations of a kind are called by a key of a question.
std::set<std::string> ValuesOf(const std::string& key, const ReplayJob::Rank& rank,
                               const ReplayJob::Kind& kind) {
  const auto number = [](int value) {
    return value < 0 ? std::set<std::string>() : std::set<std::string>{absl::StrCat(value)};
  };
  if (key == "rank") return number(rank.rank);
  if (key == "stage") return number(rank.stage);
  if (key == "replica") return number(rank.replica);
  if (key == "host") return rank.host.empty() ? std::set<std::string>() : std::set<std::string>{rank.host};
  if (key == "operation" || key == "measurement") return {kind.name, kind.operation};
  return {};
}

TEST(ParseScaleQuestion, SelectsWhatFitsOneValueOfEachKey) {
  std::mt19937_64 random(13);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<uint64_t>(end)); };
  const auto any = [&](const std::vector<const char*>& of) { return std::string(of[random() % of.size()]); };
  for (int trial = 0; trial < 400; ++trial) {
    ReplayJob job = MakeJob(RandomTimes(below(10) == 0 ? 25 : 1 + below(4), 2, 0.1, random));
    const bool has_stages = below(2) == 0, has_replicas = below(2) == 0, has_hosts = below(2) == 0;
    for (ReplayJob::Rank& rank : job.ranks) {
      if (has_stages) rank.stage = below(3);
      if (has_replicas) rank.replica = below(3);
      if (has_hosts) rank.host = any({"", "a=b", "b"});
    }
    job.kinds[kSave].operation = any({"save", "compute"});
    job.kinds.push_back({"unused", "unused", false});
    std::string text, problem;
    std::map<std::string, std::set<std::string>> wanted;
    for (int i = below(4); i > 0; --i) {
      const std::string key =
          any({"rank", "rank", "stage", "replica", "host", "operation", "measurement", "colour"});
      const std::string value = any({"0", "1", "2", "-1", "a=b", "b", "compute", "reduce", "save", "unused"});
      absl::StrAppend(&text, key, "=", value, ",");
      std::set<std::string> known, keys = {"measurement"};
      for (const ReplayJob::Operation& operation : job.operations) {
        const auto values_of = [&](const std::string& of) {
          return ValuesOf(of, job.ranks[operation.rank], job.kinds[operation.kind]);
        };
        for (const std::string& of_key : values_of(key)) known.insert(of_key);
        for (const char* const other : {"rank", "stage", "replica", "host", "operation"}) {
          if (!values_of(other).empty()) keys.insert(other);
        }
      }
      wanted[key == "measurement" ? "operation" : key].insert(value);
      if (!problem.empty() || known.count(value) > 0) continue;
      problem = known.empty() ? absl::StrCat("no \"", key, "\" here; there are ")
                              : absl::StrCat("no ", key == "measurement" ? "measurement" : key, "=", value,
                                             " here; there are ");
      const std::set<std::string>& there = known.empty() ? keys : known;
      size_t count = 0;
      for (const std::string& name : there) {
        if (count++ < 20) absl::StrAppend(&problem, count == 1 ? "" : ", ", name);
      }
      if (count > 20) problem += ", ...";
    }
    text += "0.5";
    const absl::StatusOr<ScaleQuestion> question = ParseScaleQuestion(job, text);
    ASSERT_EQ(question.ok(), problem.empty()) << text << question.status();
    if (!question.ok()) {
      EXPECT_EQ(question.status().message(), absl::StrCat("--scale ", text, ": ", problem));
      continue;
    }
    EXPECT_EQ(question->name, text);
    EXPECT_EQ(question->factor, 0.5);
    for (size_t i = 0; i < question->selection.size(); ++i) {
      const ReplayJob::Rank& rank = job.ranks[i / job.kinds.size()];
      const ReplayJob::Kind& kind = job.kinds[i % job.kinds.size()];
      bool fits = true;
      for (const auto& [key, values] : wanted) {
        const std::set<std::string> there = ValuesOf(key, rank, kind);
        fits = fits && std::any_of(there.begin(), there.end(), [&, &of = values](const std::string& value) {
                 return of.count(value) > 0;
               });
      }
      EXPECT_EQ(question->selection[i] != 0, fits) << text << " " << i;
    }
  }
}

TEST(ParseScaleQuestion, EndsWithAFactorThatIsNotNegative) {
  std::mt19937_64 random(13);
  const ReplayJob job = MakeJob(RandomTimes(2, 2, 0.1, random));
  for (const char* const text : {"rank=1", "rank=1,-1", "rank=1,nan", "rank=1,x"}) {
    const absl::Status status = ParseScaleQuestion(job, text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("ends with no factor"));
  }
}

}  // namespace
}  // namespace ott::saved
