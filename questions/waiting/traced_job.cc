#include "ott/questions/waiting/traced_job.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/kernels/collective_cost.h"
#include "ott/questions/waiting/waiting_answer.h"

namespace ott::waiting {
namespace {

using kernels::Profile;

std::string Time(int64_t nanoseconds) { return FormatSeconds(static_cast<double>(nanoseconds) * 1e-9); }

std::string NameOf(const std::string& collective, const std::string& group) {
  return group.empty() ? collective : absl::StrCat(collective, " of group ", group);
}

class JobBuilder {
 public:
  JobBuilder(const std::vector<TraceSummary>& traces, TracedJob* job)
      : traces_(traces),
        job_(*job),
        collectives_(MatchCollectives(traces)),
        clocks_(AlignClocks(traces, collectives_)) {}

  void Build() {
    job_.clocks = clocks_;
    std::map<int, size_t> num_windows;
    for (const TraceSummary& trace : traces_) {
      job_.ranks.push_back({trace.rank, trace.path, trace.split, trace.num_steps});
      windows_.push_back(num_windows[trace.rank]++);
    }
    std::map<std::string, size_t> ranks_of_group;
    for (const Collective& collective : collectives_) {
      size_t& most = ranks_of_group[GroupOf(*collective.kind)];
      most = std::max(most, collective.parts.size());
    }
    for (const Collective& collective : collectives_) {
      const size_t expected = ranks_of_group[GroupOf(*collective.kind)];
      if (expected >= 2) ++job_.num_matched;
      if (collective.parts.size() < expected) ++job_.num_incomplete;
      if (!collective.same_message) ++job_.num_unlike;
      Add(collective, expected);
    }
    for (auto& [key, sum] : sums_) FinishSum(&sum);
    std::stable_sort(job_.collectives.begin(), job_.collectives.end(),
                     [](const CollectiveSum& a, const CollectiveSum& b) {
                       return a.transfer + a.wait > b.transfer + b.wait;
                     });
    FindHoldUps();
  }

 private:
  struct Sum {
    CollectiveSum sum;
    std::map<int, int64_t> last;
  };

  int64_t OnFirstClock(size_t trace, int64_t time) const {
    return waiting::OnFirstClock(traces_[trace], clocks_[trace], time);
  }

  // Tells steps of one number in several windows apart. In the order of time.
  int64_t StepOf(const Collective& collective) {
    const auto next = static_cast<int64_t>(steps_.size());
    return steps_.try_emplace({windows_[collective.parts[0].trace], collective.step}, next).first->second;
  }

  void Add(const Collective& collective, size_t expected) {
    const Profile::CollectiveKind& kind = *collective.kind;
    Sum& sum = sums_[absl::StrCat(GroupOf(kind), "\n", kind.name, "\n", kind.in_elements, "\n",
                                  kind.out_elements, "\n", kind.dtype)];
    sum.sum.kind = kind;
    ++sum.sum.count;
    job_.tells_groups |= !kind.group.empty();
    sum.sum.num_ranks = std::max<int64_t>(sum.sum.num_ranks, static_cast<int64_t>(expected));
    if (collective.parts.size() < expected) return;
    ++sum.sum.num_complete;
    int64_t last = std::numeric_limits<int64_t>::min(), next_to_last = last, end = last;
    int last_rank = -1;
    bool is_aligned = true;
    std::vector<int> ranks;
    for (const Collective::Part& part : collective.parts) {
      const int64_t start = OnFirstClock(part.trace, part.start);
      if (start > last) last_rank = traces_[part.trace].rank;
      next_to_last = std::max(next_to_last, std::min(last, start));
      last = std::max(last, start);
      end = std::max(end, OnFirstClock(part.trace, part.end));
      is_aligned &= clocks_[part.trace].is_known;
      ranks.push_back(traces_[part.trace].rank);
    }
    // Ranks without a trace may come later still.
    const bool all_are_traced = kind.group_size <= static_cast<int>(ranks.size());
    job_.num_partly_traced += !all_are_traced;
    // Collectives of one unknown group would be taken for those of another.
    if (is_aligned && all_are_traced && ranks.size() > 1 && !kind.group.empty())
      hold_ups_.Add({kind.name, kind.group_name(), GroupOf(kind)}, StepOf(collective), ranks, last_rank,
                    next_to_last, last);
    ++sum.last[last_rank];
    sum.sum.transfer += std::max<int64_t>(0, end - last);
    int64_t waited = 0;
    for (const Collective::Part& part : collective.parts) {
      const int64_t start = OnFirstClock(part.trace, part.start);
      waited += last - start;
      sum.sum.longest_wait = std::max(sum.sum.longest_wait, last - start);
    }
    sum.sum.wait += waited / static_cast<int64_t>(collective.parts.size());
  }

