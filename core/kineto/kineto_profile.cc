#include "ott/core/kineto/kineto_profile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/kernel_profile/id_index.h"
#include "ott/core/kernel_profile/label_table.h"
#include "ott/core/kernel_profile/rank_in_name.h"
#include "ott/core/kineto/op_arguments.h"
#include "ott/core/kineto/python_source.h"
#include "ott/core/kineto/read_trace.h"
#include "ott/core/op_cost/kernel_name.h"

namespace ott::kineto {
namespace {

using kernels::GrowingArray;
using kernels::IdIndex;
using kernels::kNone;
using kernels::kNoSequenceNumber;
using kernels::OpLabel;
using kernels::ParseLabel;
using kernels::Profile;
using kernels::SplitLabel;

constexpr std::string_view kModule = "nn.Module: ";

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

// Numbers texts.
class TextIndex {
 public:
  std::pair<uint32_t, bool> Find(std::string_view text) {
    const auto known = index_.find(ToAbsl(text));
    if (known != index_.end()) return {known->second, false};
    const auto number = static_cast<uint32_t>(index_.size());
    index_.emplace(std::string(text), number);
    return {number, true};
  }

 private:
  absl::flat_hash_map<std::string, uint32_t> index_;
};

class ProfileBuilder {
 public:
  explicit ProfileBuilder(const std::string& path) { profile_.path = path; }

  void Add(const Event& event) {
    if (event.kind == Event::Kind::kMetadata) return AddName(event);
    if (event.kind == Event::Kind::kOther || event.kind == Event::Kind::kLaunchFlow) return;
    if (event.start == kNoNumber) {
      ++num_without_time_;
      return;
    }
    if (event.kind == Event::Kind::kPassFlow) return AddPassFlow(event);
    if (event.phase != 'X') return;
    int64_t duration = event.duration == kNoNumber ? 0 : event.duration;
    if (duration < 0) {
      ++num_negative_;
      duration = 0;
    }
    const int64_t end = event.start + duration;
    ExtendSpan(event.start, end);
    switch (event.kind) {
      case Event::Kind::kKernel:
        return AddKernel(event, end);
      case Event::Kind::kCopy:
      case Event::Kind::kMemset:
        return AddTransfer(event, end);
      case Event::Kind::kRuntime:
        return AddCall(event, duration);
      default:
        return AddRange(event, end);
    }
  }

  Profile Finish(const TraceHeader& header) {
    profile_.schema = "torch.profiler";
    profile_.rank = header.rank >= 0 ? header.rank : kernels::RankInName(profile_.path);
    profile_.begin_unix_nanoseconds = header.base_nanoseconds;
    profile_.notes = header.notes;
    AddDevices(header);
    FindRangesOfLaunches();
    AddSequenceNumbers();
    SortKernels();
    AddGroupOfHostCollectives(header);
    AddGroupRanks(header);
    NameProcesses();
    AddNotes();
    return std::move(profile_);
  }

 private:
  struct Place {
    uint32_t thread;
    uint32_t range;
  };
  // A collective as an op, or as a kernel, tells of it.
  struct Collective {
    uint32_t kind;
    int64_t sequence_number;
  };

  void ExtendSpan(int64_t start, int64_t end) {
    if (!saw_time_) profile_.first_time = profile_.last_time = start;
    saw_time_ = true;
    profile_.first_time = std::min(profile_.first_time, start);
    profile_.last_time = std::max(profile_.last_time, end);
  }

  // A trace is of one process; some versions give frames of Python's others' ids.
  void SeeProcess(const Event& event) {
    if (profile_.processes.empty() && event.process >= 0)
      profile_.processes.emplace_back().pid = event.process;
  }

  uint32_t ThreadOf(int64_t pid, int64_t tid) {
    if (!profile_.threads.empty() && last_pid_ == pid && last_tid_ == tid) return last_thread_;
    const auto [entry, added] =
        thread_of_.try_emplace({pid, tid}, static_cast<uint32_t>(profile_.threads.size()));
    if (added) {
      Profile::Thread& thread = profile_.threads.emplace_back();
      thread.tid = tid == kNoNumber ? 0 : tid;
    }
    last_pid_ = pid;
    last_tid_ = tid;
    return last_thread_ = entry->second;
  }

