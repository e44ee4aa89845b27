#include "ott/questions/kernels/profile_rows.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/glob.h"
#include "ott/questions/kernels/collective_cost.h"

namespace ott::kernels {
namespace {

std::string Joined(const std::array<int64_t, 3>& sizes) {
  return absl::StrCat(sizes[0], ",", sizes[1], ",", sizes[2]);
}

// kNoInteger for sizes that are not told, or that no device has.
int64_t NumBlocks(const std::array<int64_t, 3>& grid) {
  int64_t blocks = 1;
  for (const int64_t size : grid) {
    if (size <= 0 || __builtin_mul_overflow(blocks, size, &blocks)) return kNoInteger;
  }
  return blocks;
}

// Returns 1 if one of the sizes is no multiple of a Tensor Core's step for the type, else 0; kNoInteger for
// ops and types that Tensor Cores do not compute.
int64_t HasOddSize(const std::vector<int64_t>& sizes, std::string_view dtype) {
  const bool narrow = dtype.substr(0, 6) == "float8" || dtype == "int8";
  const int64_t step = narrow ? 16 : dtype == "float16" || dtype == "bfloat16" ? 8 : 0;
  if (sizes.empty() || step == 0) return kNoInteger;
  return std::any_of(sizes.begin(), sizes.end(), [step](int64_t size) { return size % step != 0; }) ? 1 : 0;
}

std::string_view TextOf(const KernelJoin& join, uint32_t text) {
  return text == kNone ? std::string_view() : std::string_view(join.texts[text]);
}

int64_t OrNone(uint32_t number) { return number == kNone ? kNoInteger : int64_t{number}; }

void SetFigures(const OpCost& cost, KernelRow* row) {
  row->flops = cost.flops.value_or(KernelRow::kUnknown);
  row->bytes = cost.bytes.value_or(KernelRow::kUnknown);
  row->message_bytes = cost.message_bytes.value_or(KernelRow::kUnknown);
  row->bus_bytes = cost.bus_bytes.value_or(KernelRow::kUnknown);
}

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

ProfileRows::ProfileRows(const Profile& profile, const KernelJoin& join, std::optional<DevicePeaks> gpu,
                         const std::string& at)
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
  // Both are in the order of their starts.
  size_t kernel = 0;
  for (const Profile::Transfer& transfer : profile.transfers) {
    while (kernel < profile.kernels.size() && profile.kernels[kernel].start <= transfer.start) ++kernel;
    rows_of_transfers_.push_back(static_cast<uint32_t>(kernel + rows_of_transfers_.size()));
  }
  if (!profile.collectives.empty()) collective_of_.resize(profile.kernels.size(), kNone);
  for (uint32_t i = 0; i < profile.collectives.size(); ++i) collective_of_[profile.collectives[i].kernel] = i;
  ReadNames();
  ReadContexts(at);
  Count();
}

std::set<std::string> ProfileRows::DevicesWithoutPeaks() const {
  std::set<std::string> names;
  for (const auto& [number, device] : profile_.devices) {
    if (!gpu_.has_value() && peaks_.count(number) == 0) names.insert(device.name);
  }
  return names;
}

ProfileRows::Activity ProfileRows::ActivityOf(size_t row) const {
  const auto after = std::lower_bound(rows_of_transfers_.begin(), rows_of_transfers_.end(), row);
  const auto transfer = static_cast<uint32_t>(after - rows_of_transfers_.begin());
  if (after != rows_of_transfers_.end() && *after == row) return {kNone, transfer};
  return {static_cast<uint32_t>(row) - transfer, kNone};
}

void ProfileRows::ReadNames() {
  const auto without_spaces = [](std::string name) {
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; }, '_');
    return name;
  };
  for (const std::string& full : profile_.kernel_names) {
    Name& name = names_.emplace_back();
    name.full = without_spaces(full);
    name.brief = BriefKernelName(full);
    name.tensor_cores = TensorCoreUseOf(full);
    name.kind = KernelKindOf(full);
    name.dtype = KernelDType(full);
  }
  for (const std::string& name : profile_.transfer_names) transfer_names_.push_back(without_spaces(name));
}

uint32_t ProfileRows::OutermostLike(const std::vector<std::string>& globs,
                                    const LaunchContext& context) const {
  uint32_t found = kNone;
  for (const LaunchContext* at = &context;; at = &join_.contexts[at->outer]) {
    const auto matches = [&](const std::string& glob) {
      return MatchesGlob(profile_.labels[at->op].description.op, glob);
    };
    if (at->op != kNone && std::any_of(globs.begin(), globs.end(), matches)) found = at->op;
    if (at->outer == kNone) return found;
  }
}

