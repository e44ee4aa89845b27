// Rows of any profile against the rules, written once more.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <list>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/check.h"
#include "ott/core/base/glob.h"
#include "ott/core/kernel_profile/label_table.h"
#include "ott/core/op_cost/kernel_name.h"
#include "ott/core/op_cost/op_cost.h"
#include "ott/questions/kernels/profile_rows.h"

namespace ott::kernels {
namespace {

// A collective as a trace tells it, and what it costs; NaN: not known.
struct TracedCollective {
  Profile::CollectiveKind kind;  // elements in and out, and ranks
  double flops, message_bytes, bus_bytes;
};
const TracedCollective kCollectives[] = {
    {{"allreduce", "float32", "", "", "", 100, 100, 4}, 75, 400, 600},
    {{"allreduce", "float32", "", "", "", 3, 3, 1}, 0, 12, 0},
    {{"allreduce", "float32", "", "", "", 3, 3, -1}, NAN, 12, NAN},
    {{"allreduce", "float32", "", "", "", 3, 3, 0}, NAN, 12, NAN},
    {{"broadcast", "", "", "", "", -1, 7, 2}, 0, NAN, NAN},
    // The message is what all ranks have together, though only a rank's part is told.
    {{"allgather", "float16", "", "", "", 7, -1, 4}, 0, 56, 42},
    {{"allgather", "float16", "", "", "", 0, 8, 4}, 0, 16, 12},
    {{"send", "float16", "", "", "", 1000, 1000, 8}, 0, 2000, 2000},
    {{"reduce_scatter", "bfloat16", "", "", "", -1, 5, 2}, NAN, NAN, NAN},
};

// Holds any profile and join, which need not be of one program, and says by the rules what its rows are.
struct AnyProfile {
  // A kernel, or a copy or memset.
  struct Activity {
    int64_t start, end, bytes;
    uint32_t name, geometry, launch;
    int32_t stream;
    uint16_t process;
    int16_t device;
    bool is_transfer, in_graph;
    uint32_t collective = kNone;

    int64_t time() const { return end - start; }
  };

  static constexpr const char* kLabels[] = {
      "aten::mm, sizes = [[16, 8], [8, 5]]",
      "aten::relu, seq = 1",
      "AddmmBackward0, seq = 1",
      "c10d::allreduce_, sizes = [[1000]]",
      "aten::convolution_backward, sizes = [[1, 4, 3, 3], [1, 2, 5, 5], [4, 2, 3, 3], [], [], []]",
      "aten::_flash_attention_forward, sizes = [[1, 4, 1, 2], [1, 4, 1, 2], [1, 4, 1, 2]]",
      "aten::_scaled_mm, sizes = [[32, 16], [16, 64]]",
      kLinear,
      R"({"op":"embedding","args":[{"dtype":"int64","shape":[3]},{"dtype":"float16","shape":[9,4]}]})",
      R"({"op":"_scaled_mm","module":"m","args":[{"dtype":"float8_e4m3fn","shape":[24,16]},)"
      R"({"dtype":"float8_e4m3fn","shape":[16,64]}]})",
      R"({"op":"clone","args":[{"dtype":"int64","shape":[1000]}]})",
      R"({"op":"mm","args":[{"dtype":"int8","shape":[32,24]},{"dtype":"int8","shape":[24,16]}]})",
  };
  static constexpr int64_t kMost = (int64_t{1} << 31) - 1;  // blocks that a device has in a dimension
  static constexpr uint32_t kNumOps = 7;                    // the other labels are markers

