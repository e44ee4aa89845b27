#include "ott/dist/comm/clock_align.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

// A ping, or rank 0's answer to it.
struct Message {
  int64_t ping = 0;
  int64_t time_of_rank_zero = 0;
};

std::string ToBytes(const Message& message) {
  return std::string(reinterpret_cast<const char*>(&message), sizeof(message));
}

Message FromBytes(const std::string& bytes) {
  Message message;
  OTT_CHECK(bytes.size() == sizeof(message)) << bytes.size() << " bytes";
  std::memcpy(&message, bytes.data(), sizeof(message));
  return message;
}

int64_t SteadyNanoseconds() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Names the clock that CLOCK_MONOTONIC is here: the boot of the kernel, and the time namespace.
std::string SteadyClockId() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code error;
  const std::string time_namespace = std::filesystem::read_symlink("/proc/self/ns/time", error).string();
  return boot.empty() || error ? "" : boot + time_namespace;
}

}  // namespace

ClockAligner::ClockAligner(std::unique_ptr<Communicator> ranks, Clock clock, double unknown_drift)
    : ranks_(std::move(ranks)),
      clock_(clock ? clock : SteadyNanoseconds),
      unknown_drift_(unknown_drift),
      clock_id_(clock ? "" : SteadyClockId()),
      reads_clock_of_rank_zero_(ranks_->rank() == 0) {}

absl::Status ClockAligner::FindOtherClocks(Deadline deadline) {
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> ids, ranks_->AllGather(clock_id_, deadline));
  other_clocks_.emplace();
  for (int rank = 1; rank < ranks_->size(); ++rank) {
    if (ids[rank].empty() || ids[rank] != ids[0]) {
      other_clocks_->push_back(rank);
    } else if (rank == ranks_->rank()) {
      reads_clock_of_rank_zero_ = true;
    }
  }
  return absl::OkStatus();
}

std::vector<int> ClockAligner::RanksOfRound() const {
  const size_t size = other_clocks_->size();
  if (round_ == 1 || size <= kRanksPerRound) return *other_clocks_;
  std::vector<int> ranks;
  for (size_t i = 0; i < kRanksPerRound; ++i) {
    ranks.push_back((*other_clocks_)[(static_cast<size_t>(round_) * kRanksPerRound + i) % size]);
  }
  return ranks;
}

absl::Status ClockAligner::Measure(int num_pings, Deadline deadline) {
  OTT_CHECK(num_pings > 0) << num_pings;
  if (!other_clocks_) OTT_RETURN_IF_ERROR(FindOtherClocks(deadline));
  // A tag of its own for each round, so that no answer of one that was given up is taken for another's.
  ++round_;
  // Both sides try again in the same rounds, ever more seldom.
  if ((round_ & (round_ - 1)) == 0) silent_.clear();
  absl::Status status;
  for (const int rank : RanksOfRound()) {
    const int other = ranks_->rank() == 0 ? rank : 0;
    if ((ranks_->rank() != 0 && ranks_->rank() != rank) || silent_.count(other) != 0) continue;
    const absl::Status measured = other == 0 ? Ping(num_pings, deadline) : Answer(other, num_pings, deadline);
    if (absl::IsDeadlineExceeded(measured)) silent_.insert(other);
    status.Update(measured);
  }
  return status;
}

absl::Status ClockAligner::Answer(int rank, int num_pings, Deadline deadline) {
  for (int i = 0; i < num_pings; ++i) {
    OTT_ASSIGN_OR_RETURN(const std::string ping, ranks_->Receive(rank, round_, deadline));
    Message answer = FromBytes(ping);
    answer.time_of_rank_zero = clock_();
    OTT_RETURN_IF_ERROR(ranks_->Post(rank, round_, ToBytes(answer)));
  }
  return absl::OkStatus();
}

absl::Status ClockAligner::Ping(int num_pings, Deadline deadline) {
  Sample best;
  best.error = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < num_pings; ++i) {
    const int64_t sent = clock_();
    OTT_RETURN_IF_ERROR(ranks_->Post(0, round_, ToBytes({i, 0})));
    OTT_ASSIGN_OR_RETURN(const std::string bytes, ranks_->Receive(0, round_, deadline));
    const int64_t received = clock_();
    const int64_t middle = sent + (received - sent) / 2;
    const int64_t error = (received - sent + 1) / 2;
    if (error < best.error) best = {middle, FromBytes(bytes).time_of_rank_zero - middle, error};
  }
  if (!first_) first_ = best;
  last_ = best;
  return absl::OkStatus();
}

std::optional<double> ClockAligner::drift() const {
  if (ReadsClockOfRankZero()) return 0;
  if (!first_ || first_->local == last_->local) return std::nullopt;
  const auto span = static_cast<double>(last_->local - first_->local);
  if (static_cast<double>(first_->error + last_->error) > unknown_drift_ * span) return std::nullopt;
  return static_cast<double>(last_->offset - first_->offset) / span;
}

absl::StatusOr<AlignedTime> ClockAligner::ToRankZero(int64_t local_nanoseconds) const {
  if (ReadsClockOfRankZero()) return AlignedTime{local_nanoseconds, 0};
  if (!last_) {
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", ranks_->rank(), ": clock not aligned yet; call Measure() first"));
  }
  const double since_last = static_cast<double>(local_nanoseconds - last_->local);
  const std::optional<double> drift = this->drift();
  double error = static_cast<double>(last_->error);
  if (drift) {
    const double span = static_cast<double>(last_->local - first_->local);
    // Between the measurements the errors at both ends bound that of the line between them; outside it grows.
    const double outside = std::max({0.0, since_last, -since_last - span});
    error = std::max(error, static_cast<double>(first_->error)) +
            outside * static_cast<double>(first_->error + last_->error) / span;
  } else {
    error += std::abs(since_last) * unknown_drift_;
  }
  const double offset_change = drift.value_or(0) * since_last;
  return AlignedTime{local_nanoseconds + last_->offset + std::llround(offset_change),
                     static_cast<int64_t>(std::ceil(error))};
}

}  // namespace ott
