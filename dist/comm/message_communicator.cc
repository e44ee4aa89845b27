#include "ott/dist/comm/message_communicator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

enum class Operation : uint8_t { kBroadcast, kGather, kAllGather, kAllReduce, kBarrier, kSplit };

constexpr std::array<const char*, 6> kOperations = {"Broadcast", "Gather",  "AllGather",
                                                    "AllReduce", "Barrier", "Split"};

// One collective of a group. Ranks tell each other the operation and the detail to notice when they differ.
struct Call {
  Operation operation;
  // For AllReduce: 1 for a merge, else 2 + 3 * element type + reduction. 0 for the other operations.
  char detail;
  uint64_t number;
};

constexpr char kMergeDetail = 1;
constexpr char kFirstReductionDetail = 2;
constexpr std::array<const char*, 3> kReductions = {"sum", "min", "max"};
constexpr std::array<const char*, 3> kElementTypes = {"doubles", "floats", "int64s"};

bool IsSame(const Call& a, const Call& b) {
  return a.operation == b.operation && a.detail == b.detail && a.number == b.number;
}

std::string ToString(const Call& call) {
  const auto operation = static_cast<size_t>(call.operation);
  std::string name = absl::StrCat(
      operation < kOperations.size() ? kOperations[operation] : "unknown operation", " #", call.number);
  if (call.detail == kMergeDetail) name += " (merge)";
  const size_t i = static_cast<unsigned char>(call.detail) - size_t{kFirstReductionDetail};
  if (i < kReductions.size() * kElementTypes.size()) {
    absl::StrAppend(&name, " (", kReductions[i % 3], " of ", kElementTypes[i / 3], ")");
  }
  return name;
}

// A message of a collective: operation, detail, status code, then the payload or the error's message.
constexpr size_t kEnvelopeBytes = 3;

std::string Envelope(const Call& call, absl::StatusCode code, std::string_view content) {
  std::string message;
  message.reserve(kEnvelopeBytes + content.size());
  message.push_back(static_cast<char>(call.operation));
  message.push_back(call.detail);
  message.push_back(static_cast<char>(code));
  message.append(content);
  return message;
}

std::string_view Content(const absl::StatusOr<std::string>& payload) {
  if (payload.ok()) return *payload;
  const absl::string_view message = payload.status().message();
  return {message.data(), message.size()};
}

// Before an envelope that all_gather brings: the group, and the call's number, which messages have in their
// channel.
struct GatheredCall {
  uint64_t context;
  uint64_t number;
};

// Lists of bytes in one: each preceded by its length.
std::string Concatenate(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) {
    const uint64_t size = part.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof(size));
    all.append(part);
  }
  return all;
}

std::vector<std::string> SplitParts(std::string_view all) {
  std::vector<std::string> parts;
  while (!all.empty()) {
    uint64_t size = 0;
    OTT_CHECK(all.size() >= sizeof(size)) << all.size() << " bytes left";
    std::memcpy(&size, all.data(), sizeof(size));
    all.remove_prefix(sizeof(size));
    OTT_CHECK(all.size() >= size) << all.size() << " bytes left of " << size;
    parts.emplace_back(all.substr(0, size));
    all.remove_prefix(size);
  }
  return parts;
}

// Distance of a rank's farthest descendant in the binomial tree in which rank - lowest set bit is the parent.
int Height(int rank, int size) {
  int height = 0;
  while ((rank & (1 << height)) == 0 && rank + (1 << height) < size) ++height;
  return height;
}

uint64_t Mix(uint64_t a, uint64_t b) {  // SplitMix64's finalizer (Steele, Lea, Flood 2014)
  uint64_t x = a + 0x9e3779b97f4a7c15u * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <typename T>
T Combine(Reduction reduction, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  switch (reduction) {
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kSum:
      break;
  }
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + b);
  return a + b;
}