  void FinishSum(Sum* sum) {
    for (const auto& [rank, count] : sum->last) {
      if (count > sum->sum.num_last) sum->sum.last_rank = rank;
      sum->sum.num_last = std::max(sum->sum.num_last, count);
    }
    const OpCost cost = kernels::CostOfCollective(sum->sum.kind);
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    sum->sum.message_bytes = cost.message_bytes.value_or(kUnknown);
    sum->sum.bus_bytes = cost.bus_bytes.value_or(kUnknown);
    job_.collectives.push_back(sum->sum);
  }

  void FindHoldUps() {
    struct Watched {
      int64_t steps = 0;
      int64_t total = 0;
      int64_t work = 0;
    };
    std::map<int, Watched> watched;  // by rank, in all of its windows
    HoldUpOptions options;
    int64_t steps = 0;
    int64_t work = 0;
    for (size_t trace = 0; trace < traces_.size(); ++trace) {
      if (!clocks_[trace].is_known) continue;
      const TimeSplit& split = job_.ranks[trace].split;
      Watched& of_rank = watched[traces_[trace].rank];
      of_rank.steps += traces_[trace].num_steps;
      of_rank.total += split.total;
      of_rank.work += split.total - split.exposed_communication;
      steps = std::max(steps, of_rank.steps);
      options.watched_seconds = std::max(options.watched_seconds, 1e-9 * static_cast<double>(of_rank.total));
      work = std::max(work, of_rank.work);
      options.clock_error_seconds =
          std::max(options.clock_error_seconds, 1e-9 * static_cast<double>(clocks_[trace].error_bound));
    }
    job_.has_steps = options.has_steps = steps > 0;
    const auto parts = static_cast<double>(std::max<int64_t>(1, steps));
    options.step_seconds = options.watched_seconds / parts;
    options.work_seconds = 1e-9 * static_cast<double>(work) / parts;
    job_.hold_ups = hold_ups_.Find(options);
  }

