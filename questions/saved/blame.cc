#include "questions/saved/blame.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/policy.h"

namespace ott::saved {
namespace {

class Judge {
 public:
  Judge(const NamedJob& named, const std::vector<JobPart>& ranks, const std::vector<JobPart>& stages,
        WhatIfAnswer& answer)
      : named_(named),
        job_(named.job),
        replay_(named.replay),
        ranks_(ranks),
        stages_(stages),
        answer_(answer) {}

  void SetVerdict() {
    if (answer_.replay_error() > kMaxReplayError || !std::isfinite(answer_.replay_error())) {
      answer_.set_verdict(WHAT_IF_CANNOT_TELL);
      answer_.set_conclusion(
          absl::StrFormat("cannot tell: a replay of what was measured is %.1f %% off (limit %.0f %%), so "
                          "ranks waited for more than the operations that are known",
                          100 * answer_.replay_error(), 100 * kMaxReplayError));
      return;
    }
    if (job_.ranks.size() == 1) {
      answer_.set_verdict(WHAT_IF_CANNOT_TELL);
      answer_.set_conclusion("cannot tell: one rank has no others to be like");
      return;
    }
    if (!job_.knows_who_waits) {
      answer_.set_verdict(WHAT_IF_CANNOT_TELL);
      answer_.set_conclusion(
          "cannot tell: no measurement is known in which ranks wait for each other: none is named as "
          "collective, or it does not tell for whom, as messages of a pipeline and waits of devices do not");
      return;
    }
    if (!job_.unmatched.empty()) {
      answer_.set_verdict(WHAT_IF_CANNOT_TELL);
      answer_.set_conclusion(absl::StrCat("cannot tell: ranks come to \"", job_.unmatched,
                                          "\" different numbers of times, so that it is not known which "
                                          "belong together; measure what goes from one "
                                          "rank to another under a name of its own"));
      return;
    }
    const bool compares_ranks = named_.compares_ranks();
    if (compares_ranks && BlameRanksThatDoTheSame()) return;
    if (answer_.slowdown() < 1 + (compares_ranks ? kMinUneven : kMinSaved)) {
      if (job_.incomplete) {
        answer_.set_verdict(WHAT_IF_CANNOT_TELL);
        answer_.set_conclusion(absl::StrCat("cannot tell: the ", job_.ranks.size(),
                                            " ranks that are there are alike, and others are missing"));
        return;
      }
      if (compares_ranks && !ExcludesLosses()) return;
      answer_.set_verdict(WHAT_IF_EVEN);
      answer_.set_conclusion(absl::StrFormat(
          "nothing to mend: %sif all ranks were alike %s would take %s instead of %s",
          answer_.has_not_excluded()
              ? absl::StrFormat("mending any one rank saves less than %.1f %% (95 %%); ",
                                100 * answer_.not_excluded())
              : "",
          named_.AStep(), FormatSeconds(answer_.ideal_seconds()), FormatSeconds(answer_.replayed_seconds())));
      return;
    }
    if ((!compares_ranks && BlameRanks()) || BlameLastStage()) return;
    answer_.set_verdict(WHAT_IF_UNEVEN);
    std::string most;
    if (compares_ranks) {
      const std::string rank = FindNotExcluded();
      most = absl::StrFormat(", and mending %s saves less than %.1f %% (95 %%)", rank,
                             100 * answer_.not_excluded());
    }
    answer_.set_conclusion(
        absl::StrFormat("work is uneven: %s takes %.2f times what it would if all ranks were alike%s",
                        named_.AStep(), answer_.slowdown(), most));
  }

  std::vector<size_t> TakeBlamed() { return std::move(blamed_); }

 private:
  // Sets what mending any one rank may save, or one in each half of the run, and returns whom.
  std::string FindNotExcluded() {
    std::vector<JobPart> parts = ranks_;
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].selection = Select(job_, [&](int rank, int) { return rank == static_cast<int>(i); });
    }
    replay_.FindSavings(parts, false);
    parts.push_back(WorstOfHalves(parts));
    const auto most = std::max_element(parts.begin(), parts.end(), [](const JobPart& a, const JobPart& b) {
      return a.saving.high < b.saving.high;
    });
    // CPU time that was taken from the other ranks alone makes them longer, and hides as much of an excess.
    // So does what counts as waiting and may be work.
    const double hidden = answer_.replayed_seconds() > 0
                              ? (job_.taken_difference + job_.inside_difference) / answer_.replayed_seconds()
                              : 0;
    answer_.set_not_excluded(std::clamp(most->saving.high + hidden, 0.001, 1.0));
    return most->name;
  }

