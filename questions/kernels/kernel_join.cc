#include "ott/questions/kernels/kernel_join.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ott/core/kernel_profile/id_index.h"

namespace ott::kernels {
namespace {

auto Fields(const LaunchContext& c) {
  return std::make_tuple(c.marker, c.op, c.backward, c.forward_marker, c.forward_op, c.layer, c.source,
                         c.module, c.phase, c.outer, c.direction);
}

// Numbers texts and contexts.
class Interner {
 public:
  explicit Interner(KernelJoin* join) : join_(join) { (void)Context({}); }

  uint32_t Text(const std::string& text) {
    if (text.empty()) return kNone;
    const auto [entry, added] = texts_.try_emplace(text, static_cast<uint32_t>(join_->texts.size()));
    if (added) join_->texts.push_back(text);
    return entry->second;
  }

  uint32_t Context(const LaunchContext& context) {
    const auto [entry, added] =
        contexts_.try_emplace(Fields(context), static_cast<uint32_t>(join_->contexts.size()));
    if (added) join_->contexts.push_back(context);
    return entry->second;
  }

 private:
  KernelJoin* join_;
  absl::flat_hash_map<std::string, uint32_t> texts_;
  absl::flat_hash_map<decltype(Fields({})), uint32_t> contexts_;
};

constexpr ptrdiff_t kRangesToForget = ptrdiff_t{1} << 20;
constexpr uint32_t kOutside = 0;         // the context without any range
constexpr uint32_t kWanted = kNone - 1;  // a sequence number that a backward node asks for

class Joiner {
 public:
  explicit Joiner(Profile* profile) : profile_(*profile), interner_(&join_) {
    join_.launches.resize(profile->launches.size());
  }

  KernelJoin Join() {
    ListLaunches();
    FindWantedSequenceNumbers();
    for (uint32_t thread = 0; thread < profile_.threads.size(); ++thread) SweepThread(thread);
    for (const Backward& backward : backwards_) Inherit(backward);
    if (num_crossing_ranges_ > 0) {
      join_.notes.push_back(absl::StrCat(
          num_crossing_ranges_, " ranges end after the range around them; the part beyond is left out"));
    }
    join_.num_op_instances = num_op_instances_;
    return std::move(join_);
  }

 private:
  // An open range: what it and those around it say together.
  struct Frame {
    int64_t end = 0;
    int64_t backward_start = 0;
    uint32_t context = kOutside;
    uint32_t sequence_number = kNone;
    uint32_t other_sequence_number = kNone;
    uint32_t op_frame = kNone;  // the frame of the op, in the stack
    uint32_t op_instance = kNone;
  };

  // A range of a sequence number that a backward node asks for.
  struct Forward {
    int64_t start;
    int64_t backward_start;    // of the backward node around it, for double backward
    uint32_t sequence_number;  // of that node
    uint32_t thread;
    uint32_t context;
    uint32_t next;
  };

  struct Backward {
    uint32_t launch;
    int64_t start;  // of the backward node
  };

  // Launches by the index of the range that they lie in.
  using Told = std::vector<std::pair<uint32_t, uint32_t>>;

  // The launches of each thread, by start; the devices each thread launches on.
  void ListLaunches() {
    launches_of_.resize(profile_.threads.size());
    devices_of_.resize(profile_.threads.size(), 0);
    device_of_.resize(profile_.launches.size(), 0);
    const auto see = [this](const auto& activity) {
      if (activity.launch == kNone) return;
      const uint64_t device = activity.device < 0 ? 0 : uint64_t{1} << (activity.device % 64);
      const uint32_t thread = profile_.launches[activity.launch].thread;
      if (thread == kNone) return;
      devices_of_[thread] |= device;
      device_of_[activity.launch] = activity.device;
    };
    for (const Profile::Kernel& kernel : profile_.kernels) see(kernel);
    for (const Profile::Transfer& transfer : profile_.transfers) see(transfer);
    std::vector<size_t> counts(profile_.threads.size(), 0);
    ListToldLaunches();
    const auto is_swept = [this](uint32_t launch) {
      return profile_.launches[launch].thread != kNone && !HasRange(launch);
    };
    for (uint32_t launch = 0; launch < profile_.launches.size(); ++launch) {
      if (is_swept(launch)) ++counts[profile_.launches[launch].thread];
    }
    for (size_t thread = 0; thread < counts.size(); ++thread) launches_of_[thread].reserve(counts[thread]);
    for (uint32_t launch = 0; launch < profile_.launches.size(); ++launch) {
      if (is_swept(launch)) launches_of_[profile_.launches[launch].thread].push_back(launch);
    }
    const auto by_start = [&](uint32_t a, uint32_t b) {
      return profile_.launches[a].start < profile_.launches[b].start;
    };
    for (std::vector<uint32_t>& launches : launches_of_) {
      if (!std::is_sorted(launches.begin(), launches.end(), by_start)) {
        std::sort(launches.begin(), launches.end(), by_start);
      }
    }
  }

