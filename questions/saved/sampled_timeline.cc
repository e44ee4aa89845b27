#include "ott/questions/saved/sampled_timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/picture.h"
#include "ott/questions/saved/iteration_sample.pb.h"

namespace ott::saved {
namespace {

constexpr int64_t kMaxNanoseconds = int64_t{1} << 60;
constexpr size_t kNumLongest = 2;
constexpr size_t kMaxNames = 200;

// A damaged sample is as good as a missing one.
bool IsWhole(const IterationSample& sample) {
  for (const IterationBlock& block : sample.blocks()) {
    if (block.start_size() != block.name_size() || block.duration_size() != block.name_size()) return false;
    for (const int32_t name : block.name()) {
      if (name < 0 || name >= sample.names_size() || name >= sample.collective_size()) return false;
    }
    for (const auto* times : {&block.start(), &block.duration(), &block.iteration_end()}) {
      int64_t sum = 0;
      for (const int64_t time : *times) {
        if (time < 0 || time > kMaxNanoseconds || (sum += time) > kMaxNanoseconds) return false;
      }
    }
  }
  return true;
}

// Evenly spread, the first and the last among them, and the wanted ones first of all.
std::vector<int> ChooseRanks(const std::vector<int>& ranks, const std::vector<int>& wanted) {
  std::set<int> chosen;
  for (const int rank : wanted) {
    if (chosen.size() < kMaxTimelineRanks / 2 && std::binary_search(ranks.begin(), ranks.end(), rank))
      chosen.insert(rank);
  }
  for (const size_t i : EvenlySpread(ranks.size(), kMaxTimelineRanks)) {
    if (chosen.size() < kMaxTimelineRanks) chosen.insert(ranks[i]);
  }
  return {chosen.begin(), chosen.end()};
}

// Iterations of one rank: number and duration. The longest ones, and others evenly spread.
std::set<int64_t> ChooseIterations(const IterationSample& sample, int64_t* num_sampled) {
  std::vector<std::pair<int64_t, int64_t>> all;  // duration, iteration
  for (const IterationBlock& block : sample.blocks()) {
    for (int i = 0; i < block.iteration_end_size(); ++i) {
      all.emplace_back(block.iteration_end(i), block.first_iteration() + i);
    }
  }
  *num_sampled = static_cast<int64_t>(all.size());
  std::set<int64_t> chosen;
  std::vector<std::pair<int64_t, int64_t>> longest = all;
  std::sort(longest.rbegin(), longest.rend());
  for (size_t i = 0; i < std::min(kNumLongest, longest.size()); ++i) chosen.insert(longest[i].second);
  for (const size_t i : EvenlySpread(all.size(), kMaxTimelineIterations)) {
    if (chosen.size() < kMaxTimelineIterations) chosen.insert(all[i].second);
  }
  return chosen;
}

// The longest ones stay. Returns how many are left out.
int64_t Thin(size_t limit, std::vector<TimelineSpan>* spans) {
  if (spans->size() <= limit) return 0;
  const auto num_left_out = static_cast<int64_t>(spans->size() - limit);
  std::stable_sort(spans->begin(), spans->end(),
                   [](const auto& a, const auto& b) { return a.duration > b.duration; });
  spans->resize(limit);
  std::stable_sort(spans->begin(), spans->end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  return num_left_out;
}

int IndexOf(const IterationSample& sample, int32_t name, TimelineBuilder& builder) {
  return builder.IndexOf(sample.names(name), sample.collective(name), name == sample.observer());
}

void AddBlock(const IterationSample& sample, const IterationBlock& block, const std::set<int64_t>& chosen,
              TimelineBuilder& builder) {
  int64_t begin = std::clamp(block.begin(), -kMaxNanoseconds, kMaxNanoseconds);
  int64_t start = begin;
  int interval = 0;
  for (int i = 0; i < block.iteration_end_size(); ++i) {
    const int64_t number = block.first_iteration() + i;
    const int64_t end = begin + block.iteration_end(i);
    const bool is_chosen = chosen.count(number) > 0;
    std::vector<TimelineSpan> spans;
    std::vector<int64_t> running;  // ends
    const bool is_last = i + 1 == block.iteration_end_size();
    while (interval < block.name_size() && (is_last || start + block.start(interval) < end)) {
      start += block.start(interval);
      while (!running.empty() && running.back() <= start) running.pop_back();
      if (is_chosen) {
        spans.push_back({IndexOf(sample, block.name(interval), builder), static_cast<int>(running.size()),
                         start, block.duration(interval)});
      }
      running.push_back(start + block.duration(interval));
      ++interval;
    }
    if (is_chosen) builder.AddRank(number, sample.rank(), block.error_bound(), begin, end, std::move(spans));
    begin = end;
  }
}

}  // namespace

absl::StatusOr<TimelinePicture> ReadSampledTimeline(const std::string& run_dir,
                                                    const std::vector<int>& wanted) {
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  TimelineBuilder builder("iteration");
  std::set<int64_t> chosen;
  int64_t num_sampled = 0;
  for (const int rank : ChooseRanks(ranks, wanted)) {
    const absl::StatusOr<std::string> bytes = ReadFile(IterationsPath(run_dir, rank));
    IterationSample sample;
    if (!bytes.ok() || !sample.ParseFromString(*bytes) || sample.rank() != rank || !IsWhole(sample)) continue;
    if (chosen.empty()) chosen = ChooseIterations(sample, &num_sampled);
    // Known also where it did not run in these iterations: other pictures ask for it.
    if (sample.observer() >= 0 && sample.observer() < sample.collective_size())
      IndexOf(sample, sample.observer(), builder);
    for (const IterationBlock& block : sample.blocks()) AddBlock(sample, block, chosen, builder);
  }
  TimelinePicture timeline = builder.Finish(num_sampled, static_cast<int64_t>(ranks.size()));
  if (timeline.iterations().empty())
    return absl::NotFoundError(absl::StrCat(run_dir, ": no iterations were sampled"));
  return timeline;
}

int TimelineBuilder::IndexOf(const std::string& name, bool collective, bool observer) {
  const bool is_full = index_.size() >= kMaxNames && index_.count(name) == 0;
  const std::string shown = is_full ? "(others)" : name;
  const auto [known, is_new] = index_.try_emplace(shown, picture_.names_size());
  if (is_new) {
    TimelinePicture::Name& added = *picture_.add_names();
    added.set_name(shown);
    added.set_collective(collective);
    added.set_observer(observer);
  }
  return known->second;
}

void TimelineBuilder::AddRank(int64_t iteration, int rank, int64_t error_bound, int64_t begin, int64_t end,
                              std::vector<TimelineSpan> spans, int64_t num_left_out) {
  Iteration& of = iterations_[iteration];
  of.error_bound = std::max(of.error_bound, error_bound);
  of.num_left_out += num_left_out;
  Rank& added = of.ranks.emplace_back();
  added.picture.set_rank(rank);
  added.picture.set_begin(begin);
  added.picture.set_end(end);
  added.spans = std::move(spans);
}

TimelinePicture TimelineBuilder::Finish(int64_t num_sampled, int64_t num_ranks) {
  size_t num_ranks_in_all = 0;
  for (const auto& [number, iteration] : iterations_) num_ranks_in_all += iteration.ranks.size();
  const size_t limit = kMaxTimelineSpans / std::max<size_t>(1, num_ranks_in_all);
  for (auto& [number, iteration] : iterations_) {
    TimelinePicture::Iteration& drawn = *picture_.add_iterations();
    drawn.set_iteration(number);
    drawn.set_error_bound(iteration.error_bound);
    drawn.set_num_left_out(iteration.num_left_out);
    int64_t begin = INT64_MAX;
    for (const Rank& rank : iteration.ranks) begin = std::min<int64_t>(begin, rank.picture.begin());
    for (Rank& rank : iteration.ranks) {
      drawn.set_num_left_out(drawn.num_left_out() + Thin(limit, &rank.spans));
      TimelinePicture::Rank& of_rank = *drawn.add_ranks() = std::move(rank.picture);
      of_rank.set_begin(of_rank.begin() - begin);
      of_rank.set_end(of_rank.end() - begin);
      for (const TimelineSpan& span : rank.spans) {
        of_rank.add_name(span.name);
        of_rank.add_depth(span.depth);
        of_rank.add_start(span.start - begin);
        of_rank.add_duration(span.duration);
      }
    }
  }
  picture_.set_num_sampled(num_sampled);
  picture_.set_num_ranks(num_ranks);
  return std::move(picture_);
}

std::vector<size_t> EvenlySpread(size_t count, size_t limit) {
  const size_t num_chosen = std::min(count, limit);
  std::vector<size_t> chosen;
  for (size_t i = 0; i < num_chosen; ++i) {
    chosen.push_back(num_chosen == 1 ? 0 : i * (count - 1) / (num_chosen - 1));
  }
  return chosen;
}

void AddTimeline(const TimelinePicture& timeline, Document* document) {
  document->pictures["timeline"] = DrawMessage(timeline);
  int64_t num_left_out = 0;
  int num_ranks = 0;
  for (const TimelinePicture::Iteration& iteration : timeline.iterations()) {
    num_ranks = std::max(num_ranks, iteration.ranks_size());
    num_left_out += iteration.num_left_out();
  }
  if (timeline.num_sampled() > timeline.iterations_size()) {
    document->thinned.push_back(absl::StrFormat("the timeline shows %d of %d %ss that were kept",
                                                timeline.iterations_size(), timeline.num_sampled(),
                                                timeline.of()));
  }
  if (timeline.num_ranks() > num_ranks) {
    document->thinned.push_back(
        absl::StrFormat("the timeline shows %d of %d ranks", num_ranks, timeline.num_ranks()));
  }
  if (num_left_out > 0)
    document->thinned.push_back(absl::StrCat(num_left_out, " shorter intervals are left out of it"));
}

}  // namespace ott::saved
