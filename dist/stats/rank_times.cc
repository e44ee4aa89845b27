#include "ott/dist/stats/rank_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/statistics/location.h"

namespace ott {
namespace {

// Orders ranks to choose the sample: neither neighbours nor every so many of them. The finalizer of
// MurmurHash3.
uint32_t SampleOrder(int rank) {
  auto hash = static_cast<uint32_t>(rank) + 0x9e3779b9u;
  hash = (hash ^ (hash >> 16)) * 0x85ebca6bu;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35u;
  return hash ^ (hash >> 16);
}

bool IsEarlier(const RankTimes::Entry& a, const RankTimes::Entry& b) {
  return SampleOrder(a.rank) < SampleOrder(b.rank);
}

bool IsLonger(const RankTimes::Entry& a, const RankTimes::Entry& b) {
  const double difference = a.time.time.seconds - b.time.time.seconds;
  return difference != 0 ? difference > 0 : a.rank < b.rank;
}

void SetTime(const SteadyTime& time, internal::RankTime& proto) {
  proto.set_seconds(static_cast<float>(time.seconds));
  proto.set_standard_error(static_cast<float>(time.standard_error));
  proto.set_degrees_of_freedom(static_cast<int32_t>(std::lround(time.degrees_of_freedom)));
  proto.set_count(time.count);
  proto.set_block_iterations(time.block_iterations);
  proto.mutable_block()->Add(time.blocks.begin(), time.blocks.begin() + time.num_blocks);
}

SteadyTime TimeOf(const internal::RankTime& proto) {
  SteadyTime time;
  time.seconds = static_cast<double>(proto.seconds());
  time.standard_error = static_cast<double>(proto.standard_error());
  time.degrees_of_freedom = static_cast<double>(proto.degrees_of_freedom());
  time.count = proto.count();
  time.block_iterations = proto.block_iterations();
  time.num_blocks = std::min(proto.block_size(), SteadyTime::kMaxBlocks);
  std::copy_n(proto.block().begin(), time.num_blocks, time.blocks.begin());
  return time;
}

bool IsTime(const SteadyTime& time) {
  const bool has_blocks = time.num_blocks == 0 || (time.block_iterations > 0 &&
                                                   time.count >= time.block_iterations * time.num_blocks);
  return std::isfinite(time.seconds) && time.standard_error >= 0 && time.degrees_of_freedom > 0 &&
         has_blocks &&
         std::all_of(time.blocks.begin(), time.blocks.end(), [](float x) { return std::isfinite(x); });
}

internal::RankTime EntryToProto(const RankTimes::Entry& entry) {
  internal::RankTime proto;
  proto.set_rank(entry.rank);
  SetTime(entry.time.time, proto);
  proto.set_cpu_seconds(static_cast<float>(entry.time.cpu.cpu_seconds));
  proto.set_taken_share(static_cast<float>(entry.time.cpu.taken_share));
  proto.set_watched_seconds(static_cast<float>(entry.time.cpu.watched_seconds));
  proto.set_first_iteration(entry.first_iteration);
  proto.set_num_iterations(entry.num_iterations);
  proto.set_mean_seconds(static_cast<float>(entry.mean_seconds));
  if (entry.with_taken) SetTime(*entry.with_taken, *proto.mutable_with_taken());
  return proto;
}

RankTimes::Entry EntryFromProto(const internal::RankTime& proto) {
  RankTimes::Entry entry;
  entry.rank = proto.rank();
  entry.time.time = TimeOf(proto);
  entry.time.cpu = {static_cast<double>(proto.cpu_seconds()), static_cast<double>(proto.taken_share()),
                    static_cast<double>(proto.watched_seconds())};
  entry.first_iteration = proto.first_iteration();
  entry.num_iterations = proto.num_iterations();
  entry.mean_seconds = static_cast<double>(proto.mean_seconds());
  if (proto.has_with_taken()) entry.with_taken = TimeOf(proto.with_taken());
  return entry;
}

}  // namespace

int64_t RankTimes::Entry::IterationAt(double share) const {
  return first_iteration + std::llround(share * static_cast<double>(num_iterations));
}

// Rounded as what travels is, so that it does not matter where it is merged.
RankTimes::RankTimes(const Entry& entry) : num_ranks_(1), sample_({EntryFromProto(EntryToProto(entry))}) {}

absl::StatusOr<RankTimes> RankTimes::FromProto(const internal::RankTimes& proto) {
  RankTimes times;
  times.num_ranks_ = proto.num_ranks();
  const int num_sampled = static_cast<int>(std::min<int64_t>(proto.num_ranks(), kMaxSample));
  if (num_sampled < 0 || proto.times_size() < num_sampled) {
    return absl::InvalidArgumentError(
        absl::StrCat("times of ", proto.times_size(), " ranks of ", proto.num_ranks()));
  }
  for (int i = 0; i < proto.times_size(); ++i) {
    const Entry entry = EntryFromProto(proto.times(i));
    const SteadyTime& time = entry.time.time;
    if (!IsTime(time) || (entry.with_taken && !IsTime(*entry.with_taken))) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", entry.rank, ": ", time.seconds, " s +- ", time.standard_error, " with ",
                       time.degrees_of_freedom, " degrees of freedom, and ", time.num_blocks, " blocks of ",
                       time.block_iterations, " of ", time.count, " iterations"));
    }
    (i < num_sampled ? times.sample_ : times.longest_).push_back(entry);
  }
  return times;
}