  void AddName(const Event& event) {
    if (event.name == "process_name") process_names_[event.process] = std::string(event.metadata_name);
    if (event.name == "thread_name")
      thread_names_[{event.process, event.thread}] = std::string(event.metadata_name);
  }

  // Sets what a kernel and a copy have in common.
  template <typename Activity>
  void SetActivity(const Event& event, int64_t end, Activity* activity) {
    activity->start = event.start;
    activity->end = end;
    const int64_t device = event.device != kNoNumber ? event.device : event.process;
    const int64_t stream = event.stream != kNoNumber ? event.stream : event.thread;
    activity->device = static_cast<int16_t>(device >= 0 && device < 32768 ? device : -1);
    activity->stream = static_cast<int32_t>(stream >= 0 && stream < (int64_t{1} << 31) ? stream : -1);
    activity->process = 0;
    activity->launch = LaunchOf(event);
  }

  uint32_t NewLaunch() {
    profile_.launches.emplace_back();
    ids_of_launch_.push_back(kNoNumber);
    return static_cast<uint32_t>(profile_.launches.size() - 1);
  }

  // kNone without any id.
  uint32_t LaunchOf(const Event& event) {
    uint32_t launch = kNone;
    if (event.correlation > 0) {
      uint32_t& known = launch_of_.At(0, event.correlation);
      if (known == kNone) known = NewLaunch();
      launch = known;
    } else if (event.external_id > 0) {
      launch = NewLaunch();
    }
    if (event.external_id > 0) ids_of_launch_[launch] = event.external_id;
    return launch;
  }

  void AddKernel(const Event& event, int64_t end) {
    Profile::Kernel kernel;
    SetActivity(event, end, &kernel);
    const auto [name, added] = kernel_name_of_.Find(event.name);
    if (added) profile_.kernel_names.emplace_back(event.name);
    kernel.name = name;
    std::array<int64_t, 6> sizes = {};
    if (!ParseSizes(event.grid, sizes.data()) || !ParseSizes(event.block, sizes.data() + 3)) sizes = {};
    const auto [geometry, is_new] =
        geometry_of_.try_emplace(sizes, static_cast<uint32_t>(profile_.geometries.size()));
    if (is_new)
      profile_.geometries.push_back({{sizes[0], sizes[1], sizes[2]}, {sizes[3], sizes[4], sizes[5]}});
    kernel.geometry = geometry->second;
    AddCollective(event, static_cast<uint32_t>(profile_.kernels.size()));
    profile_.kernels.push_back(kernel);
  }

  void AddTransfer(const Event& event, int64_t end) {
    Profile::Transfer transfer;
    SetActivity(event, end, &transfer);
    transfer.bytes = std::max<int64_t>(event.bytes, -1);
    const auto [name, added] = transfer_name_of_.Find(event.name);
    if (added) profile_.transfer_names.emplace_back(event.name);
    transfer.name = name;
    profile_.transfers.push_back(transfer);
  }

  void AddCall(const Event& event, int64_t duration) {
    if (event.correlation <= 0 && event.external_id <= 0) return;
    SeeProcess(event);
    Profile::Launch call;
    call.start = event.start;
    call.thread = ThreadOf(event.process, event.thread);
    call.nanoseconds = static_cast<uint32_t>(std::min<int64_t>(duration, kNone - 1));
    if (event.correlation <= 0) {
      calls_without_correlation_.emplace(event.external_id, call);
      return;
    }
    const uint32_t index = LaunchOf(event);
    Profile::Launch& launch = profile_.launches[index];
    if (launch.thread != kNone) {
      ++num_duplicate_calls_;
      return;
    }
    launch = call;
    if (event.name.find("GraphLaunch") != std::string_view::npos) graph_launches_.insert(index);
  }

