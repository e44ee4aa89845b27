#include "tools/prof/profile_rows.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace ott::prof {
namespace {

std::string Joined(const std::array<int64_t, 3>& sizes) {
  return absl::StrCat(sizes[0], ",", sizes[1], ",", sizes[2]);
}

std::string_view TextOf(const KernelJoin& join, uint32_t text) {
  return text == kNone ? std::string_view() : std::string_view(join.texts[text]);
}

int64_t OrNone(uint32_t number) { return number == kNone ? kNoInteger : int64_t{number}; }

std::string_view StateName(KernelJoin::State state) {
  switch (state) {
    case KernelJoin::State::kOp:
      return "op";
    case KernelJoin::State::kNoOp:
      return "no_op";
    case KernelJoin::State::kNoRange:
      return "no_range";
    case KernelJoin::State::kNoLaunch:
      break;
  }
  return "no_launch";
}

bool MultipliesMatrices(KernelKind kind) { return kind != KernelKind::kOther; }

}  // namespace

ProfileRows::ProfileRows(const Profile& profile, const KernelJoin& join, std::optional<DevicePeaks> gpu)
    : profile_(profile), join_(join), gpu_(std::move(gpu)) {
  for (const Profile::Geometry& geometry : profile.geometries) {
    geometries_.emplace_back(Joined(geometry.grid), Joined(geometry.block));
  }
  for (const auto& [number, device] : profile.devices) {
    std::optional<DevicePeaks> peaks = PeaksByName(device.name);
    if (!peaks.has_value()) {
      peaks = PeaksOf(device.name, device.compute_major, device.compute_minor, device.sm_count,
                      device.clock_hz, device.memory_bytes_per_second);
    }
    if (peaks.has_value()) peaks_.emplace(number, *std::move(peaks));
  }
  ReadNames();
  ReadContexts();
  Count();
}

void ProfileRows::ReadNames() {
  for (const std::string& full : profile_.kernel_names) {
    Name& name = names_.emplace_back();
    name.full = full;
    std::replace_if(
        name.full.begin(), name.full.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; }, '_');
    name.brief = BriefKernelName(full);
    name.tensor_cores = TensorCoreUseOf(full);
    name.kind = KernelKindOf(full);
    name.dtype = KernelDType(full);
  }
}

void ProfileRows::ReadContexts() {
  const auto description = [&](uint32_t label) -> const OpDescription& {
    return profile_.labels[label].description;
  };
  for (const LaunchContext& from : join_.contexts) {
    Context& context = contexts_.emplace_back();
    context.layer = TextOf(join_, from.layer);
    context.source = TextOf(join_, from.source);
    context.phase = TextOf(join_, from.phase);
    const bool backward = from.direction == OpDirection::kBackward;
    context.direction = backward ? "bprop" : from.direction == OpDirection::kForward ? "fprop" : "";
    // A backward kernel is named after its forward op, but for collectives of gradients.
    uint32_t named = from.op != kNone && IsCollective(description(from.op)) ? from.op : kNone;
    for (const uint32_t label : {from.forward_marker, from.forward_op, from.backward, from.marker, from.op}) {
      if (named == kNone) named = label;
    }
    if (named != kNone) {
      context.op = description(named).op;
      context.module = description(named).module;
    }
    if (from.module != kNone && context.module.empty()) context.module = TextOf(join_, from.module);
    // Shapes: of the op that was called here, else of the forward op whose backward this is.
    for (const uint32_t label : {from.marker, from.op, from.forward_marker, from.forward_op}) {
      if (context.cost_label != kNone || label == kNone || description(label).arguments.empty()) continue;
      context.cost_label = label;
      const bool called_here = label == from.op || (label == from.marker && from.backward != kNone);
      context.pass = backward && !called_here ? OpPass::kBackward : OpPass::kForward;
    }
  }
}