  // Returns the rank that saves most in the first half of the run, mended in that, and the one that does so
  // in the second.
  JobPart WorstOfHalves(const std::vector<JobPart>& ranks) const {
    const auto worst_in = [&](size_t begin, size_t end) {
      const auto sum = [&](const JobPart& rank) {
        return std::accumulate(rank.mended.begin() + static_cast<int64_t>(begin),
                               rank.mended.begin() + static_cast<int64_t>(end), 0.0);
      };
      return *std::min_element(ranks.begin(), ranks.end(),
                               [&](const JobPart& a, const JobPart& b) { return sum(a) < sum(b); });
    };
    const size_t middle = ranks[0].mended.size() / 2;
    JobPart halves = worst_in(0, middle);
    const JobPart second = worst_in(middle, ranks[0].mended.size());
    if (second.name != halves.name) absl::StrAppend(&halves.name, " and then ", second.name);
    std::copy(second.mended.begin() + static_cast<int64_t>(middle), second.mended.end(),
              halves.mended.begin() + static_cast<int64_t>(middle));
    halves.saving = replay_.SavingOf(halves.mended);
    return halves;
  }

  // Returns true if it is sure that mending no rank saves much; else says that it is not.
  bool ExcludesLosses() {
    const std::string most = FindNotExcluded();
    if (answer_.not_excluded() < kMaxNotExcluded) return true;
    answer_.set_verdict(WHAT_IF_CANNOT_TELL);
    answer_.set_conclusion(absl::StrFormat(
        "cannot tell: no rank surely costs anything, but that mending %s saves up to %.0f %% is not excluded",
        most, 100 * answer_.not_excluded()));
    return false;
  }

  // A rank whose repair saves less may be like the others: of two that are, each takes more or less.
  double LeastSavedByBlamed() const {
    if (job_.work_spread <= 0 || answer_.replayed_seconds() <= 0) return kMinSaved;
    const double level = kBlameError / static_cast<double>(ranks_.size());
    const double by_chance = job_.work_slowdown + StudentTQuantile(1 - level, kSpreadDegreesOfFreedom) *
                                                      std::sqrt(2) * job_.work_spread;
    return std::max(kMinSaved, by_chance / answer_.replayed_seconds());
  }

  // Ranks that others do like work with; a stage's only rank may do more by design. The worst first: in a
  // pipeline by what they take longer than those others.
  std::vector<size_t> WorstOfThoseThatDoTheSame() const {
    std::vector<size_t> worst = WorstFirst(ranks_);
    if (named_.stages.size() < 2) return worst;
    std::map<int, int> size_of_stage;
    for (const ReplayJob::Rank& rank : job_.ranks) ++size_of_stage[rank.stage];
    worst.erase(std::remove_if(worst.begin(), worst.end(),
                               [&](size_t rank) { return size_of_stage[job_.ranks[rank].stage] < 2; }),
                worst.end());
    replay_.SortByExcess(worst);
    return worst;
  }

  // Blames ranks of the worst half that are surely slow: the fewest of them that bring most of what all
  // bring.
  bool BlameRanksThatDoTheSame() {
    std::vector<size_t> worst = WorstOfThoseThatDoTheSame();
    if (worst.size() < 2) return false;
    worst.resize(std::min(std::max<size_t>(worst.size() / 2, 1), kMaxBlamed));
    const double least_excess =
        kMinSaved / 2 * Sum(replay_.measured()) / static_cast<double>(replay_.measured().size());
    worst.erase(
        std::remove_if(worst.begin(), worst.end(),
                       [&](size_t rank) { return replay_.scenarios().SureExcess(rank) < least_excess; }),
        worst.end());
    if (worst.empty()) return false;
    std::vector<JobPart> sets;
    for (size_t count = 1; count <= worst.size(); ++count) {
      const std::vector<size_t> members(worst.begin(), worst.begin() + static_cast<int64_t>(count));
      sets.push_back({named_.NameOf(members), Select(job_, [&](int rank, int) {
                        return std::find(members.begin(), members.end(), static_cast<size_t>(rank)) !=
                               members.end();
                      })});
    }
    replay_.FindSavings(sets);
    double best = 0;
    for (const JobPart& set : sets) best = std::max(best, set.saving.share);
    if (best <= 0) return false;
    size_t count = 0;
    while (sets[count].saving.share < kShareOfBest * best) ++count;
    // A rank that was late in one event, say, does not surely add to what mending the others saves.
    while (count > 0 && replay_.SavingBeyond(sets[count - 1], sets[count]).low <= 0) --count;
    if (sets[count].saving.share < LeastSavedByBlamed() || sets[count].saving.low <= 0) return false;
    blamed_.assign(worst.begin(), worst.begin() + static_cast<int64_t>(count) + 1);
    std::sort(blamed_.begin(), blamed_.end());
    answer_.set_verdict(WHAT_IF_RANKS);
    for (const size_t rank : blamed_) answer_.add_blamed_ranks(job_.ranks[rank].rank);
    answer_.set_conclusion(absl::StrFormat("%s: like the others, %s would take %.0f %% less",
                                           named_.NameOf(blamed_), named_.AStep(),
                                           100 * sets[count].saving.share));
    return true;
  }

