#include <google/protobuf/util/json_util.h>

#include <utility>

#include "ott/core/base/check.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {
namespace {

void ToProto(const IterationSeries& series, Series* proto) {
  proto->set_stride(series.stride());
  proto->mutable_seconds()->Add(series.values().begin(), series.values().end());
}

void ToProto(const StopwatchSnapshot::Measurement& measurement, Measurement* proto) {
  proto->set_name(measurement.name);
  proto->set_collective(measurement.collective);
  *proto->mutable_per_interval() = measurement.per_interval.ToProto();
  *proto->mutable_per_iteration() = measurement.per_iteration.ToProto();
  if (measurement.device_per_interval.count() > 0) {
    *proto->mutable_device_per_interval() = measurement.device_per_interval.ToProto();
  }
  ToProto(measurement.series, proto->mutable_series());
}

void ToProto(const StopwatchSnapshot::Scope& scope, ScopeStats* proto) {
  proto->set_name(scope.name);
  proto->set_count(scope.count);
  proto->set_inclusive(scope.inclusive);
  proto->set_exclusive(scope.exclusive);
  for (const StopwatchSnapshot::Scope& inner : scope.inner) ToProto(inner, proto->add_inner());
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
  for (const auto& measurement : snapshot.measurements) ToProto(measurement, proto.add_measurements());
  for (const auto& scope : snapshot.scopes) ToProto(scope, proto.add_scopes());
  for (const auto& one_time : snapshot.one_time) {
    OneTimeMeasurement& added = *proto.add_one_time();
    added.set_name(one_time.name);
    added.set_seconds(one_time.seconds);
    added.set_running(one_time.running);
  }
  if (!snapshot.cpu_usage_measurement.empty()) {
    CpuUsageStats& cpu_usage = *proto.mutable_cpu_usage();
    cpu_usage.set_measurement(snapshot.cpu_usage_measurement);
    cpu_usage.set_all_percent(snapshot.cpu_usage.all_percent());
    cpu_usage.set_process_user_percent(snapshot.cpu_usage.process_user_percent());
    cpu_usage.set_process_system_percent(snapshot.cpu_usage.process_system_percent());
    cpu_usage.set_duration(snapshot.cpu_usage.duration());
  }
  proto.set_observer_seconds_per_interval(snapshot.observer_seconds_per_interval);
  proto.set_num_pending_device_intervals(snapshot.num_pending_device_intervals);
  proto.set_num_misuses(snapshot.num_misuses);
  *stats = std::move(proto);
}

std::string ToJson(const StopwatchStats& stats) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(stats, &json, options);
  OTT_CHECK(status.ok()) << status.ToString();
  return json;
}

}  // namespace ott