  void ListToldLaunches() {
    told_of_.resize(profile_.threads.size());
    for (uint32_t launch = 0; launch < profile_.range_of_launch.size(); ++launch) {
      if (!HasRange(launch) || profile_.launches[launch].thread == kNone) continue;
      const Profile::RangeOfLaunch& of = profile_.range_of_launch[launch];
      told_of_[of.thread].emplace_back(of.range, launch);
    }
    for (Told& told : told_of_) std::sort(told.begin(), told.end());
  }

  bool HasRange(uint32_t launch) const {
    return !profile_.range_of_launch.empty() && profile_.range_of_launch[launch].thread != kNone;
  }

  void FindWantedSequenceNumbers() {
    size_t num_wanted = 0;
    for (const Profile::Thread& thread : profile_.threads) {
      for (const Profile::Range& range : thread.ranges) {
        if (range.sequence_number == kNone) continue;
        const OpLabel& label = profile_.labels[range.label];
        if (label.is_backward_node ||
            (label.kind == OpLabel::Kind::kMarker && label.direction == OpDirection::kBackward)) {
          uint32_t& forward = forward_of_.At(thread.process, range.sequence_number);
          if (forward == kNone) ++num_wanted;
          forward = kWanted;
        }
      }
    }
    forwards_.reserve(num_wanted);
  }

  void SweepThread(uint32_t thread_index) {
    Profile::Thread& thread = profile_.threads[thread_index];
    GrowingArray<Profile::Range> ranges = std::move(thread.ranges);
    const auto outer_first = [](const Profile::Range& a, const Profile::Range& b) {
      return a.start != b.start ? a.start < b.start : a.end > b.end;
    };
    Told& told = told_of_[thread_index];
    if (!std::is_sorted(ranges.begin(), ranges.end(), outer_first)) SortRanges(outer_first, &ranges, &told);
    stack_.clear();
    const Profile::Range* next = ranges.begin();
    auto next_told = told.cbegin();
    const auto push_next = [&] {
      const auto index = static_cast<uint32_t>(next - ranges.begin());
      Push(thread_index, *next++);
      for (; next_told != told.cend() && next_told->first == index; ++next_told)
        TakeContext(next_told->second);
      if ((next - ranges.begin()) % kRangesToForget == 0) ranges.Forget(next);
    };
    for (const uint32_t launch : launches_of_[thread_index]) {
      const int64_t time = profile_.launches[launch].start;
      while (next != ranges.end() && next->start <= time) push_next();
      while (!stack_.empty() && stack_.back().end < time) stack_.pop_back();
      if (!stack_.empty()) TakeContext(launch);
    }
    while (next != ranges.end()) push_next();
  }

  // told: launches by the index of their range, which changes.
  template <typename Before>
  static void SortRanges(Before before, GrowingArray<Profile::Range>* ranges, Told* told) {
    if (told->empty()) return std::sort(ranges->begin(), ranges->end(), before);
    std::vector<uint32_t> order(ranges->size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const Profile::Range& x = (*ranges)[a];
      const Profile::Range& y = (*ranges)[b];
      return before(x, y) || (!before(y, x) && a < b);
    });
    MoveTold(order, told);
    // In place, for there may be hundreds of megabytes: each cycle of ranges that take each other's places.
    for (uint32_t first = 0; first < order.size(); ++first) {
      const Profile::Range range = (*ranges)[first];
      uint32_t to = first;
      for (uint32_t from = order[to]; from != first; from = order[to]) {
        (*ranges)[to] = (*ranges)[from];
        order[to] = to;
        to = from;
      }
      (*ranges)[to] = range;
      order[to] = to;
    }
  }

  // order: where each range was.
  static void MoveTold(const std::vector<uint32_t>& order, Told* told) {
    std::vector<bool> is_told(order.size());
    for (const auto& [range, launch] : *told) is_told[range] = true;
    Told moved;
    moved.reserve(told->size());
    for (uint32_t to = 0; to < order.size(); ++to) {
      if (!is_told[order[to]]) continue;
      for (auto of = std::lower_bound(told->begin(), told->end(), std::make_pair(order[to], uint32_t{0}));
           of != told->end() && of->first == order[to]; ++of)
        moved.emplace_back(to, of->second);
    }
    *told = std::move(moved);
  }

