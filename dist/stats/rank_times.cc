#include "ott/dist/stats/rank_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

// Which ranks are in the sample: neither neighbours nor every so many of them. The finalizer of MurmurHash3.
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

void AddToProto(const RankTimes::Entry& entry, internal::RankTimes& proto) {
  proto.add_rank(entry.rank);
  proto.add_seconds(static_cast<float>(entry.time.time.seconds));
  proto.add_standard_error(static_cast<float>(entry.time.time.standard_error));
  proto.add_degrees_of_freedom(static_cast<int32_t>(std::lround(entry.time.time.degrees_of_freedom)));
  proto.add_cpu_seconds(static_cast<float>(entry.time.cpu.cpu_seconds));
  proto.add_taken_share(static_cast<float>(entry.time.cpu.taken_share));
  proto.add_watched_seconds(static_cast<float>(entry.time.cpu.watched_seconds));
}

RankTimes::Entry EntryFromProto(const internal::RankTimes& proto, int i) {
  const SteadyTime time = {static_cast<double>(proto.seconds(i)),
                           static_cast<double>(proto.standard_error(i)),
                           static_cast<double>(proto.degrees_of_freedom(i))};
  const CpuShare cpu = {static_cast<double>(proto.cpu_seconds(i)), static_cast<double>(proto.taken_share(i)),
                        static_cast<double>(proto.watched_seconds(i))};
  return {proto.rank(i), {time, cpu}};
}

}  // namespace

RankTimes::RankTimes(const Entry& entry) : num_ranks_(1) {
  internal::RankTimes proto;
  proto.set_num_ranks(1);
  AddToProto(entry, proto);
  // Rounded as what travels is, so that it does not matter where it is merged.
  sample_.push_back(EntryFromProto(proto, 0));
}

absl::StatusOr<RankTimes> RankTimes::FromProto(const internal::RankTimes& proto) {
  RankTimes times;
  times.num_ranks_ = proto.num_ranks();
  const int size = proto.rank_size();
  const int num_sampled = static_cast<int>(std::min<int64_t>(proto.num_ranks(), kMaxSample));
  for (const int other : {proto.seconds_size(), proto.standard_error_size(), proto.degrees_of_freedom_size(),
                          proto.cpu_seconds_size(), proto.taken_share_size(), proto.watched_seconds_size()}) {
    if (other != size || num_sampled < 0 || size < num_sampled) {
      return absl::InvalidArgumentError(
          absl::StrCat("times of ", other, " and of ", size, " ranks of ", proto.num_ranks()));
    }
  }
  for (int i = 0; i < size; ++i) {
    const Entry entry = EntryFromProto(proto, i);
    const SteadyTime& time = entry.time.time;
    if (!std::isfinite(time.seconds) || !(time.standard_error >= 0) || !(time.degrees_of_freedom > 0)) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", proto.rank(i), ": ", time.seconds, " s +- ",
                                                     time.standard_error, " with ", time.degrees_of_freedom,
                                                     " degrees of freedom"));
    }
    (i < num_sampled ? times.sample_ : times.longest_).push_back(entry);
  }
  return times;
}

internal::RankTimes RankTimes::ToProto() const {
  internal::RankTimes proto;
  proto.set_num_ranks(num_ranks_);
  for (const Entry& entry : sample_) AddToProto(entry, proto);
  for (const Entry& entry : longest_) AddToProto(entry, proto);
  return proto;
}

void RankTimes::Merge(const RankTimes& other) {
  if (other.num_ranks_ == 0) return;
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
  std::vector<ProcessTime> others;
  for (const Entry& other : sample_) {
    if (other.rank != entry.rank) others.push_back(other.time);
  }
  return {entry, ExcessOver(others, entry.time)};
}

std::optional<RankTimes::Suspect> RankTimes::MostSuspicious() const {
  std::optional<Suspect> most;
  if (num_ranks_ < 2) return most;
  for (const Entry& entry : longest_.empty() ? sample_ : longest_) {
    const Suspect suspect = MakeSuspect(entry);
    if (!most || suspect.excess.PValue() < most->excess.PValue()) most = suspect;
  }
  return most;
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
  return suspect ? std::make_optional(suspect->excess.seconds) : std::nullopt;
}

}  // namespace ott