class MessageCommunicator final : public Communicator {
 public:
  // context: even; the odd one after it is for tags. all_gather: of all ranks of the group; may be null.
  MessageCommunicator(std::shared_ptr<Transport> transport, uint64_t context,
                      std::shared_ptr<const Group> group, int rank, AllGatherBytes all_gather)
      : transport_(std::move(transport)),
        context_(context),
        group_(std::move(group)),
        rank_(rank),
        all_gather_(std::move(all_gather)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->members.size()); }
  const std::string& host(int rank) const override {
    OTT_CHECK(rank >= 0 && rank < size()) << "rank " << rank << " of " << size();
    return group_->hosts[rank];
  }

  absl::Status Post(int to, int tag, std::string_view bytes) override {
    OTT_RETURN_IF_ERROR(CheckPeer("Post", to, tag));
    return transport_->Post(group_->members[to], TagChannel(tag), bytes);
  }

  absl::Status Flush(int tag, Deadline deadline) override {
    OTT_RETURN_IF_ERROR(CheckPeer("Flush", rank_, tag));
    return FlushChannel(TagChannel(tag), absl::StrCat("Flush of tag ", tag), deadline);
  }

  absl::Status Send(int to, int tag, std::string_view bytes, Deadline deadline) override {
    OTT_RETURN_IF_ERROR(Post(to, tag, bytes));
    return FlushChannel(TagChannel(tag), absl::StrCat("Send to ", Describe(to), " with tag ", tag), deadline);
  }

  absl::StatusOr<std::string> Receive(int from, int tag, Deadline deadline) override {
    OTT_RETURN_IF_ERROR(CheckPeer("Receive", from, tag));
    return ReceiveFrom(from, TagChannel(tag), absl::StrCat("Receive with tag ", tag), deadline);
  }

  absl::Status Broadcast(int root, std::string* bytes, Deadline deadline) override {
    const Call call = Begin(Operation::kBroadcast);
    OTT_RETURN_IF_ERROR(CheckPeer("Broadcast", root));
    OTT_ASSIGN_OR_RETURN(std::optional<Parts> all,
                         GatherOtherwise(call, rank_ == root ? std::string_view(*bytes) : "", deadline));
    if (all) {
      *bytes = std::move((*all)[root]);
      return absl::OkStatus();
    }
    OTT_ASSIGN_OR_RETURN(*bytes, BroadcastFrom(root, call, std::move(*bytes), deadline));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> Gather(int root, std::string_view bytes,
                                                  Deadline deadline) override {
    const Call call = Begin(Operation::kGather);
    OTT_RETURN_IF_ERROR(CheckPeer("Gather", root));
    return GatherAll(root, call, bytes, deadline);
  }

  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherAvailable(int root, std::string_view bytes,
                                                                           Deadline deadline) override {
    const Call call = Begin(Operation::kGather);
    OTT_RETURN_IF_ERROR(CheckPeer("GatherAvailable", root));
    return GatherParts(root, call, bytes, deadline);
  }

  absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes, Deadline deadline) override {
    return AllGather(Begin(Operation::kAllGather), bytes, deadline);
  }

  absl::Status AllReduce(const Merge& merge, std::string* bytes, Deadline deadline) override {
    OTT_ASSIGN_OR_RETURN(
        *bytes, ReduceAndBroadcast(Begin(Operation::kAllReduce, kMergeDetail), merge, *bytes, deadline));
    return absl::OkStatus();
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<double> values, Deadline deadline) override {
    return AllReduceValues(0, reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<float> values, Deadline deadline) override {
    return AllReduceValues(1, reduction, values, deadline);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<int64_t> values, Deadline deadline) override {
    return AllReduceValues(2, reduction, values, deadline);
  }

  absl::Status Barrier(Deadline deadline) override {
    const Call call = Begin(Operation::kBarrier);
    OTT_ASSIGN_OR_RETURN(const std::optional<Parts> all, GatherOtherwise(call, "", deadline));
    if (all) return absl::OkStatus();
    const auto nothing_to_merge = [](std::string_view, std::string*) { return absl::OkStatus(); };
    return ReduceAndBroadcast(call, nothing_to_merge, "", deadline).status();
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) override {
    const Call call = Begin(Operation::kSplit);
    const int mine[2] = {color, key};
    OTT_ASSIGN_OR_RETURN(
        const std::vector<std::string> all,
        AllGather(call, std::string_view(reinterpret_cast<const char*>(mine), sizeof(mine)), deadline));

    std::vector<std::pair<int, int>> keys_and_ranks;
    for (int rank = 0; rank < size(); ++rank) {
      int theirs[2];
      OTT_CHECK(all[rank].size() == sizeof(theirs)) << all[rank].size() << " bytes of rank " << rank;
      std::memcpy(theirs, all[rank].data(), sizeof(theirs));
      if (theirs[0] == color) keys_and_ranks.emplace_back(theirs[1], rank);
    }
    std::sort(keys_and_ranks.begin(), keys_and_ranks.end());

    auto group = std::make_shared<Group>();
    int my_rank = 0;
    for (const auto& [unused_key, rank] : keys_and_ranks) {
      if (rank == rank_) my_rank = static_cast<int>(group->members.size());
      group->members.push_back(group_->members[rank]);
      group->hosts.push_back(group_->hosts[rank]);
    }
    const uint64_t context = Mix(Mix(context_, call.number), static_cast<uint32_t>(color)) & ~uint64_t{1};
    const AllGatherBytes all_gather = group->members == group_->members ? all_gather_ : nullptr;
    return std::make_unique<MessageCommunicator>(transport_, context, std::move(group), my_rank, all_gather);
  }

 private:
  using Parts = std::vector<std::string>;  // of all ranks

  // INVALID_ARGUMENT for what is none.
  absl::Status CheckPeer(std::string_view call, int rank, int tag = 0) const {
    if (rank < 0 || rank >= size()) {
      return Error(absl::StatusCode::kInvalidArgument, call,
                   absl::StrCat("there is no rank ", rank, " of ", size()));
    }
    if (tag < 0)
      return Error(absl::StatusCode::kInvalidArgument, call, absl::StrCat("tag ", tag, " is below 0"));
    return absl::OkStatus();
  }

  Channel TagChannel(int tag) const { return {context_ + 1, static_cast<uint64_t>(tag)}; }

  std::string Describe(int rank) const { return FormatRank(rank, group_->hosts[rank]); }

  absl::Status Error(absl::StatusCode code, std::string_view call, std::string_view what) const {
    return absl::Status(code,
                        absl::StrCat(Describe(rank_), ": ", std::string(call), ": ", std::string(what)));
  }

  Call Begin(Operation operation, char detail = 0) {
    const Call call{operation, detail, ++num_collectives_};
    transport_->DropBefore({context_, call.number});
    return call;
  }

  // Returns what all ranks brought to this collective, by all_gather_; nullopt if messages have to bring it.
  // Returns the first of the parts that is an error, if any is. code: that of `content`, which is a message
  // if that is an error.
  absl::StatusOr<std::optional<Parts>> GatherOtherwise(const Call& call, std::string_view content,
                                                       Deadline deadline,
                                                       absl::StatusCode code = absl::StatusCode::kOk) {
    if (all_gather_ == nullptr) return std::nullopt;
    const GatheredCall mine{context_, call.number};
    const std::string message(reinterpret_cast<const char*>(&mine), sizeof(mine));
    const Deadline half = deadline.IsNever() ? deadline : Deadline::After(deadline.Remaining() / 2);
    absl::StatusOr<Parts> all = all_gather_(message + Envelope(call, code, content), half);
    if (!all.ok()) {
      all_gather_ = nullptr;
      return std::nullopt;
    }
    // All are looked at before any of them is believed.
    for (int rank = 0; rank < size(); ++rank) {
      const std::string& part = (*all)[rank];
      if (part.size() < sizeof(mine) + kEnvelopeBytes) {
        return Error(absl::StatusCode::kInternal, ToString(call),
                     absl::StrCat(Describe(rank), " called what is none of its collectives"));
      }
      GatheredCall gathered;
      std::memcpy(&gathered, part.data(), sizeof(gathered));
      const Call theirs{static_cast<Operation>(part[sizeof(mine)]), part[sizeof(mine) + 1], gathered.number};
      if (gathered.context == context_ && IsSame(theirs, call)) continue;
      return Error(absl::StatusCode::kInternal, ToString(call),
                   absl::StrCat(Describe(rank), " called ", ToString(theirs),
                                gathered.context == context_ ? "" : " of another group", " instead"));
    }
    for (std::string& part : *all) {
      const auto code_of_part = static_cast<absl::StatusCode>(part[sizeof(mine) + 2]);
      part.erase(0, sizeof(mine) + kEnvelopeBytes);
      if (code_of_part != absl::StatusCode::kOk) return absl::Status(code_of_part, part);
    }
    return *std::move(all);
  }

  absl::Status PostPart(const Call& call, int to, const absl::StatusOr<std::string>& payload) {
    return transport_->Post(group_->members[to], {context_, call.number},
                            Envelope(call, payload.status().code(), Content(payload)));
  }

  absl::StatusOr<std::string> ReceiveFrom(int from, Channel channel, std::string_view call,
                                          Deadline deadline) {
    absl::StatusOr<std::string> bytes = transport_->Receive(group_->members[from], channel, deadline);
    if (absl::IsDeadlineExceeded(bytes.status())) {
      return Error(absl::StatusCode::kDeadlineExceeded, call,
                   absl::StrCat("nothing from ", Describe(from), " within ", deadline.Seconds(), " s"));
    }
    if (absl::IsUnavailable(bytes.status())) {
      return Error(bytes.status().code(), call,
                   absl::StrCat("from ", Describe(from), ": ", bytes.status().message()));
    }
    return bytes;
  }

  // Returns what `from` brought to this collective, or the error it told of instead.
  absl::StatusOr<std::string> ReceivePart(const Call& call, int from, Deadline deadline) {
    OTT_ASSIGN_OR_RETURN(std::string message,
                         ReceiveFrom(from, {context_, call.number}, ToString(call), deadline));
    OTT_CHECK(message.size() >= kEnvelopeBytes) << message.size() << " bytes from rank " << from;
    const Call theirs{static_cast<Operation>(message[0]), message[1], call.number};
    if (!IsSame(theirs, call)) {
      return Error(absl::StatusCode::kInternal, ToString(call),
                   absl::StrCat(Describe(from), " called ", ToString(theirs), " instead"));
    }
    const auto code = static_cast<absl::StatusCode>(message[2]);
    message.erase(0, kEnvelopeBytes);
    if (code != absl::StatusCode::kOk) return absl::Status(code, message);
    return message;
  }

  absl::Status FlushChannel(Channel channel, std::string_view call, Deadline deadline) {
    absl::Status status = transport_->Flush(channel, deadline);
    if (!absl::IsDeadlineExceeded(status)) return status;
    return Error(status.code(), call, absl::StrCat("not taken within ", deadline.Seconds(), " s"));
  }

  // Passes root's payload, or its error, to everyone.
  absl::StatusOr<std::string> BroadcastFrom(int root, const Call& call, absl::StatusOr<std::string> payload,
                                            Deadline deadline) {
    const int me = (rank_ - root + size()) % size();
    const auto real = [&](int rank) { return (rank + root) % size(); };
    if (me != 0) payload = ReceivePart(call, real(me & (me - 1)), deadline);
    for (int child_distance = Height(me, size()) - 1; child_distance >= 0; --child_distance) {
      OTT_RETURN_IF_ERROR(PostPart(call, real(me + (1 << child_distance)), payload));
    }
    OTT_RETURN_IF_ERROR(FlushChannel({context_, call.number}, ToString(call), deadline));
    return payload;
  }

  // Merges what a rank and all below it in the tree brought, as the ranks do themselves over messages.
  absl::Status MergeBelow(const Call& call, const Merge& merge, int rank, Parts& parts) const {
    for (int child = 0; child < Height(rank, size()); ++child) {
      const int below = rank + (1 << child);
      OTT_RETURN_IF_ERROR(MergeBelow(call, merge, below, parts));
      const absl::Status status = merge(parts[below], &parts[rank]);
      if (!status.ok()) return NotMerged(call, below, status);
    }
    return absl::OkStatus();
  }

  absl::Status NotMerged(const Call& call, int below, const absl::Status& status) const {
    return Error(status.code(), ToString(call),
                 absl::StrCat("with ", Describe(below), ": ", status.message()));
  }

  // Rank 0 alone merges, so that an error of it is one of all ranks.
  absl::StatusOr<std::optional<std::string>> ReduceOtherwise(const Call& call, const Merge& merge,
                                                             std::string_view bytes, Deadline deadline) {
    OTT_ASSIGN_OR_RETURN(std::optional<Parts> all, GatherOtherwise(call, bytes, deadline));
    if (!all) return std::nullopt;
    absl::StatusOr<std::string> merged = std::string();
    if (rank_ == 0) {
      const absl::Status status = MergeBelow(call, merge, 0, *all);
      merged = status.ok() ? absl::StatusOr<std::string>(std::move((*all)[0])) : status;
    }
    OTT_ASSIGN_OR_RETURN(all, GatherOtherwise(call, Content(merged), deadline, merged.status().code()));
    if (!all) return std::nullopt;
    return std::move((*all)[0]);
  }

  // The payload of this rank and all below it, merged.
  absl::StatusOr<std::string> ReduceBelow(const Call& call, const Merge& merge, std::string_view bytes,
                                          Deadline deadline) {
    std::string merged(bytes);
    for (int child = 0; child < Height(rank_, size()); ++child) {
      OTT_ASSIGN_OR_RETURN(const std::string part, ReceivePart(call, rank_ + (1 << child), deadline));
      const absl::Status status = merge(part, &merged);
      if (!status.ok()) return NotMerged(call, rank_ + (1 << child), status);
    }
    return merged;
  }

  absl::StatusOr<std::string> ReduceAndBroadcast(const Call& call, const Merge& merge, std::string_view bytes,
                                                 Deadline deadline) {
    OTT_ASSIGN_OR_RETURN(std::optional<std::string> reduced, ReduceOtherwise(call, merge, bytes, deadline));
    if (reduced) return *std::move(reduced);
    const int steps_to_all = 1 + Height(0, size()) - Height(rank_, size());
    absl::StatusOr<std::string> merged = ReduceBelow(call, merge, bytes, deadline.Before(steps_to_all));
    if (rank_ != 0) OTT_RETURN_IF_ERROR(PostPart(call, rank_ & (rank_ - 1), merged));
    // An error that this rank saw itself is nearer to the cause than what rank 0 tells everybody.
    const absl::Status seen_here = merged.status();
    absl::StatusOr<std::string> result = BroadcastFrom(0, call, std::move(merged), deadline);
    return seen_here.ok() ? result : seen_here;
  }

  template <typename T>
  absl::Status AllReduceValues(int element_type, Reduction reduction, absl::Span<T> values,
                               Deadline deadline) {
    const Merge merge = [&](std::string_view from, std::string* into) -> absl::Status {
      if (from.size() != into->size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(from.size() / sizeof(T), " values to reduce, ", into->size() / sizeof(T), " here"));
      }
      for (size_t offset = 0; offset < into->size(); offset += sizeof(T)) {
        T a, b;
        std::memcpy(&a, into->data() + offset, sizeof(T));
        std::memcpy(&b, from.data() + offset, sizeof(T));
        a = Combine(reduction, a, b);
        std::memcpy(into->data() + offset, &a, sizeof(T));
      }
      return absl::OkStatus();
    };
    const char detail =
        static_cast<char>(kFirstReductionDetail + 3 * element_type + static_cast<int>(reduction));
    OTT_ASSIGN_OR_RETURN(const std::string merged,
                         ReduceAndBroadcast(Begin(Operation::kAllReduce, detail), merge,
                                            std::string_view(reinterpret_cast<const char*>(values.data()),
                                                             values.size() * sizeof(T)),
                                            deadline));
    std::memcpy(values.data(), merged.data(), merged.size());
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherParts(int root, const Call& call,
                                                                       std::string_view bytes,
                                                                       Deadline deadline) {
    std::vector<absl::StatusOr<std::string>> parts;
    OTT_ASSIGN_OR_RETURN(std::optional<Parts> all, GatherOtherwise(call, bytes, deadline));
    if (all) {
      if (rank_ == root) parts.assign(all->begin(), all->end());
      return parts;
    }
    if (rank_ != root) {
      OTT_RETURN_IF_ERROR(PostPart(call, root, std::string(bytes)));
      OTT_RETURN_IF_ERROR(FlushChannel({context_, call.number}, ToString(call), deadline));
      return parts;
    }
    for (int rank = 0; rank < size(); ++rank) {
      parts.push_back(rank == rank_ ? std::string(bytes) : ReceivePart(call, rank, deadline));
    }
    return parts;
  }

  absl::StatusOr<std::vector<std::string>> GatherAll(int root, const Call& call, std::string_view bytes,
                                                     Deadline deadline) {
    OTT_ASSIGN_OR_RETURN(std::vector<absl::StatusOr<std::string>> parts,
                         GatherParts(root, call, bytes, deadline));
    std::vector<std::string> whole;
    std::vector<std::string> missing;
    for (int rank = 0; rank < static_cast<int>(parts.size()); ++rank) {
      if (parts[rank].ok()) {
        whole.push_back(*std::move(parts[rank]));
      } else if (absl::IsDeadlineExceeded(parts[rank].status())) {
        missing.push_back(Describe(rank));
      } else {
        return parts[rank].status();
      }
    }
    if (missing.empty()) return whole;
    return Error(
        absl::StatusCode::kDeadlineExceeded, ToString(call),
        absl::StrCat("nothing from ", absl::StrJoin(missing, ", "), " within ", deadline.Seconds(), " s"));
  }

  absl::StatusOr<std::vector<std::string>> AllGather(const Call& call, std::string_view bytes,
                                                     Deadline deadline) {
    OTT_ASSIGN_OR_RETURN(std::optional<Parts> gathered, GatherOtherwise(call, bytes, deadline));
    if (gathered) return *std::move(gathered);
    absl::StatusOr<std::vector<std::string>> parts = GatherAll(0, call, bytes, deadline.Before(1));
    absl::StatusOr<std::string> mine =
        parts.ok() ? absl::StatusOr<std::string>(Concatenate(*parts)) : parts.status();
    OTT_ASSIGN_OR_RETURN(const std::string all, BroadcastFrom(0, call, std::move(mine), deadline));
    return SplitParts(all);
  }

  const std::shared_ptr<Transport> transport_;
  const uint64_t context_;
  const std::shared_ptr<const Group> group_;
  const int rank_;
  AllGatherBytes all_gather_;  // null once it failed
  uint64_t num_collectives_ = 0;
};