internal::RankTimes RankTimes::ToProto() const {
  internal::RankTimes proto;
  proto.set_num_ranks(num_ranks_);
  for (const Entry& entry : sample_) *proto.add_times() = EntryToProto(entry);
  for (const Entry& entry : longest_) *proto.add_times() = EntryToProto(entry);
  return proto;
}

void RankTimes::Merge(const RankTimes& other) {
  num_ranks_ += other.num_ranks_;
  const bool is_beyond = static_cast<size_t>(num_ranks_) > kMaxSample;
  if (is_beyond && longest_.empty()) longest_ = sample_;
  if (is_beyond) {
    const std::vector<Entry>& theirs = other.longest_.empty() ? other.sample_ : other.longest_;
    longest_.insert(longest_.end(), theirs.begin(), theirs.end());
  }
  sample_.insert(sample_.end(), other.sample_.begin(), other.sample_.end());
  Bound();
}

void RankTimes::Bound() {
  std::sort(sample_.begin(), sample_.end(), IsEarlier);
  if (sample_.size() > kMaxSample) sample_.resize(kMaxSample);
  std::sort(longest_.begin(), longest_.end(), IsLonger);
  if (longest_.size() > kMaxLongest) longest_.resize(kMaxLongest);
}

RankTimes::Suspect RankTimes::MakeSuspect(const Entry& entry) const {
  const auto with_taken = [](const Entry& of) {
    return ProcessTime{of.with_taken.value_or(of.time.time), of.time.cpu};
  };
  std::vector<ProcessTime> others;
  std::vector<ProcessTime> others_with_taken;
  std::vector<double> means;
  for (const Entry& other : sample_) {
    if (other.rank == entry.rank) continue;
    others.push_back(other.time);
    others_with_taken.push_back(with_taken(other));
    means.push_back(other.mean_seconds);
  }
  return {entry, ExcessOver(others, entry.time), ExcessOver(others_with_taken, with_taken(entry)),
          entry.mean_seconds - Median(means)};
}

std::vector<RankTimes::Suspect> RankTimes::Suspects() const {
  std::vector<Suspect> suspects;
  if (num_ranks_ < 2) return suspects;
  for (const Entry& entry : longest_.empty() ? sample_ : longest_) suspects.push_back(MakeSuspect(entry));
  return suspects;
}

std::optional<RankTimes::Suspect> RankTimes::Of(int rank) const {
  if (num_ranks_ < 2) return std::nullopt;
  for (const std::vector<Entry>* entries : {&sample_, &longest_}) {
    for (const Entry& entry : *entries) {
      if (entry.rank == rank) return MakeSuspect(entry);
    }
  }
  return std::nullopt;
}

std::optional<double> RankTimes::ExcessOf(int rank) const {
  if (num_ranks_ == 1 && sample_.front().rank == rank) return sample_.front().time.time.seconds;
  const std::optional<Suspect> suspect = Of(rank);
  return suspect ? std::make_optional(suspect->excess.seconds_of_run) : std::nullopt;
}

double RankTimes::MostExcessOfOthers() const {
  return longest_.empty() ? 0 : std::max(0.0, MakeSuspect(longest_.back()).excess.seconds_of_run);
}

}  // namespace ott
