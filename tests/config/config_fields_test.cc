// Every field of ott.Config is read: one that nothing reads would be set by users in vain.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/base/file.h"

namespace ott {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;

// Returns where the fields of a message are read.
const std::map<std::string, std::vector<std::string>>& Readers() {
  static const auto* const readers = new std::map<std::string, std::vector<std::string>>{
      {"ott.Config",
       {"run/training/rank_op_log.cc", "run/training/rank_trace.cc", "run/training/run_statistics.cc",
        "run/training/tensor_watch.cc", "run/training/training_run.cc", "questions/sound/sound.cc"}},
      {"ott.IterationSelection", {"core/base/iteration_selection_proto.cc"}},
      {"ott.IterationRange", {"core/base/iteration_selection_proto.cc"}},
      {"ott.StopwatchConfig", {"core/stopwatch/stopwatch_proto.cc", "dist/stats/rank_groups.cc"}},
      {"ott.DeviceMesh", {"dist/mesh/rank_mesh.cc"}},
      {"ott.MeshAxis", {"dist/mesh/rank_mesh.cc", "questions/right/layout/run_rules.cc"}},
      {"ott.CollectiveGroups", {"dist/stats/rank_groups.cc"}},
      {"ott.NvtxConfig", {"core/nvtx/nvtx_range_wrapper_proto.cc"}},
      {"ott.OpRangeConfig", {"core/nvtx/op_range_proto.cc", "run/training/training_run.cc"}},
      {"ott.DumpConfig", {"core/dumper/tensor_dumper_proto.cc", "run/training/tensor_watch.cc"}},
      {"ott.DumpConfig.FormatOfPaths", {"core/dumper/tensor_dumper_proto.cc"}},
      {"ott.CrossCheckConfig",
       {"dist/check/cross_check.cc", "dist/check/reference_check.cc", "dist/check/tensor_selection.cc",
        "run/training/tensor_watch.cc"}},
      {"ott.ToleranceConfig", {"dist/check/cross_check.cc", "dist/check/reference_check.cc"}},
      {"ott.TensorsOfKind", {"dist/check/tensor_selection.cc"}},
      {"ott.ShardedTensors", {"dist/check/tensor_selection.cc"}},
      {"ott.ProfileConfig",
       {"core/trace/profiler_proto.cc", "core/trace/schedule.cc", "run/training/rank_trace.cc"}},
      {"ott.OpLogConfig", {"run/training/rank_op_log.cc"}},
      {"ott.SoundConfig", {"questions/sound/sound.cc"}},
      {"ott.PerturbConfig", {"core/op_log/perturbation_proto.cc"}},
      {"ott.HangConfig",
       {"core/flight/flight_recorder_proto.cc", "questions/hang/watchdog.cc",
        "run/training/training_run.cc"}},
  };
  return *readers;
}

class ConfigFields {
 public:
  // Returns the fields of a message, and of those in it, that nothing reads.
  std::vector<std::string> Unread(const Descriptor* message) {
    if (!visited_.insert(message).second) return {};
    const auto readers = Readers().find(std::string(message->full_name()));
    if (readers == Readers().end()) {
      return {absl::StrCat(message->full_name(), ": add the file that reads it to this test")};
    }
    std::string code;
    for (const std::string& path : readers->second) code += ReadFile(path).value();
    std::vector<std::string> unread;
    for (int i = 0; i < message->field_count(); ++i) {
      const FieldDescriptor* const field = message->field(i);
      if (!absl::StrContains(code, absl::StrCat(".", field->name(), "(")))
        unread.emplace_back(field->full_name());
      if (field->enum_type() != nullptr) {
        // The first value is what is done where nothing is set.
        for (int j = 1; j < field->enum_type()->value_count(); ++j) {
          const auto& value = field->enum_type()->value(j)->name();
          if (!absl::StrContains(code, value))
            unread.push_back(absl::StrCat(field->full_name(), ": ", value));
        }
      }
      if (field->message_type() == nullptr) continue;
      for (std::string& below : Unread(field->message_type())) unread.push_back(std::move(below));
    }
    return unread;
  }

 private:
  std::set<const Descriptor*> visited_;
};

TEST(ConfigFields, AreAllRead) {
  const std::vector<std::string> unread = ConfigFields().Unread(Config::descriptor());
  EXPECT_TRUE(unread.empty()) << "not read:" << [&] {
    std::string names;
    for (const std::string& name : unread) absl::StrAppend(&names, " ", name);
    return names;
  }();
}

}  // namespace
}  // namespace ott