constexpr uint64_t kExchangeOfHosts = 0;
constexpr uint64_t kAllRanks = 2;

}  // namespace

std::shared_ptr<const Group> MakeGroup(std::vector<std::string> hosts) {
  auto group = std::make_shared<Group>();
  group->members.resize(hosts.size());
  std::iota(group->members.begin(), group->members.end(), 0);
  group->hosts = std::move(hosts);
  return group;
}

std::unique_ptr<Communicator> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                      std::shared_ptr<const Group> all,
                                                      AllGatherBytes all_gather) {
  OTT_CHECK(static_cast<int>(all->members.size()) == transport->size()) << all->members.size() << " hosts";
  const int rank = transport->rank();
  return std::make_unique<MessageCommunicator>(std::move(transport), kAllRanks, std::move(all), rank,
                                               std::move(all_gather));
}

absl::StatusOr<std::unique_ptr<Communicator>> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                                      Deadline deadline) {
  std::vector<std::string> unknown(transport->size(), "host not known yet");
  unknown[transport->rank()] = transport->host();
  MessageCommunicator first(transport, kExchangeOfHosts, MakeGroup(std::move(unknown)), transport->rank(),
                            nullptr);
  OTT_ASSIGN_OR_RETURN(std::vector<std::string> hosts, first.AllGather(transport->host(), deadline));
  return MakeMessageCommunicator(std::move(transport), MakeGroup(std::move(hosts)));
}

}  // namespace ott