  void Push(uint32_t thread_index, const Profile::Range& range) {
    // A range that begins where another ends follows it, unless it ends there as well.
    while (!stack_.empty() && (stack_.back().end < range.start ||
                               (stack_.back().end == range.start && range.end > range.start))) {
      stack_.pop_back();
    }
    Frame frame = stack_.empty() ? Frame() : stack_.back();
    frame.end = range.end;
    if (!stack_.empty() && stack_.back().end < range.end) {
      frame.end = stack_.back().end;
      ++num_crossing_ranges_;
    }
    const OpLabel& label = profile_.labels[range.label];
    const uint32_t outer = frame.context;
    const auto [entry, added] = transitions_.try_emplace(std::make_pair(outer, range.label), kNone);
    if (added) entry->second = interner_.Context(Within(outer, range.label));
    frame.context = entry->second;
    // Once a marker tells the op, the ops within it are part of it, but for a backward node of its own.
    if (label.kind == OpLabel::Kind::kMarker ||
        (label.kind == OpLabel::Kind::kOp &&
         (label.is_backward_node || join_.contexts[frame.context].marker == kNone))) {
      frame.op_frame = static_cast<uint32_t>(stack_.size());
      frame.op_instance = kNone;
    }
    if (range.sequence_number != kNone) TakeSequenceNumber(thread_index, range, label, outer, &frame);
    stack_.push_back(frame);
  }

  void TakeSequenceNumber(uint32_t thread_index, const Profile::Range& range, const OpLabel& label,
                          uint32_t outer, Frame* frame) {
    const bool within_backward = join_.contexts[outer].direction == OpDirection::kBackward;
    const bool begins_backward =
        label.is_backward_node || (!within_backward && label.direction == OpDirection::kBackward);
    // An op that a backward node calls shows 0, unless it makes a graph for double backward.
    if (within_backward && !begins_backward && range.sequence_number == 0) return;
    const bool pairs = begins_backward || !within_backward || frame->sequence_number == kNone;
    if (range.sequence_number != frame->sequence_number) {
      const uint32_t known = frame->sequence_number;
      if (known != kNone) frame->other_sequence_number = pairs ? known : range.sequence_number;
      if (pairs) frame->sequence_number = range.sequence_number;
    }
    if (begins_backward) {
      frame->backward_start = range.start;
    } else {
      AddForward(thread_index, range, stack_.empty() ? Frame() : stack_.back(), frame->context);
    }
  }

  void AddForward(uint32_t thread_index, const Profile::Range& range, const Frame& outer, uint32_t context) {
    const uint16_t process = profile_.threads[thread_index].process;
    const uint32_t known = forward_of_.Find(process, range.sequence_number);
    if (known == kNone) return;
    Forward forward;
    forward.start = range.start;
    forward.thread = thread_index;
    forward.context = context;
    forward.sequence_number = outer.sequence_number;
    forward.backward_start = outer.backward_start;
    forward.next = known;
    // The last range of a number is the one whose backward node has it; numbers are not used again later.
    if (known != kWanted && forwards_[known].thread == thread_index) {
      forward.next = forwards_[known].next;
      forwards_[known] = forward;
      return;
    }
    forward_of_.At(process, range.sequence_number) = static_cast<uint32_t>(forwards_.size());
    forwards_.push_back(forward);
  }

  // The context of a range with this label within another.
  LaunchContext Within(uint32_t outer, uint32_t label_index) {
    LaunchContext context = join_.contexts[outer];
    const OpLabel& label = profile_.labels[label_index];
    switch (label.kind) {
      case OpLabel::Kind::kMarker:
      case OpLabel::Kind::kOp:
        if (label.is_backward_node) {
          context.outer = kNone;
          context.marker = kNone;
          context.op = kNone;
          context.backward = label_index;
        } else if (label.kind == OpLabel::Kind::kMarker) {
          context.marker = label_index;
          context.op = kNone;
        } else if (!SaysLess(label.description, context.op)) {
          context.outer = CallerOf(outer);
          context.op = label_index;
        }
        if (!label.source.empty()) context.source = interner_.Text(label.source);
        if (!label.module_hierarchy.empty()) context.layer = interner_.Text(label.module_hierarchy);
        if (context.direction != OpDirection::kBackward) context.direction = label.direction;
        break;
      case OpLabel::Kind::kLayer: {
        const std::string around =
            context.layer == kNone ? "" : absl::StrCat(join_.texts[context.layer], ":");
        context.layer = interner_.Text(around + label.text);
        break;
      }
      case OpLabel::Kind::kTrace:
        context.source = interner_.Text(label.source);
        break;
      case OpLabel::Kind::kModule:
        context.module = interner_.Text(label.text);
        break;
      case OpLabel::Kind::kOther:
        context.phase = interner_.Text(label.text);
        break;
    }
    return context;
  }

