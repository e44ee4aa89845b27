// Questions of one's own, from text.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ott/questions/saved/scenario.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

// Returns what a job has of each key of a question.
std::map<std::string, std::set<std::string>> NamesOf(const ReplayJob& job) {
  std::map<std::string, std::set<std::string>> names;
  for (const ReplayJob::Rank& rank : job.ranks) {
    names["rank"].insert(absl::StrCat(rank.rank));
    if (rank.stage >= 0) names["stage"].insert(absl::StrCat(rank.stage));
    if (rank.replica >= 0) names["replica"].insert(absl::StrCat(rank.replica));
    if (!rank.host.empty()) names["host"].insert(rank.host);
  }
  for (const ReplayJob::Operation& operation : job.operations) {
    names["operation"].insert(job.kinds[operation.kind].name);
    names["operation"].insert(job.kinds[operation.kind].operation);
  }
  return names;
}

absl::Status UnknownName(const std::string& text, const std::string& what,
                         const std::set<std::string>& known) {
  constexpr size_t kMaxNamed = 20;
  std::vector<std::string> some(known.begin(), known.end());
  const bool are_more = some.size() > kMaxNamed;
  if (are_more) some.resize(kMaxNamed);
  return absl::InvalidArgumentError(absl::StrCat("--scale ", text, ": no ", what, " here; there are ",
                                                 absl::StrJoin(some, ", "), are_more ? ", ..." : ""));
}

}  // namespace

absl::StatusOr<ScaleQuestion> ParseScaleQuestion(const ReplayJob& job, const std::string& text) {
  std::vector<std::string> parts = absl::StrSplit(text, ',');
  ScaleQuestion question;
  question.name = text;
  if (!absl::SimpleAtod(parts.back(), &question.factor) || !(question.factor >= 0) || question.factor > 1e9) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--scale ", text, ": ends with no factor; for example --scale rank=1,measurement=forward,0.5"));
  }
  parts.pop_back();
  const std::map<std::string, std::set<std::string>> names = NamesOf(job);
  std::map<std::string, std::set<std::string>> wanted;
  for (const std::string& part : parts) {
    std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.first == "measurement") pair.first = "operation";
    const auto known = names.find(pair.first);
    if (known == names.end()) {
      std::set<std::string> keys = {"measurement"};
      for (const auto& [key, unused] : names) keys.insert(key);
      return UnknownName(text, absl::StrCat("\"", pair.first, "\""), keys);
    }
    if (known->second.count(pair.second) == 0) return UnknownName(text, part, known->second);
    wanted[pair.first].insert(pair.second);
  }
  const auto fits = [&wanted](const std::string& key, const std::string& value) {
    const auto values = wanted.find(key);
    return values == wanted.end() || values->second.count(value) > 0;
  };
  question.selection = Select(job, [&](int rank, int kind) {
    const ReplayJob::Rank& of = job.ranks[rank];
    return fits("rank", absl::StrCat(of.rank)) && fits("stage", absl::StrCat(of.stage)) &&
           fits("replica", absl::StrCat(of.replica)) && fits("host", of.host) &&
           (fits("operation", job.kinds[kind].name) || fits("operation", job.kinds[kind].operation));
  });
  return question;
}

}  // namespace ott::saved