void ProfileRows::ReadContexts(const std::string& at) {
  const std::vector<std::string> globs = absl::StrSplit(at, ',', absl::SkipEmpty());
  const auto description = [&](uint32_t label) -> const OpDescription& {
    return profile_.labels[label].description;
  };
  for (const LaunchContext& from : join_.contexts) {
    Context& context = contexts_.emplace_back();
    const uint32_t asked_for = OutermostLike(globs, from);
    const uint32_t op = asked_for != kNone ? asked_for : from.op;
    context.layer = TextOf(join_, from.layer);
    context.source = TextOf(join_, from.source);
    context.phase = TextOf(join_, from.phase);
    const bool backward = from.direction == OpDirection::kBackward;
    context.direction = backward ? "bprop" : from.direction == OpDirection::kForward ? "fprop" : "";
    // A backward kernel is named after its forward op, but for collectives of gradients.
    const bool is_collective = op != kNone && IsCollective(description(op));
    uint32_t named = is_collective ? op : asked_for;
    for (const uint32_t label : {from.forward_marker, from.forward_op, from.backward, from.marker, op}) {
      if (named == kNone) named = label;
    }
    if (named != kNone) {
      context.op = description(named).op;
      context.module = description(named).module;
    }
    if (from.module != kNone && context.module.empty()) context.module = TextOf(join_, from.module);
    const std::string around = from.outer == kNone ? "" : absl::StrCat(contexts_[from.outer].calls, ">");
    if (from.op != kNone) context.calls = absl::StrCat(around, profile_.labels[from.op].text);
    for (const uint32_t label : {op, from.forward_op}) {
      if (context.arguments_label == kNone && label != kNone && !profile_.labels[label].shapes.empty())
        context.arguments_label = label;
    }
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
  const auto count = [&](uint32_t row, const auto& of) -> Carriers* {
    const auto [end, first] = busy_until.try_emplace({of.process, of.device}, of.end);
    gaps_[row] = first ? kNoInteger : std::max<int64_t>(0, of.start - end->second);
    end->second = std::max(end->second, of.end);
    const uint32_t instance = of.launch == kNone ? kNone : join_.launches[of.launch].op_instance;
    subs_[row] = instance == kNone ? kNone : carriers_[instance].num_kernels++;
    return instance == kNone ? nullptr : &carriers_[instance];
  };
  for (uint32_t row = 0; row < size(); ++row) {
    const Activity activity = ActivityOf(row);
    if (activity.kernel == kNone) {
      (void)count(row, profile_.transfers[activity.transfer]);
      continue;
    }
    const uint32_t i = activity.kernel;
    const Profile::Kernel& kernel = profile_.kernels[i];
    Carriers* carriers = count(row, kernel);
    if (carriers == nullptr) continue;
    carriers->nanoseconds =
        static_cast<uint32_t>(std::min<int64_t>(carriers->nanoseconds + (kernel.end - kernel.start), kNone));
    if (Before(i, carriers->first)) {
      carriers->second = std::exchange(carriers->first, i);
    } else if (Before(i, carriers->second)) {
      carriers->second = i;
    }
  }
}

const ProfileRows::Cost& ProfileRows::CostOfKernel(uint32_t context_index, uint32_t name_index) const {
  std::unique_ptr<Cost>& cost = costs_[{context_index, name_index}];
  if (cost != nullptr) return *cost;
  cost = std::make_unique<Cost>();
  const Context& context = contexts_[context_index];
  const Name& name = names_[name_index];
  // The kernel's name may tell what the label does not.
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
  if (peaks == nullptr || row->call <= 0) return;
  const double seconds = static_cast<double>(row->call) * 1e-9;
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

template <typename Of>
bool ProfileRows::SetContext(const Of& of, KernelRow* row) const {
  const Profile::Process& process = profile_.processes[of.process];
  row->pid = process.pid;
  row->rank = process.rank < 0 ? kNoInteger : process.rank;
  row->device = of.device < 0 ? kNoInteger : of.device;
  row->stream = of.stream < 0 ? kNoInteger : of.stream;
  row->start = of.start - profile_.first_time;
  row->sil = of.end - of.start;
  const KernelJoin::State state = join_.StateOf(profile_, of.launch);
  row->join = StateName(state);
  if (state == KernelJoin::State::kNoLaunch) return false;
  const Profile::Launch& call = profile_.launches[of.launch];
  const KernelJoin::Launch& launch = join_.launches[of.launch];
  row->tid = profile_.threads[call.thread].tid;
  if (call.nanoseconds != kNone) row->latency = of.start - call.start;
  row->seq = OrNone(launch.sequence_number);
  row->altseq = OrNone(launch.other_sequence_number);
  if (state == KernelJoin::State::kNoRange) return false;
  const Context& context = contexts_[launch.context];
  row->layer = context.layer;
  row->trace = context.source;
  row->phase = context.phase;
  return true;
}

void ProfileRows::Get(size_t index, KernelRow* row) const {
  *row = KernelRow();
  row->idx = static_cast<int64_t>(index) + 1;
  row->gap = gaps_[index];
  row->sub = OrNone(subs_[index]);
  const Activity activity = ActivityOf(index);
  if (activity.kernel == kNone) return SetTransfer(profile_.transfers[activity.transfer], row);
  const Profile::Kernel& kernel = profile_.kernels[activity.kernel];
  const Name& name = names_[kernel.name];
  row->kernel = name.brief;
  row->name = name.full;
  row->tc = name.tensor_cores == TensorCoreUse::kYes  ? "1"
            : name.tensor_cores == TensorCoreUse::kNo ? "0"
                                                      : "";
  row->grid = geometries_[kernel.geometry].first;
  row->block = geometries_[kernel.geometry].second;
  row->blocks = NumBlocks(profile_.geometries[kernel.geometry].grid);
  if (name.dtype.has_value()) row->dtype = ott::Name(*name.dtype);
  const bool has_context = SetContext(kernel, row);
  if (kernel.in_graph && row->join != "no_launch") row->join = "graph";
  // A graph's launch lies in one range, its kernels come from the many ops that were captured.
  if (has_context && !kernel.in_graph) SetCosts(activity.kernel, row);
  if (!collective_of_.empty() && collective_of_[activity.kernel] != kNone)
    SetCollective(activity.kernel, row);
}

void ProfileRows::SetCosts(uint32_t index, KernelRow* row) const {
  const Profile::Kernel& kernel = profile_.kernels[index];
  const Name& name = names_[kernel.name];
  const KernelJoin::Launch& launch = join_.launches[kernel.launch];
  const Context& context = contexts_[launch.context];
  SetOp(context, row);
  if (context.cost_label == kNone || launch.op_instance == kNone) return;
  const Cost& cost = CostOfKernel(launch.context, kernel.name);
  row->params = cost.cost.params;
  row->dtype = cost.dtype;
  row->odd = HasOddSize(cost.cost.matrix_sizes, cost.dtype);
  const Carriers& carriers = carriers_[launch.op_instance];
  const bool two_gradients =
      ComputesTwoGradients(profile_.labels[context.cost_label].description, context.pass);
  const bool carries =
      carriers.first == index || (carriers.second == index && MultipliesMatrices(name.kind) && two_gradients);
  if (!carries) {
    row->counted_elsewhere = true;
    return;
  }
  row->call = two_gradients ? row->sil : std::max<int64_t>(row->sil, carriers.nanoseconds);
  SetFigures(cost.cost, row);
  SetRoof(kernel, name, cost.dtype, row);
}

void ProfileRows::SetOp(const Context& context, KernelRow* row) const {
  row->dir = context.direction;
  row->mod = context.module;
  row->op = context.op;
  row->calls = context.calls;
  if (context.arguments_label == kNone) return;
  const OpLabel& label = profile_.labels[context.arguments_label];
  row->shapes = label.shapes;
  row->types = label.types;
  row->strides = label.strides;
  row->inputs = label.inputs;
}

// The trace tells the message itself, and the ranks that share it.
void ProfileRows::SetCollective(uint32_t index, KernelRow* row) const {
  const Profile::CollectiveKind& kind =
      profile_.collective_kinds[profile_.collectives[collective_of_[index]].kind];
  row->dtype = kind.dtype;
  row->call = row->sil;
  row->counted_elsewhere = false;
  SetFigures(CostOfCollective(kind), row);
}

// Its bytes are those that the capture tells, once.
void ProfileRows::SetTransfer(const Profile::Transfer& transfer, KernelRow* row) const {
  row->kernel = row->name = transfer_names_[transfer.name];
  row->tc = "0";
  row->flops = 0;
  row->call = transfer.end - transfer.start;
  if (transfer.bytes >= 0) row->bytes = static_cast<double>(transfer.bytes);
  if (!SetContext(transfer, row)) return;
  SetOp(contexts_[join_.launches[transfer.launch].context], row);
}

}  // namespace ott::kernels