  const std::vector<TraceSummary>& traces_;
  TracedJob& job_;
  const std::vector<Collective> collectives_;
  const std::vector<ClockOffset> clocks_;
  std::vector<size_t> windows_;  // by trace: of its rank, from 0
  std::map<std::pair<size_t, int64_t>, int64_t> steps_;
  std::map<std::string, Sum> sums_;
  HoldUpFinder hold_ups_;
};

std::string Share(int64_t part, int64_t whole) {
  return whole <= 0
             ? "-"
             : absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Bytes(double bytes) {
  if (std::isnan(bytes)) return "na";
  return bytes < 1e6 ? absl::StrFormat("%.4g kB", bytes * 1e-3) : absl::StrFormat("%.4g MB", bytes * 1e-6);
}

std::string Rate(double bytes, int64_t count, int64_t nanoseconds) {
  if (std::isnan(bytes) || nanoseconds <= 0) return "na";
  return absl::StrFormat("%.4g", bytes * static_cast<double>(count) / static_cast<double>(nanoseconds));
}

}  // namespace

TracedJob DescribeJob(const std::vector<TraceSummary>& traces) {
  TracedJob job;
  JobBuilder(traces, &job).Build();
  return job;
}

TracedJob DescribeJob(const std::vector<RankProfile>& traces) {
  std::vector<TraceSummary> summaries;
  for (const RankProfile& trace : traces) summaries.push_back(SummarizeTrace(trace));
  return DescribeJob(summaries);
}

std::map<int, TimeSplit> SplitsByRank(const TracedJob& job) {
  std::map<int, TimeSplit> splits;
  for (const TracedJob::Rank& rank : job.ranks) splits[rank.rank] += rank.split;
  return splits;
}

std::string FormatSplits(const TracedJob& job) {
  TextTable table({"rank", "time", "compute", "exposed comm", "overlapped comm", "exposed copies", "idle",
                   "host-bound", "in collective", "launch", "queued"});
  TimeSplit all;
  const std::map<int, TimeSplit> splits = SplitsByRank(job);
  const auto add = [&table](const std::string& name, const TimeSplit& split) {
    std::vector<std::string> row = {name, Time(split.total)};
    for (const int64_t part :
         {split.compute, split.exposed_communication, split.communication - split.exposed_communication,
          split.exposed_copies, split.idle, split.idle_host, split.idle_collective, split.idle_launch,
          split.idle_queued}) {
      row.push_back(Share(part, split.total));
    }
    table.AddRow(std::move(row));
  };
  for (const auto& [rank, split] : splits) {
    add(absl::StrCat(rank), split);
    all += split;
  }
  if (splits.size() > 1) add("all", all);
  std::string text = table.ToString();
  if (all.of_host)
    absl::StrAppend(&text, "of ranks without device activity: operators and collectives of the host\n");
  if (all.num_left_out > 0) {
    absl::StrAppend(&text, all.num_left_out,
                    " kernels and copies do not count, as the traces lack the calls that launched them\n");
  }
  return text;
}

std::string SplitsToJson(const TracedJob& job) {
  std::string text;
  for (const auto& [rank, split] : SplitsByRank(job)) {
    const std::pair<const char*, int64_t> figures[] = {
        {"computation_time", split.compute},
        {"exposed_comm_time", split.exposed_communication},
        {"exposed_memcpy_time", split.exposed_copies},
        {"busy_time", split.busy},
        {"idle_time", split.idle},
        {"total_time", split.total},
        {"total_comm_time", split.communication},
        {"total_memcpy_time", split.copies},
        {"memset_time", split.memsets},
        {"idle_host_time", split.idle_host},
        {"idle_collective_time", split.idle_collective},
        {"idle_launch_time", split.idle_launch},
        {"idle_queued_time", split.idle_queued},
    };
    absl::StrAppend(&text, "{\"rank\":", rank);
    for (const auto& [name, value] : figures)
      absl::StrAppendFormat(&text, ",\"%s\":%.6f", name, static_cast<double>(value) * 1e-6);
    absl::StrAppend(&text, "}\n");
  }
  return text;
}

std::string FormatCollectives(const TracedJob& job, size_t limit) {
  if (job.collectives.empty()) return "no collectives in the traces\n";
  TextTable table({"collective", "ranks", "size", "count", "transfer", "algbw GB/s", "busbw GB/s", "wait",
                   "longest wait", "last"},
                  TextTable::LastColumn::kLeft);
  for (size_t i = 0; i < std::min(limit, job.collectives.size()); ++i) {
    const CollectiveSum& sum = job.collectives[i];
    // Sums are of those that all of their ranks have.
    const int64_t count = sum.num_complete;
    const bool has_waits = count > 0 && sum.num_ranks > 1;
    table.AddRow(
        {NameOf(sum.kind.name, sum.kind.group_name()), absl::StrCat(sum.num_ranks), Bytes(sum.message_bytes),
         absl::StrCat(sum.count), count > 0 ? Time(sum.transfer / count) : "-",
         Rate(sum.message_bytes, count, sum.transfer), Rate(sum.bus_bytes, count, sum.transfer),
         has_waits ? Time(sum.wait / count) : "-", has_waits ? Time(sum.longest_wait) : "-",
         has_waits ? absl::StrCat("rank ", sum.last_rank, " (", sum.num_last, " of ", count, ")") : "-"});
  }
  std::string text = table.ToString();
  if (job.collectives.size() > limit)
    absl::StrAppend(&text, "and ", job.collectives.size() - limit, " more\n");
  if (job.num_incomplete > 0) {
    absl::StrAppend(&text, job.num_incomplete,
                    " collectives are missing on a traced rank of their group, and count for nobody\n");
  }
  if (job.num_unlike > 0)
    absl::StrAppend(&text, job.num_unlike, " collectives have another size or type on some rank\n");
  return text;
}

namespace {

bool IsOfOneRank(const TracedJob& job) {
  return std::all_of(job.ranks.begin(), job.ranks.end(),
                     [&](const TracedJob::Rank& rank) { return rank.rank == job.ranks[0].rank; });
}

bool AllShareCollectives(const TracedJob& job) {
  return std::all_of(job.clocks.begin(), job.clocks.end(),
                     [](const ClockOffset& clock) { return clock.is_known; });
}

// That nobody is waited for, or why it cannot be told.
std::string FormatNoHoldUp(const TracedJob& job) {
  const TracedHoldUps& hold_ups = job.hold_ups;
  if (!AllShareCollectives(job))
    return "cannot tell who waits for whom: not all traced ranks have collectives in common";
  if (job.num_partly_traced > 0)
    return "cannot tell who waits for whom: ranks that come to the same collectives are not traced";
  if (hold_ups.most_steps < kMinStepsOfHoldUp) {
    return job.has_steps ? absl::StrCat("cannot tell who waits for whom: all ranks have collectives in ",
                                        hold_ups.most_steps, " steps, and ", kMinStepsOfHoldUp,
                                        " are needed to tell a slow rank from uneven work; trace more steps")
                         : absl::StrCat("cannot tell who waits for whom: no collective came more than ",
                                        hold_ups.most_intervals, " times, and ", 2 * kPartsOfTrace,
                                        " are needed in traces without steps; trace more of them");
  }
  if (!hold_ups.CanTell()) {
    return absl::StrFormat(
        "cannot tell who waits for whom: only a rank that costs %.0f%% %s would have been found, by what "
        "they vary and the clocks are off; trace more steps",
        hold_ups.detectable_share * 100, job.has_steps ? "of a step" : "of the trace");
  }
  return absl::StrFormat(
      "no rank holds the others up; one that costs %.1f%% %s would have been found in four of five traces",
      hold_ups.detectable_share * 100, job.has_steps ? "of a step" : "of the trace");
}

}  // namespace

std::vector<std::string> HoldUpLines(const TracedJob& job) {
  if (IsOfOneRank(job)) return {"cannot tell who waits for whom from the trace of one rank"};
  if (job.num_matched == 0) {
    return {
        "cannot tell who waits for whom: no collective of one rank was found on another (are the traces of "
        "the same steps, and have they process groups?)"};
  }
  if (!job.tells_groups) {
    return {
        "cannot tell who waits for whom: the traces do not tell which ranks a collective is of (they have "
        "several process groups on CPUs, or PyTorch has no Kineto)"};
  }
  std::vector<std::string> lines;
  const char* step = job.has_steps ? "a step" : "in the trace";
  for (const TracedHoldUp& hold_up : job.hold_ups.found) {
    lines.push_back(absl::StrFormat("all wait for rank %d at \"%s\": %s %s, %.1f%% of it", hold_up.rank,
                                    EscapeControlCharacters(NameOf(hold_up.collective, hold_up.group)),
                                    FormatSeconds(hold_up.seconds_per_step), step,
                                    hold_up.share_of_step * 100));
  }
  int64_t bound = 0;
  int64_t num_unknown = 0;
  for (const ClockOffset& clock : job.clocks) {
    bound = std::max(bound, clock.error_bound);
    if (!clock.is_known) ++num_unknown;
  }
  if (lines.empty()) lines = {FormatNoHoldUp(job)};
  lines.push_back(absl::StrCat("by ", job.num_matched, " collectives; clocks are at most ", Time(bound),
                               " off in nine of ten"));
  if (num_unknown > 0)
    lines.push_back(absl::StrCat(num_unknown, " ranks share no collective with the others and are left out"));
  return lines;
}

std::string FormatHoldUps(const TracedJob& job) { return absl::StrJoin(HoldUpLines(job), "\n") + "\n"; }

Answer AnswerHoldUps(const TracedJob& job) {
  Answer answer = MakeAnswer(kQuestion);
  if (!job.hold_ups.found.empty()) {
    answer.set_finding(Answer::BAD);
  } else if (job.hold_ups.CanTell() && AllShareCollectives(job) && job.num_partly_traced == 0) {
    answer.set_finding(Answer::GOOD);
  } else if (!IsOfOneRank(job)) {
    answer.set_finding(Answer::CANNOT_TELL);
  }
  AddSentences(HoldUpLines(job), &answer);
  answer.set_how_sure(absl::StrCat(job.hold_ups.most_steps, job.has_steps ? " steps" : " parts of the trace",
                                   ", and up to ", job.hold_ups.most_intervals,
                                   " moments in them to which all traced ranks came"));
  answer.add_pictures("arrivals");
  return answer;
}

}  // namespace ott::waiting