  // "gloo:all_reduce", which tells no group.
  void AddHostCollective(const Event& event, int64_t end) {
    for (const std::string_view prefix : {"gloo:", "mpi:"}) {
      if (event.name.substr(0, prefix.size()) != prefix) continue;
      Profile::CollectiveKind kind;
      kind.name = event.name.substr(prefix.size());
      const std::vector<OpArgument> arguments = ParseArguments(event.dims, event.types, event.inputs);
      const auto tensor = std::find_if(arguments.begin(), arguments.end(),
                                       [](const OpArgument& argument) { return argument.is_tensor; });
      if (tensor != arguments.end()) {
        kind.in_elements = kind.out_elements = 1;
        for (const int64_t size : tensor->shape) kind.out_elements = kind.in_elements *= size;
        if (tensor->dtype.has_value()) kind.dtype = ott::Name(*tensor->dtype);
      }
      const auto [number, added] =
          collective_kind_of_.Find(absl::StrCat(kind.name, "\n", kind.dtype, "\n", kind.in_elements));
      if (added) profile_.collective_kinds.push_back(std::move(kind));
      profile_.host_collectives.push_back({event.start, end, number});
    }
  }

  // They are of all ranks where no other group is told of.
  void AddGroupOfHostCollectives(const TraceHeader& header) {
    std::stable_sort(profile_.host_collectives.begin(), profile_.host_collectives.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
    if (header.groups.size() != 1) return;
    for (const Profile::HostCollective& collective : profile_.host_collectives) {
      Profile::CollectiveKind& kind = profile_.collective_kinds[collective.kind];
      kind.group = header.groups[0].name;
      kind.group_description = header.groups[0].description;
      kind.group_size = header.groups[0].size;
    }
  }

  void AddRange(const Event& event, int64_t end) {
    Profile::Range range;
    range.start = event.start;
    range.end = end;
    range.sequence_number = kNone;
    if (event.sequence_number >= 0) {
      has_sequence_numbers_ = true;
      if (event.sequence_number < int64_t{kNone}) {
        range.sequence_number = static_cast<uint32_t>(event.sequence_number);
      } else {
        ++num_large_sequence_numbers_;
      }
    }
    if (event.kind != Event::Kind::kPython) AddHostCollective(event, end);
    if (event.kind == Event::Kind::kPython) {
      range.label = FrameLabel(event.name);
      if (range.label == kNone) return;
    } else if (event.kind == Event::Kind::kOp) {
      SeeProcess(event);
      range.label = OpLabelOf(event);
      AddCollective(event, kNone);
    } else {
      range.label = AnnotationLabel(event.name);
    }
    const uint32_t thread = ThreadOf(event.process, event.thread);
    if (event.external_id > 0) {
      uint32_t& place = place_of_.At(0, event.external_id);
      if (place != kNone) {
        ++num_duplicate_ops_;
        places_[place].thread = kNone;  // neither is the one
      } else {
        place = static_cast<uint32_t>(places_.size());
        places_.push_back({thread, static_cast<uint32_t>(profile_.threads[thread].ranges.size())});
      }
    }
    profile_.threads[thread].ranges.push_back(range);
    ++profile_.num_ranges;
  }

  uint32_t NewLabel(OpLabel label) {
    profile_.labels.push_back(std::move(label));
    return static_cast<uint32_t>(profile_.labels.size() - 1);
  }

  // Indices of labels by what tells them apart.
  uint32_t* LabelOf(std::string_view key) {
    const auto [number, added] = label_key_of_.Find(key);
    if (added) label_of_key_.push_back(kNone);
    return &label_of_key_[number];
  }

  uint32_t OpLabelOf(const Event& event) {
    key_.assign("o");
    for (const std::string_view part :
         {event.name, event.dims, event.types, event.strides, event.inputs, event.call_stack,
          event.module_hierarchy, event.kernel_flop, event.kernel_num_gb}) {
      key_.append(part).push_back('\0');
    }
    uint32_t* known = LabelOf(key_);
    if (*known != kNone) return *known;
    OpLabel label = ParseLabel({event.name, ", sizes = []", kNoSequenceNumber});
    label.kind = OpLabel::Kind::kOp;
    label.source = SourceOfStack(event.call_stack);
    OpDescription& description = label.description;
    if (description.op.empty()) description.op = event.name;
    description.arguments = ParseArguments(event.dims, event.types, event.inputs);
    AddNumber("kernel_flop", event.kernel_flop, &description.arguments);
    AddNumber("kernel_num_gb", event.kernel_num_gb, &description.arguments);
    // Without the values of what is no tensor, labels are as PyTorch's NVTX ranges have them.
    description.tensors_only = event.inputs.empty();
    label.text = event.name;
    label.shapes = Compact(event.dims);
    label.types = Compact(event.types);
    label.strides = Compact(event.strides);
    label.inputs = Compact(event.inputs);
    label.module_hierarchy = event.module_hierarchy;
    return *known = NewLabel(std::move(label));
  }

  // kNone for frames that tell nothing.
  uint32_t FrameLabel(std::string_view name) {
    const bool is_module = name.substr(0, kModule.size()) == kModule;
    key_.assign("f").append(name);
    uint32_t* known = LabelOf(key_);
    if (*known != kNone) return *known;
    OpLabel label;
    label.kind = is_module ? OpLabel::Kind::kLayer : OpLabel::Kind::kTrace;
    if (is_module) label.text = name.substr(kModule.size());
    if (!is_module) label.source = SourceOfFrame(name);
    if (label.text.empty() && label.source.empty()) return kNone;
    return *known = NewLabel(std::move(label));
  }

  uint32_t AnnotationLabel(std::string_view name) {
    if (name.substr(0, kernels::kStepName.size()) == kernels::kStepName) ++profile_.num_steps;
    key_.assign("a").append(name);
    uint32_t* known = LabelOf(key_);
    if (*known != kNone) return *known;
    return *known = NewLabel(ParseLabel(SplitLabel(name)));
  }

  void AddCollective(const Event& event, uint32_t kernel) {
    const CollectiveArguments& from = event.collective;
    if (from.name.empty()) return;
    Profile::CollectiveKind kind;
    kind.name = from.name;
    const std::optional<DType> dtype = ToDType(from.dtype);
    if (dtype.has_value()) kind.dtype = ott::Name(*dtype);
    kind.group = from.group;
    kind.group_ranks = from.group_ranks;
    kind.group_description = from.group_description;
    kind.in_elements = std::max<int64_t>(from.in_elements, -1);
    kind.out_elements = std::max<int64_t>(from.out_elements, -1);
    kind.group_size = static_cast<int>(std::clamp<int64_t>(from.group_size, -1, 1 << 30));
    key_ = absl::StrCat(kind.name, "\n", kind.dtype, "\n", kind.group, "\n", kind.group_ranks, "\n",
                        kind.in_elements, "\n", kind.out_elements, "\n", kind.group_size);
    const auto [number, added] = collective_kind_of_.Find(key_);
    if (added) profile_.collective_kinds.push_back(std::move(kind));
    Collective collective{number, std::max<int64_t>(from.sequence_number, -1)};
    if (kernel != kNone) {
      collective_of_kernel_[kernel] = collective;
    } else if (event.external_id > 0) {
      if (collective.sequence_number < 0) collective.sequence_number = SequenceNumberIn(event.inputs);
      collective_of_op_[event.external_id] = collective;
    }
  }

  void AddPassFlow(const Event& event) {
    if (event.flow_id < 0 || event.flow_id >= int64_t{kNone}) return;
    flow_ends_[{ThreadOf(event.process, event.thread), event.start}] = static_cast<uint32_t>(event.flow_id);
  }

  void AddDevices(const TraceHeader& header) {
    for (const TraceHeader::Device& from : header.devices) {
      Profile::Device& device = profile_.devices[from.id];
      device.name = from.name;
      device.sm_count = from.sm_count;
      device.compute_major = from.compute_major;
      device.compute_minor = from.compute_minor;
    }
  }

  void FindRangesOfLaunches() {
    profile_.range_of_launch.resize(profile_.launches.size());
    for (uint32_t i = 0; i < profile_.launches.size(); ++i) {
      if (ids_of_launch_[i] == kNoNumber) continue;
      const auto call = calls_without_correlation_.find(ids_of_launch_[i]);
      if (profile_.launches[i].thread == kNone && call != calls_without_correlation_.end()) {
        profile_.launches[i] = call->second;
      }
      const uint32_t place = place_of_.Find(0, ids_of_launch_[i]);
      if (place == kNone || places_[place].thread == kNone) continue;
      profile_.range_of_launch[i] = {places_[place].thread, places_[place].range};
      Profile::Launch& launch = profile_.launches[i];
      if (launch.thread != kNone) continue;
      // Only the op is there, not the call.
      launch.thread = places_[place].thread;
      launch.start = profile_.threads[launch.thread].ranges[places_[place].range].start;
      launch.nanoseconds = kNone;
      ++num_without_call_;
    }
  }

  // Traces of PyTorch 1.8 to 1.11 have arrows alone: their ids serve as sequence numbers.
  void AddSequenceNumbers() {
    if (has_sequence_numbers_) return;
    for (uint32_t thread = 0; thread < profile_.threads.size(); ++thread) {
      for (Profile::Range& range : profile_.threads[thread].ranges) {
        if (profile_.labels[range.label].kind != OpLabel::Kind::kOp) continue;
        const auto end = flow_ends_.find({thread, range.start});
        if (end != flow_ends_.end()) range.sequence_number = end->second;
      }
    }
  }

  void SortKernels() {
    std::vector<uint32_t> order(profile_.kernels.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
      return profile_.kernels[a].start < profile_.kernels[b].start;
    });
    std::vector<Profile::Kernel> sorted;
    sorted.reserve(order.size());
    absl::flat_hash_set<uint32_t> with_kernels;
    for (const uint32_t from : order) {
      Profile::Kernel& kernel = sorted.emplace_back(profile_.kernels[from]);
      kernel.in_graph = graph_launches_.count(kernel.launch) != 0;
      if (kernel.in_graph) with_kernels.insert(kernel.launch);
      CheckOrder(kernel);
      TakeCollective(from, static_cast<uint32_t>(sorted.size() - 1), kernel);
    }
    profile_.kernels = std::move(sorted);
    for (const Profile::Transfer& transfer : profile_.transfers) with_kernels.insert(transfer.launch);
    for (const uint32_t launch : graph_launches_)
      num_without_kernels_ += with_kernels.count(launch) == 0 ? 1 : 0;
    std::stable_sort(
        profile_.transfers.begin(), profile_.transfers.end(),
        [](const Profile::Transfer& a, const Profile::Transfer& b) { return a.start < b.start; });
    for (const Profile::Transfer& transfer : profile_.transfers) CheckOrder(transfer);
  }