  explicit AnyProfile(std::mt19937& random) : random_(random) {
    LabelTable table;
    for (const char* const text : kLabels) OTT_CHECK(table.Find(text).first < std::size(kLabels));
    profile.labels = table.TakeLabels();
    for (const uint32_t label : {0, 4}) {
      profile.labels[label].shapes = absl::StrCat("[", label, "]");
      profile.labels[label].types = absl::StrCat("types ", label);
      profile.labels[label].strides = absl::StrCat("strides ", label);
      profile.labels[label].inputs = absl::StrCat("inputs ", label);
    }
    const std::string flash = "void flash_fwd_kernel<Traits<(int)2, cutlass::bfloat16_t>, (bool)0, (bool)";
    profile.kernel_names = {"volta_h884gemm_128x64",
                            "ampere_sgemm_128x64_tn",
                            "reduce_kernel",
                            "sm80_xmma_dgrad_implicit_gemm_f32f32_tf32f32_f32",
                            "sm80_xmma_wgrad_implicit_gemm_f32f32_tf32f32_f32",
                            "nvjet_qqtst_64x8",
                            "triton_mm",
                            " a\t\x7f!",
                            flash + "0, (bool)0>(Params)",
                            flash + "1, (bool)0>(Params)"};
    profile.transfer_names = {"memset", "memcpy to\tdevice"};
    profile.geometries = {{{2, 3, 4}, {32, 1, 1}},
                          {{kMost, 1, 6}, {5, 6, 7}},
                          {{0, 1, 1}, {0, 0, 0}},
                          {{2, -1, -1}, {1, 1, 1}},
                          {{kMost, kMost, 4}, {1, 1, 1}}};
    profile.devices[0].name = "Tesla V100-SXM2-16GB";
    profile.devices[1] = {"some A100", 108, 8, 0, 1.41e9, 1.5e12};
    profile.devices[2] = {"no name", 108, 8, 0, 1.41e9, 1.5e12};
    profile.devices[3].name = "unknown";
    profile.devices[4] = {"no memory", 108, 8, 0, 1.41e9, 0};
    profile.processes.resize(2);
    profile.processes[0].pid = 10;
    profile.processes[1] = {11, "", 4};
    profile.threads.resize(2);
    profile.threads[0].tid = 20;
    profile.threads[1].tid = 21;
    profile.first_time = Below(5);
    for (const TracedCollective& of : kCollectives) profile.collective_kinds.push_back(of.kind);
    if (Below(2) == 0) gpu = PeaksByName("H100");
    at = std::vector<std::string>{"", "", "m*,relu", "allreduce_,"}[static_cast<size_t>(Below(4))];

    join.texts = {"layer", "line", "module", "phase"};
    const auto any = [&](uint32_t first, uint32_t end) {
      return Below(3) == 0 ? first + static_cast<uint32_t>(Below(end - first)) : kNone;
    };
    for (uint32_t i = 0; i < 6; ++i) {
      LaunchContext& context = join.contexts.emplace_back();
      for (uint32_t* op : {&context.op, &context.forward_op}) *op = any(0, kNumOps);
      for (uint32_t* marker : {&context.marker, &context.forward_marker})
        *marker = any(kNumOps, std::size(kLabels));
      context.backward = any(2, 3);
      for (uint32_t* text : {&context.layer, &context.source, &context.module, &context.phase})
        *text = any(0, 4);
      const uint32_t outer = any(0, i + 1);
      if (context.op != kNone && outer != kNone && outer < i && join.contexts[outer].op != kNone)
        context.outer = outer;
      context.direction =
          std::array{OpDirection::kUnknown, OpDirection::kForward, OpDirection::kBackward}[Below(3)];
    }
    join.num_op_instances = 3;
    for (int i = 0; i < 6; ++i) {
      Profile::Launch& launch = profile.launches.emplace_back();
      KernelJoin::Launch& joined = join.launches.emplace_back();
      launch.start = Below(20);
      launch.nanoseconds = Below(3) == 0 ? kNone : 5;
      if (Below(8) == 0) continue;
      launch.thread = static_cast<uint32_t>(Below(2));
      if (Below(8) == 0) continue;
      joined.context = static_cast<uint32_t>(Below(6));
      joined.sequence_number = any(0, 9);
      joined.other_sequence_number = any(0, 9);
      if (Below(8) > 0) joined.op_instance = static_cast<uint32_t>(Below(3));
    }
    for (int64_t i = Below(12); i > 0; --i) {
      const int64_t start = 20 + Below(100), time = Below(9) == 0    ? 0
                                                    : Below(20) == 0 ? 3'000'000'000
                                                                     : Below(30);
      const auto index = static_cast<uint32_t>(Below(7));
      activities.push_back({start, start + time, Below(3) == 0 ? -1 : Below(1000),
                            static_cast<uint32_t>(Below(10)), static_cast<uint32_t>(Below(5)),
                            index == 6 ? kNone : index, static_cast<int32_t>(Below(3) - 1),
                            static_cast<uint16_t>(Below(2)), static_cast<int16_t>(Below(7) - 1),
                            Below(4) == 0, Below(8) == 0});
    }
    std::stable_sort(activities.begin(), activities.end(), [](const Activity& a, const Activity& b) {
      return std::pair(a.start, a.is_transfer) < std::pair(b.start, b.is_transfer);
    });
    const bool has_collectives = Below(2) == 0;
    for (Activity& of : activities) {
      if (of.is_transfer) {
        of.name %= 2;
        profile.transfers.push_back(
            {of.start, of.end, of.bytes, of.name, of.launch, of.stream, of.process, of.device});
        continue;
      }
      if (has_collectives && Below(3) == 0) {
        of.collective = static_cast<uint32_t>(Below(std::size(kCollectives)));
        profile.collectives.push_back({static_cast<uint32_t>(profile.kernels.size()), of.collective});
      }
      profile.kernels.push_back(
          {of.start, of.end, of.name, of.geometry, of.launch, of.stream, of.process, of.device, of.in_graph});
    }
  }