bool ProfileRows::Before(uint32_t a, uint32_t b) const {
  if (b == kNone) return true;
  const Profile::Kernel& x = profile_.kernels[a];
  const Profile::Kernel& y = profile_.kernels[b];
  const bool x_multiplies = MultipliesMatrices(names_[x.name].kind);
  const bool y_multiplies = MultipliesMatrices(names_[y.name].kind);
  if (x_multiplies != y_multiplies) return x_multiplies;
  return x.end - x.start > y.end - y.start;
}

void ProfileRows::Count() {
  subs_.resize(size());
  gaps_.resize(size());
  carriers_.resize(join_.num_op_instances);
  std::map<std::pair<uint16_t, int16_t>, int64_t> busy_until;
  for (uint32_t i = 0; i < size(); ++i) {
    const Profile::Kernel& kernel = profile_.kernels[i];
    const auto [end, first] = busy_until.try_emplace({kernel.process, kernel.device}, kernel.end);
    gaps_[i] = first ? kNoInteger : std::max<int64_t>(0, kernel.start - end->second);
    end->second = std::max(end->second, kernel.end);
    const uint32_t instance = kernel.launch == kNone ? kNone : join_.launches[kernel.launch].op_instance;
    if (instance == kNone) {
      subs_[i] = kNone;
      continue;
    }
    Carriers& carriers = carriers_[instance];
    subs_[i] = carriers.num_kernels++;
    if (Before(i, carriers.first)) {
      carriers.second = std::exchange(carriers.first, i);
    } else if (Before(i, carriers.second)) {
      carriers.second = i;
    }
  }
}

const ProfileRows::Cost& ProfileRows::CostOfKernel(uint32_t context_index, uint32_t name_index) const {
  std::unique_ptr<Cost>& cost = costs_[{context_index, name_index}];
  if (cost != nullptr) return *cost;
  cost = std::make_unique<Cost>();
  const Context& context = contexts_[context_index];
  const Name& name = names_[name_index];
  // What the label does not tell, the kernel's name may.
  OpDescription op = profile_.labels[context.cost_label].description;
  const auto add_attribute = [&](const char* attribute) -> OpArgument& {
    OpArgument& argument = op.arguments.emplace_back();
    argument.name = attribute;
    return argument;
  };
  if (const auto causal = KernelIsCausal(name.full); causal.has_value())
    add_attribute("is_causal").numbers = {*causal ? 1.0 : 0.0};
  if (const auto result = KernelResultDType(name.full); result.has_value())
    add_attribute("out_dtype").text = ott::Name(*result);
  OpPass pass = context.pass;
  if (ComputesTwoGradients(op, pass)) {
    pass = name.kind == KernelKind::kConvolutionWeightGradient ? OpPass::kWeightGradient
                                                               : OpPass::kInputGradient;
  }
  cost->cost = CostOf(op, pass, name.dtype);
  std::optional<DType> dtype;
  for (const OpArgument& argument : op.arguments) {
    if (!argument.dtype.has_value()) continue;
    if (!dtype.has_value() || (IsFloatingPoint(*argument.dtype) && !IsFloatingPoint(*dtype)))
      dtype = argument.dtype;
  }
  if (!dtype.has_value()) dtype = name.dtype;
  if (dtype.has_value()) cost->dtype = ott::Name(*dtype);
  return *cost;
}

