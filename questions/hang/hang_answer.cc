#include "ott/questions/hang/hang_answer.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::hang {
namespace {

Answer::Finding FindingOfHang(const HangVerdict& verdict) {
  switch (verdict.answer()) {
    case HangVerdict::HANGING:
      return Answer::BAD;
    case HangVerdict::NOT_HANGING:
      return Answer::GOOD;
    default:
      return Answer::CANNOT_TELL;
  }
}

// Returns true if both are of one hang, whose ranks may have waited for different times.
bool IsTheSameHang(const HangVerdict& a, const HangVerdict& b) {
  return a.answer() == b.answer() &&
         std::equal(a.culprits().begin(), a.culprits().end(), b.culprits().begin(), b.culprits().end());
}

}  // namespace

Answer AnswerHang(const std::optional<HangVerdict>& now, const std::optional<HangVerdict>& earlier) {
  Answer answer = MakeAnswer(kQuestion);
  if (now) {
    answer.set_finding(FindingOfHang(*now));
    answer.add_sentences(now->verdict());
    const int num_ranks = now->ranks_size();
    const auto num_read = std::count_if(now->ranks().begin(), now->ranks().end(), [](const HangRank& rank) {
      return rank.state() != HangRank::UNKNOWN;
    });
    answer.set_how_sure(absl::StrCat("by the flight recorders of ", num_read, " of ", num_ranks,
                                     num_ranks == 1 ? " rank" : " ranks",
                                     "; a rank is blamed on proof alone"));
    SetEvidence(*now, &answer);
    *answer.mutable_ranks() = now->culprits();
    answer.add_pictures("hang");
  } else {
    answer.add_sentences("Not recorded: no rank kept a flight recorder.");
  }
  if (earlier && !(now && IsTheSameHang(*now, *earlier))) {
    answer.add_sentences(absl::StrCat("found while it stood: ", earlier->verdict()));
  }
  return answer;
}

void AddStacksOf(const std::string& run_dir, Answer* answer) {
  constexpr int kMaxRanks = 2;
  for (int i = 0; i < std::min(answer->ranks_size(), kMaxRanks); ++i) {
    std::ifstream stacks(RankDirectory(run_dir, answer->ranks(i)) + "/stacks.txt");
    if (std::string line; std::getline(stacks, line)) answer->add_sentences(EscapeControlCharacters(line));
  }
}

void AddNextOf(const std::string& run_dir, Answer* answer) {
  if (answer->finding() == Answer::BAD || answer->finding() == Answer::CANNOT_TELL) {
    AddNext({"hang", run_dir}, answer);
  }
}

}  // namespace ott::hang