  int64_t Below(int64_t end) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(end)); }

  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  std::string_view Words(std::string name) {
    for (char& c : name) c = (c > ' ' || c < 0) && c != 0x7f ? c : '_';
    return Keep(std::move(name));
  }
  const OpDescription& Of(uint32_t label) const { return profile.labels[label].description; }
  // The first that there is.
  static uint32_t First(std::initializer_list<uint32_t> of) {
    const auto found = std::find_if(of.begin(), of.end(), [](uint32_t label) { return label != kNone; });
    return found == of.end() ? kNone : *found;
  }
  uint32_t InstanceOf(const Activity& of) const {
    return of.launch == kNone ? kNone : join.launches[of.launch].op_instance;
  }
  bool Multiplies(const Activity& of) const {
    return KernelKindOf(profile.kernel_names[of.name]) != KernelKind::kOther;
  }

  std::optional<DevicePeaks> PeaksOfDevice(int number) const {
    const auto known = profile.devices.find(number);
    if (known == profile.devices.end()) return gpu;
    const Profile::Device& device = known->second;
    std::optional<DevicePeaks> peaks = PeaksByName(device.name);
    if (!peaks)
      peaks = PeaksOf(device.name, device.compute_major, device.compute_minor, device.sm_count,
                      device.clock_hz, device.memory_bytes_per_second);
    return peaks ? peaks : gpu;
  }