  // Takes the kernel's own arguments, else its op's; the sequence number is often the op's alone.
  void TakeCollective(uint32_t from, uint32_t to, const Profile::Kernel& kernel) {
    const auto own = collective_of_kernel_.find(from);
    const int64_t external_id = kernel.launch == kNone ? kNoNumber : ids_of_launch_[kernel.launch];
    const auto op = collective_of_op_.find(external_id);
    const bool has_op = op != collective_of_op_.end() &&
                        KernelKindOf(profile_.kernel_names[kernel.name]) == KernelKind::kCollective;
    if (own == collective_of_kernel_.end() && !has_op) return;
    const Collective& told = own != collective_of_kernel_.end() ? own->second : op->second;
    const int64_t number =
        told.sequence_number < 0 && has_op ? op->second.sequence_number : told.sequence_number;
    profile_.collectives.push_back({to, told.kind, number});
  }

  template <typename Activity>
  void CheckOrder(const Activity& activity) {
    if (activity.launch == kNone) return;
    const Profile::Launch& launch = profile_.launches[activity.launch];
    if (launch.nanoseconds != kNone && activity.start < launch.start) ++num_before_launch_;
  }

  void AddGroupRanks(const TraceHeader& header) {
    for (Profile::CollectiveKind& kind : profile_.collective_kinds) {
      for (const TraceHeader::Group& group : header.groups) {
        if (group.name != kind.group || group.ranks.empty()) continue;
        kind.group_ranks = group.ranks;
        if (kind.group_description.empty()) kind.group_description = group.description;
      }
    }
  }