  bool BlameRanks() {
    if (!answer_.has_worst_ranks_share() || answer_.worst_ranks_share() < kMinShareOfBlamed) return false;
    // If all ranks of the last stage are among them, it is the stage.
    const auto is_last_but_not_worst = [this](const ReplayJob::Rank& rank) {
      return rank.stage == *named_.stages.rbegin() &&
             std::count(answer_.worst_ranks().begin(), answer_.worst_ranks().end(), rank.rank) == 0;
    };
    if (named_.stages.size() > 1 &&
        std::none_of(job_.ranks.begin(), job_.ranks.end(), is_last_but_not_worst)) {
      return false;
    }
    answer_.set_verdict(WHAT_IF_RANKS);
    for (const int rank : answer_.worst_ranks()) answer_.add_blamed_ranks(rank);
    answer_.set_conclusion(absl::StrFormat(
        "rank%s %s: %.0f %% of what all repairs would bring", answer_.worst_ranks_size() > 1 ? "s" : "",
        absl::StrJoin(answer_.worst_ranks(), ", "), 100 * answer_.worst_ranks_share()));
    return true;
  }

  // Returns true if the last stage has several ranks, and mending one of them may save as much as mending
  // all.
  bool IsOneRankOfLastStage() const {
    std::vector<size_t> members;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (job_.ranks[i].stage == *named_.stages.rbegin()) members.push_back(i);
    }
    return members.size() > 1 && std::any_of(members.begin(), members.end(), [this](size_t member) {
             return replay_.SavingBeyond(ranks_[member], stages_.back()).low <= 0;
           });
  }

  bool BlameLastStage() {
    if (answer_.last_stage_share() < kMinShareOfBlamed) return false;
    // If work is uneven anyway, the last stage must surely take longer.
    const Saving& saving = stages_.back().saving;
    if (named_.compares_ranks() && (saving.share < kMinSaved || saving.low <= 0 || IsOneRankOfLastStage())) {
      return false;
    }
    answer_.set_verdict(WHAT_IF_LAST_STAGE);
    answer_.set_conclusion(absl::StrFormat(
        "the last stage, %d, has more work than the others: %.0f %% of what all repairs would bring",
        *named_.stages.rbegin(), 100 * answer_.last_stage_share()));
    return true;
  }

  const NamedJob& named_;
  const ReplayJob& job_;
  const PartReplayer& replay_;
  const std::vector<JobPart>& ranks_;
  const std::vector<JobPart>& stages_;
  WhatIfAnswer& answer_;
  std::vector<size_t> blamed_;
};

}  // namespace

std::vector<size_t> WorstFirst(const std::vector<JobPart>& ranks) {
  std::vector<size_t> order = Indices(ranks.size());
  std::stable_sort(order.begin(), order.end(),
                   [&ranks](size_t a, size_t b) { return ranks[a].slowdown > ranks[b].slowdown; });
  return order;
}

std::vector<size_t> Blame(const NamedJob& job, const std::vector<JobPart>& ranks,
                          const std::vector<JobPart>& stages, WhatIfAnswer& answer) {
  Judge judge(job, ranks, stages, answer);
  judge.SetVerdict();
  return judge.TakeBlamed();
}

}  // namespace ott::saved