  // The context of an op called within this one. Deep recursion is told up to some depth: its innermost ops
  // share a caller.
  uint32_t CallerOf(uint32_t context) const {
    constexpr int kMostCallers = 32;
    if (join_.contexts[context].op == kNone) return kNone;
    int depth = 0;
    for (uint32_t at = context; at != kNone; at = join_.contexts[at].outer) ++depth;
    return depth < kMostCallers ? context : join_.contexts[context].outer;
  }

  // An op that a collective calls on its way to the kernel, ncclGroupEnd say, tells no sizes.
  bool SaysLess(const OpDescription& called, uint32_t op) const {
    return op != kNone && IsCollective(profile_.labels[op].description) &&
           (called.op == "record_param_comms" || (IsCollective(called) && called.arguments.empty()));
  }

  void TakeContext(uint32_t launch_index) {
    Frame& frame = stack_.back();
    KernelJoin::Launch& launch = join_.launches[launch_index];
    launch.context = frame.context;
    launch.sequence_number = frame.sequence_number;
    launch.other_sequence_number = frame.other_sequence_number;
    if (frame.op_frame != kNone) {
      uint32_t& instance = stack_[frame.op_frame].op_instance;
      if (instance == kNone) instance = num_op_instances_++;
      launch.op_instance = instance;
    }
    if (join_.contexts[frame.context].direction == OpDirection::kBackward && frame.sequence_number != kNone) {
      backwards_.push_back({launch_index, frame.backward_start});
    }
  }

  const Forward* FindForward(uint16_t process, uint32_t sequence_number, int64_t before, int device) {
    const Forward* best = nullptr;
    bool best_on_device = false;
    for (uint32_t index = forward_of_.Find(process, sequence_number); index < kWanted;
         index = forwards_[index].next) {
      const Forward& forward = forwards_[index];
      if (forward.start >= before) continue;
      const bool on_device = device >= 0 && (devices_of_[forward.thread] >> (device % 64) & 1) != 0;
      if (best == nullptr ||
          std::make_pair(on_device, forward.start) > std::make_pair(best_on_device, best->start)) {
        best = &forward;
        best_on_device = on_device;
      }
    }
    return best;
  }

  void Inherit(const Backward& backward) {
    KernelJoin::Launch& launch = join_.launches[backward.launch];
    const uint16_t process = profile_.threads[profile_.launches[backward.launch].thread].process;
    const int device = device_of_[backward.launch];
    // Double backward: the forward range may lie within a backward node itself. Starts only go back in time.
    LaunchContext context = join_.contexts[launch.context];
    int64_t before = backward.start;
    uint32_t sequence_number = launch.sequence_number;
    while (const Forward* forward = FindForward(process, sequence_number, before, device)) {
      const LaunchContext& source = join_.contexts[forward->context];
      if (context.forward_marker == kNone && context.forward_op == kNone) {
        context.forward_marker = source.marker;
        context.forward_op = source.op;
      }
      // The first forward's context goes before that which surrounds the backward pass.
      if (source.layer != kNone) context.layer = source.layer;
      if (source.source != kNone) context.source = source.source;
      if (source.module != kNone) context.module = source.module;
      if (source.direction != OpDirection::kBackward || forward->sequence_number == kNone) break;
      before = forward->backward_start;
      sequence_number = forward->sequence_number;
    }
    launch.context = interner_.Context(context);
  }

  Profile& profile_;
  KernelJoin join_;
  Interner interner_;
  std::vector<std::vector<uint32_t>> launches_of_;
  std::vector<Told> told_of_;  // by thread
  std::vector<uint64_t> devices_of_;
  std::vector<int16_t> device_of_;
  std::vector<Frame> stack_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> transitions_;
  IdIndex forward_of_;  // by process and sequence number
  std::vector<Forward> forwards_;
  std::deque<Backward> backwards_;  // grows without a copy
  uint32_t num_op_instances_ = 0;
  int64_t num_crossing_ranges_ = 0;
};

}  // namespace

KernelJoin::State KernelJoin::StateOf(const Profile& profile, uint32_t launch) const {
  if (launch == kNone || profile.launches[launch].thread == kNone) return State::kNoLaunch;
  const uint32_t context = launches[launch].context;
  if (context == kNone) return State::kNoRange;
  return contexts[context].marker == kNone && contexts[context].op == kNone &&
                 contexts[context].backward == kNone
             ? State::kNoOp
             : State::kOp;
}

KernelJoin JoinKernels(Profile* profile) { return Joiner(profile).Join(); }

}  // namespace ott::kernels
