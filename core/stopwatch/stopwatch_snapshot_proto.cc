#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/utf8.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {
namespace {

std::string AsUtf8(std::string_view name) {
  std::string result;
  while (true) {
    const size_t valid = ValidUtf8Length(name);
    result += name.substr(0, valid);
    if (valid == name.size()) return result;
    absl::StrAppend(&result, "\\x", absl::Hex(static_cast<unsigned char>(name[valid]), absl::kZeroPad2));
    name.remove_prefix(valid + 1);
  }
}

void ToProto(const IterationSeries& series, Series* proto) {
  proto->set_stride(series.stride());
  proto->mutable_seconds()->Add(series.values().begin(), series.values().end());
}

void ToProto(const SteadyTime& time, SteadyTimeStats* proto) {
  proto->set_seconds(time.seconds);
  proto->set_standard_error(time.standard_error);
  proto->set_degrees_of_freedom(time.degrees_of_freedom);
  proto->set_count(time.count);
  proto->set_block_iterations(time.block_iterations);
  proto->mutable_block()->Add(time.blocks.begin(), time.blocks.begin() + time.num_blocks);
}

void ToProto(const OwnTime& time, OwnTimeStats* proto) {
  if (time.all.has_value()) ToProto(*time.all, proto->mutable_all());
  if (time.window.has_value()) ToProto(*time.window, proto->mutable_window());
  if (time.all_with_taken.has_value()) ToProto(*time.all_with_taken, proto->mutable_all_with_taken());
  if (time.window_with_taken.has_value())
    ToProto(*time.window_with_taken, proto->mutable_window_with_taken());
}

void ToProto(const StopwatchSnapshot::Measurement& measurement, Measurement* proto) {
  proto->set_name(AsUtf8(measurement.name));
  proto->set_collective(measurement.collective);
  proto->set_sampled(measurement.sampled);
  *proto->mutable_per_interval() = measurement.per_interval.ToProto();
  *proto->mutable_per_iteration() = measurement.per_iteration.ToProto();
  if (measurement.device_per_interval.count() > 0) {
    *proto->mutable_device_per_interval() = measurement.device_per_interval.ToProto();
  }
  ToProto(measurement.series, proto->mutable_series());
  if (!measurement.collective) ToProto(measurement.own, proto->mutable_own());
}

void ToProto(const StopwatchSnapshot::Scope& scope, ScopeStats* proto) {
  proto->set_name(AsUtf8(scope.name));
  proto->set_count(scope.count);
  proto->set_inclusive(scope.inclusive);
  proto->set_exclusive(scope.exclusive);
  for (const StopwatchSnapshot::Scope& inner : scope.inner) ToProto(inner, proto->add_inner());
}

// Adds, by name, the measurement that each one first ran inside of.
void AddOuter(const StopwatchSnapshot::Scope& scope, std::map<std::string_view, std::string_view>& outer) {
  for (const StopwatchSnapshot::Scope& inner : scope.inner) {
    if (inner.name != scope.name) outer.try_emplace(inner.name, scope.name);
    AddOuter(inner, outer);
  }
}

}  // namespace

void ToProto(const StopwatchSnapshot& snapshot, StopwatchStats* stats) {
  StopwatchStats proto;
  proto.set_host(stats->host());
  proto.set_rank(stats->rank());
  proto.set_world_size(stats->world_size());
  proto.set_num_warmup_iters(snapshot.num_warmup_iters);
  proto.set_num_measured_iters(snapshot.num_measured_iters);
  *proto.mutable_iteration() = snapshot.iteration.ToProto();
  ToProto(snapshot.iteration_series, proto.mutable_iteration_series());
  std::set<std::string_view> outermost;
  std::map<std::string_view, std::string_view> outer;
  for (const auto& scope : snapshot.scopes) {
    outermost.insert(scope.name);
    AddOuter(scope, outer);
  }
  for (const auto& measurement : snapshot.measurements) {
    Measurement& added = *proto.add_measurements();
    ToProto(measurement, &added);
    added.set_outermost(outermost.count(measurement.name) > 0);
    if (const auto found = outer.find(measurement.name); found != outer.end())
      added.set_outer(AsUtf8(found->second));
  }
  for (const auto& scope : snapshot.scopes) ToProto(scope, proto.add_scopes());
  for (const auto& one_time : snapshot.one_time) {
    OneTimeMeasurement& added = *proto.add_one_time();
    added.set_name(AsUtf8(one_time.name));
    added.set_seconds(one_time.seconds);
    added.set_running(one_time.running);
  }
  if (!snapshot.cpu_usage_measurement.empty()) {
    CpuUsageStats& cpu_usage = *proto.mutable_cpu_usage();
    cpu_usage.set_measurement(AsUtf8(snapshot.cpu_usage_measurement));
    cpu_usage.set_all_percent(snapshot.cpu_usage.all_percent());
    cpu_usage.set_process_user_percent(snapshot.cpu_usage.process_user_percent());
    cpu_usage.set_process_system_percent(snapshot.cpu_usage.process_system_percent());
    cpu_usage.set_duration(snapshot.cpu_usage.duration());
  }
  OwnWorkStats& own_work = *proto.mutable_own_work();
  own_work.set_waiting_seconds(snapshot.own_work.waiting_seconds);
  own_work.set_num_watched_iters(snapshot.own_work.num_watched_iters);
  own_work.set_cpu_seconds(snapshot.own_work.cpu_seconds);
  own_work.set_taken_seconds(snapshot.own_work.taken_seconds);
  ToProto(snapshot.own_work.time, own_work.mutable_time());
  proto.set_observer_seconds_per_interval(snapshot.observer_seconds_per_interval);
  proto.set_num_pending_device_intervals(snapshot.num_pending_device_intervals);
  for (const MisuseCount& misuse : snapshot.misuses) {
    Misuse& added = *proto.add_misuses();
    added.set_kind(AsUtf8(misuse.kind));
    added.set_count(misuse.count);
  }
  *stats = std::move(proto);
}

}  // namespace ott