  KernelRow RowOf(size_t index) {
    const Activity& of = activities[index];
    const uint32_t instance = InstanceOf(of);
    KernelRow row;
    row.idx = static_cast<int64_t>(index) + 1;
    if (instance != kNone) row.sub = 0;
    std::optional<int64_t> busy_until;
    for (const Activity& before : std::vector(activities.begin(), activities.begin() + row.idx - 1)) {
      if (instance != kNone && InstanceOf(before) == instance) ++row.sub;
      if (before.process == of.process && before.device == of.device)
        busy_until = std::max(busy_until.value_or(0), before.end);
    }
    if (busy_until) row.gap = std::max<int64_t>(0, of.start - *busy_until);
    row.pid = profile.processes[of.process].pid;
    if (of.process == 1) row.rank = 4;
    if (of.device >= 0) row.device = of.device;
    if (of.stream >= 0) row.stream = of.stream;
    row.start = of.start - profile.first_time;
    row.sil = of.time();
    if (of.is_transfer) {
      row.kernel = row.name = Words(profile.transfer_names[of.name]);
      row.tc = "0";
      row.flops = 0;
      row.call = row.sil;
      if (of.bytes >= 0) row.bytes = static_cast<double>(of.bytes);
    } else {
      const std::string& name = profile.kernel_names[of.name];
      row.name = Words(name);
      row.kernel = Keep(BriefKernelName(name));
      const TensorCoreUse use = TensorCoreUseOf(name);
      row.tc = use == TensorCoreUse::kYes ? "1" : use == TensorCoreUse::kNo ? "0" : "";
      const Profile::Geometry& geometry = profile.geometries[of.geometry];
      row.grid = Keep(absl::StrJoin(geometry.grid, ","));
      row.block = Keep(absl::StrJoin(geometry.block, ","));
      row.blocks = std::array<int64_t, 5>{24, 6 * kMost, kNoInteger, kNoInteger, kNoInteger}[of.geometry];
      if (const auto dtype = KernelDType(name)) row.dtype = Name(*dtype);
    }
    SetLaunch(of, &row);
    if (of.collective != kNone) {
      const TracedCollective& told = kCollectives[of.collective];
      row.dtype = told.kind.dtype;
      row.call = row.sil;
      row.counted_elsewhere = false;
      row.flops = told.flops;
      row.message_bytes = told.message_bytes;
      row.bus_bytes = row.bytes = told.bus_bytes;
    }
    return row;
  }

  static void SetCost(const OpCost& cost, KernelRow* row) {
    row->flops = cost.flops.value_or(NAN);
    row->bytes = cost.bytes.value_or(NAN);
    row->message_bytes = cost.message_bytes.value_or(NAN);
    row->bus_bytes = cost.bus_bytes.value_or(NAN);
  }

  void SetLaunch(const Activity& of, KernelRow* row) {
    row->join = "no_launch";
    if (of.launch == kNone || profile.launches[of.launch].thread == kNone) return;
    const Profile::Launch& call = profile.launches[of.launch];
    const KernelJoin::Launch& launch = join.launches[of.launch];
    row->tid = profile.threads[call.thread].tid;
    if (call.nanoseconds != kNone) row->latency = of.start - call.start;
    if (launch.sequence_number != kNone) row->seq = launch.sequence_number;
    if (launch.other_sequence_number != kNone) row->altseq = launch.other_sequence_number;
    row->join = launch.context == kNone ? "no_range" : "no_op";
    if (launch.context != kNone) {
      const LaunchContext& context = join.contexts[launch.context];
      if (First({context.marker, context.op, context.backward}) != kNone) row->join = "op";
      const auto text = [&](uint32_t number) { return number == kNone ? "" : Keep(join.texts[number]); };
      row->layer = text(context.layer);
      row->trace = text(context.source);
      row->phase = text(context.phase);
      if (!of.in_graph || of.is_transfer) SetOp(of, context, row);
    }
    if (of.in_graph && !of.is_transfer) row->join = "graph";
  }