  void NameProcesses() {
    if (profile_.processes.empty()) profile_.processes.emplace_back();
    for (Profile::Process& process : profile_.processes) {
      const auto name = process_names_.find(process.pid);
      if (name != process_names_.end()) process.name = name->second;
      process.rank = profile_.rank;
    }
    for (const auto& [id, thread] : thread_of_) {
      const auto name = thread_names_.find(id);
      if (name != thread_names_.end()) profile_.threads[thread].name = name->second;
    }
  }

  void Note(int64_t count, const char* what) {
    if (count > 0) profile_.notes.push_back(absl::StrCat(count, " ", what));
  }

  void AddNotes() {
    Note(num_without_time_, "events have no time and were left out");
    Note(num_negative_, "events end before they begin; they count with a duration of 0");
    Note(num_before_launch_,
         "kernels and copies begin before the call that launched them: the clocks of host and device differ");
    Note(num_duplicate_calls_, "calls have a correlation id that another one has; the first one counts");
    Note(num_duplicate_ops_,
         "ops have an External id that another one has; what they launched is found by time");
    Note(num_without_call_, "launches are not in the trace; their kernels' ops are, by External id");
    Note(num_without_kernels_,
         "launches of graphs have no kernels in the trace (ROCm before 7.2.2 leaves them out): the device "
         "was busy where it seems idle");
    Note(num_large_sequence_numbers_, "ops have a sequence number beyond 32 bits, which is left out");
  }