void ProfileRows::SetRoof(const Profile::Kernel& kernel, const Name& name, std::string_view dtype,
                          KernelRow* row) const {
  const auto known = peaks_.find(kernel.device);
  const DevicePeaks* peaks = known != peaks_.end() ? &known->second : gpu_.has_value() ? &*gpu_ : nullptr;
  if (peaks == nullptr || row->sil <= 0) return;
  const double seconds = static_cast<double>(row->sil) * 1e-9;
  const auto type = ParseDType(dtype);
  const std::optional<double> flops_peak = type.ok() && name.tensor_cores != TensorCoreUse::kUnknown
                                               ? peaks->Flops(*type, name.tensor_cores == TensorCoreUse::kYes)
                                               : std::nullopt;
  const double compute = row->flops == 0          ? 0
                         : flops_peak.has_value() ? row->flops / seconds / *flops_peak
                                                  : KernelRow::kUnknown;
  const double memory = peaks->memory > 0 ? row->bytes / seconds / peaks->memory : KernelRow::kUnknown;
  // Both must be known to say which one limits.
  if (!(compute >= 0) || !(memory >= 0)) return;
  row->roof = compute >= memory ? "compute" : "memory";
  row->percent_peak = 100 * std::max(compute, memory);
}

void ProfileRows::Get(size_t index, KernelRow* row) const {
  const Profile::Kernel& kernel = profile_.kernels[index];
  const Name& name = names_[kernel.name];
  const Profile::Process& process = profile_.processes[kernel.process];
  *row = KernelRow();
  row->idx = static_cast<int64_t>(index) + 1;
  row->pid = process.pid;
  row->rank = process.rank < 0 ? kNoInteger : process.rank;
  row->device = kernel.device < 0 ? kNoInteger : kernel.device;
  row->stream = kernel.stream < 0 ? kNoInteger : kernel.stream;
  row->start = kernel.start - profile_.first_time;
  row->sil = kernel.end - kernel.start;
  row->gap = gaps_[index];
  row->kernel = name.brief;
  row->name = name.full;
  row->tc = name.tensor_cores == TensorCoreUse::kYes  ? "1"
            : name.tensor_cores == TensorCoreUse::kNo ? "0"
                                                      : "";
  row->grid = geometries_[kernel.geometry].first;
  row->block = geometries_[kernel.geometry].second;
  row->sub = OrNone(subs_[index]);
  const KernelJoin::State state = join_.StateOf(profile_, kernel.launch);
  row->join = kernel.in_graph && state != KernelJoin::State::kNoLaunch ? "graph" : StateName(state);
  if (name.dtype.has_value()) row->dtype = ott::Name(*name.dtype);
  if (state == KernelJoin::State::kNoLaunch) return;
  const Profile::Launch& call = profile_.launches[kernel.launch];
  const KernelJoin::Launch& launch = join_.launches[kernel.launch];
  row->tid = profile_.threads[call.thread].tid;
  row->latency = kernel.start - call.start;
  row->seq = OrNone(launch.sequence_number);
  row->altseq = OrNone(launch.other_sequence_number);
  if (state == KernelJoin::State::kNoRange) return;
  const Context& context = contexts_[launch.context];
  row->layer = context.layer;
  row->trace = context.source;
  row->phase = context.phase;
  // A graph's launch lies in one range, its kernels come from the many ops that were captured.
  if (kernel.in_graph) return;
  row->dir = context.direction;
  row->mod = context.module;
  row->op = context.op;
  if (context.cost_label == kNone || launch.op_instance == kNone) return;
  const Cost& cost = CostOfKernel(launch.context, kernel.name);
  row->params = cost.cost.params;
  row->dtype = cost.dtype;
  const Carriers& carriers = carriers_[launch.op_instance];
  const bool carries = carriers.first == index ||
                       (carriers.second == index && MultipliesMatrices(name.kind) &&
                        ComputesTwoGradients(profile_.labels[context.cost_label].description, context.pass));
  if (!carries) {
    row->counted_elsewhere = true;
    return;
  }
  row->flops = cost.cost.flops.value_or(KernelRow::kUnknown);
  row->bytes = cost.cost.bytes.value_or(KernelRow::kUnknown);
  row->message_bytes = cost.cost.message_bytes.value_or(KernelRow::kUnknown);
  row->bus_bytes = cost.cost.bus_bytes.value_or(KernelRow::kUnknown);
  SetRoof(kernel, name, cost.dtype, row);
}

}  // namespace ott::prof