  void SetOp(const Activity& of, const LaunchContext& context, KernelRow* row) {
    uint32_t asked_for = kNone;
    std::vector<std::string> calls;
    for (const LaunchContext* at_context = &context;; at_context = &join.contexts[at_context->outer]) {
      const uint32_t op = at_context->op;
      if (op != kNone) calls.insert(calls.begin(), profile.labels[op].text);
      for (const std::string& glob : std::vector<std::string>(absl::StrSplit(at, ',', absl::SkipEmpty()))) {
        if (op != kNone && MatchesGlob(Of(op).op, glob)) asked_for = op;
      }
      if (at_context->outer == kNone) break;
    }
    row->calls = Keep(absl::StrJoin(calls, ">"));
    const uint32_t op = First({asked_for, context.op});
    const bool is_backward = context.direction == OpDirection::kBackward;
    row->dir = is_backward ? "bprop" : context.direction == OpDirection::kForward ? "fprop" : "";
    const uint32_t named =
        First({op != kNone && IsCollective(Of(op)) ? op : asked_for, context.forward_marker,
               context.forward_op, context.backward, context.marker, op});
    if (named != kNone) {
      row->op = Of(named).op;
      row->mod = Of(named).module;
    }
    if (row->mod.empty() && context.module != kNone) row->mod = Keep(join.texts[context.module]);
    const auto if_it = [](uint32_t label, bool has) { return label != kNone && has ? label : kNone; };
    const auto with_shapes = [&](uint32_t label) {
      return if_it(label, label != kNone && !profile.labels[label].shapes.empty());
    };
    if (const uint32_t told = First({with_shapes(op), with_shapes(context.forward_op)}); told != kNone) {
      row->shapes = profile.labels[told].shapes;
      row->types = profile.labels[told].types;
      row->strides = profile.labels[told].strides;
      row->inputs = profile.labels[told].inputs;
    }
    const auto with_arguments = [&](uint32_t label) {
      return if_it(label, label != kNone && !Of(label).arguments.empty());
    };
    const uint32_t costs =
        First({with_arguments(context.marker), with_arguments(context.op),
               with_arguments(context.forward_marker), with_arguments(context.forward_op)});
    if (of.is_transfer || costs == kNone || InstanceOf(of) == kNone) return;
    const bool called_here = costs == context.op || (costs == context.marker && context.backward != kNone);
    SetCostOfOp(of, Of(costs), is_backward && !called_here ? OpPass::kBackward : OpPass::kForward, row);
  }

  void SetCostOfOp(const Activity& of, OpDescription op, OpPass pass, KernelRow* row) {
    const std::string& name = profile.kernel_names[of.name];
    const KernelKind kind = KernelKindOf(name);
    const bool two_gradients = ComputesTwoGradients(op, pass);
    // The kernels of the call, those that multiply matrices first, and then the longest.
    std::vector<const Activity*> call;
    int64_t time = 0;
    for (const Activity& other : activities) {
      if (other.is_transfer || InstanceOf(other) != InstanceOf(of)) continue;
      call.push_back(&other);
      time += other.time();
    }
    std::stable_sort(call.begin(), call.end(), [&](const Activity* a, const Activity* b) {
      return std::pair(Multiplies(*a), a->time()) > std::pair(Multiplies(*b), b->time());
    });
    const bool is_second = call.size() > 1 && call[1] == &of;
    row->counted_elsewhere = call[0] != &of && !(is_second && Multiplies(of) && two_gradients);
    row->dtype = "";
    const auto dtype_of = [&](bool floating_point) -> std::optional<DType> {
      for (const OpArgument& argument : op.arguments) {
        if (argument.dtype && (!floating_point || IsFloatingPoint(*argument.dtype))) return argument.dtype;
      }
      return std::nullopt;
    };
    std::optional<DType> dtype = dtype_of(true);
    if (!dtype) dtype = dtype_of(false);
    if (!dtype) dtype = KernelDType(name);
    if (dtype) row->dtype = Name(*dtype);
    // The name tells what the label does not.
    if (const auto causal = KernelIsCausal(name)) {
      op.arguments.emplace_back().name = "is_causal";
      op.arguments.back().numbers = {*causal ? 1.0 : 0.0};
    }
    if (const auto result = KernelResultDType(name)) {
      op.arguments.emplace_back().name = "out_dtype";
      op.arguments.back().text = Name(*result);
    }
    if (two_gradients) {
      pass =
          kind == KernelKind::kConvolutionWeightGradient ? OpPass::kWeightGradient : OpPass::kInputGradient;
    }
    const OpCost cost = CostOf(op, pass, KernelDType(name));
    row->params = Keep(cost.params);
    const bool is_narrow = row->dtype == "float8_e4m3fn" || row->dtype == "int8";
    const int64_t step = is_narrow ? 16 : row->dtype == "float16" || row->dtype == "bfloat16" ? 8 : 0;
    if (step > 0 && !cost.matrix_sizes.empty()) {
      row->odd = 0;
      for (const int64_t size : cost.matrix_sizes) row->odd |= size % step != 0 ? 1 : 0;
    }
    if (row->counted_elsewhere) return;
    // A call's time is told up to 4.29 s.
    row->call = two_gradients ? row->sil : std::max(row->sil, std::min<int64_t>(time, kNone));
    SetCost(cost, row);
    const std::optional<DevicePeaks> peaks = PeaksOfDevice(of.device);
    if (!peaks || row->call <= 0 || peaks->memory <= 0) return;
    const double seconds = static_cast<double>(row->call) * 1e-9;
    const double memory = row->bytes / seconds / peaks->memory;
    double compute = row->flops == 0 ? 0 : NAN;
    if (row->flops > 0 && dtype && TensorCoreUseOf(name) != TensorCoreUse::kUnknown)
      compute = row->flops / seconds /
                peaks->Flops(*dtype, TensorCoreUseOf(name) == TensorCoreUse::kYes).value_or(NAN);
    if (std::isnan(memory) || std::isnan(compute)) return;
    row->roof = compute >= memory ? "compute" : "memory";
    row->percent_peak = 100 * std::max(compute, memory);
  }