  Profile profile_;
  bool saw_time_ = false;
  std::map<int64_t, std::string> process_names_;
  std::map<std::pair<int64_t, int64_t>, std::string> thread_names_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint32_t> thread_of_;
  int64_t last_pid_ = kNoNumber;
  int64_t last_tid_ = kNoNumber;
  uint32_t last_thread_ = 0;
  std::string key_;
  TextIndex kernel_name_of_, transfer_name_of_, collective_kind_of_, label_key_of_;
  std::vector<uint32_t> label_of_key_;  // by the numbers of label_key_of_
  absl::flat_hash_map<std::array<int64_t, 6>, uint32_t> geometry_of_;
  IdIndex launch_of_;  // by correlation id
  // By External id, which is what ties them to their kernels; the first of those that share one.
  absl::flat_hash_map<int64_t, Profile::Launch> calls_without_correlation_;
  GrowingArray<int64_t> ids_of_launch_;  // External ids, by launch
  absl::flat_hash_set<uint32_t> graph_launches_;
  IdIndex place_of_;  // by External id
  GrowingArray<Place> places_;
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, uint32_t> flow_ends_;  // by thread and start
  bool has_sequence_numbers_ = false;
  absl::flat_hash_map<uint32_t, Collective> collective_of_kernel_;
  absl::flat_hash_map<int64_t, Collective> collective_of_op_;  // by External id
  int64_t num_without_time_ = 0;
  int64_t num_negative_ = 0;
  int64_t num_before_launch_ = 0;
  int64_t num_duplicate_calls_ = 0;
  int64_t num_duplicate_ops_ = 0;
  int64_t num_without_call_ = 0;
  int64_t num_large_sequence_numbers_ = 0;
  int64_t num_without_kernels_ = 0;
};

}  // namespace

absl::StatusOr<kernels::Profile> ReadKinetoProfile(const std::string& path) {
  ProfileBuilder builder(path);
  OTT_ASSIGN_OR_RETURN(const TraceHeader header,
                       ReadTrace(path, [&builder](const Event& event) { builder.Add(event); }));
  return builder.Finish(header);
}

}  // namespace ott::kineto