  std::mt19937& random_;
  std::list<std::string> texts_;
  Profile profile;
  KernelJoin join;
  std::string at;
  std::optional<DevicePeaks> gpu;
  std::vector<Activity> activities;
};

TEST(ProfileRows, AnyRowsAreWhatTheRulesSay) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    AnyProfile any(random);
    const ProfileRows rows(any.profile, any.join, any.gpu, any.at);
    ASSERT_EQ(rows.size(), any.activities.size());
    std::set<std::string> without_peaks;
    for (const auto& [number, device] : any.profile.devices) {
      if (!any.PeaksOfDevice(number)) without_peaks.insert(device.name);
    }
    EXPECT_EQ(rows.DevicesWithoutPeaks(), without_peaks);
    for (size_t i = 0; i < rows.size(); ++i) {
      KernelRow row;
      rows.Get(i, &row);
      const KernelRow expected = any.RowOf(i);
      for (const auto field : {&KernelRow::idx, &KernelRow::seq, &KernelRow::altseq, &KernelRow::pid,
                               &KernelRow::tid, &KernelRow::rank, &KernelRow::sub, &KernelRow::device,
                               &KernelRow::stream, &KernelRow::start, &KernelRow::sil, &KernelRow::latency,
                               &KernelRow::gap, &KernelRow::blocks, &KernelRow::odd, &KernelRow::call})
        EXPECT_EQ(row.*field, expected.*field);
      for (const auto field :
           {&KernelRow::layer,  &KernelRow::trace,  &KernelRow::dir,     &KernelRow::mod,
            &KernelRow::op,     &KernelRow::kernel, &KernelRow::name,    &KernelRow::params,
            &KernelRow::dtype,  &KernelRow::tc,     &KernelRow::grid,    &KernelRow::block,
            &KernelRow::phase,  &KernelRow::join,   &KernelRow::roof,    &KernelRow::calls,
            &KernelRow::shapes, &KernelRow::types,  &KernelRow::strides, &KernelRow::inputs})
        EXPECT_EQ(row.*field, expected.*field);
      for (const auto field : {&KernelRow::flops, &KernelRow::bytes, &KernelRow::message_bytes,
                               &KernelRow::bus_bytes, &KernelRow::share, &KernelRow::percent_peak})
        EXPECT_THAT(row.*field, testing::NanSensitiveDoubleEq(expected.*field));
      EXPECT_EQ(row.counted_elsewhere, expected.counted_elsewhere);
      KernelRow again;
      rows.Get(i, &again);
      EXPECT_EQ(again.params.data(), row.params.data()) << "texts live as long as their source";
      ASSERT_FALSE(HasFailure()) << trial << " " << i;
    }
  }
}

}  // namespace
}  // namespace ott::kernels
