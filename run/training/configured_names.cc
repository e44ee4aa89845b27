#include "ott/run/training/configured_names.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ott/core/base/nearest_name.h"

namespace ott {

std::vector<std::string> FindNamesThatNeverRan(const StopwatchConfig& config, const ClusterStats& stats) {
  std::vector<std::string> names;
  for (const ClusterMeasurement& measurement : stats.measurements()) names.push_back(measurement.name());
  std::vector<std::string> notes;
  const auto check = [&](const char* field, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    const std::string nearest = NearestName(name, names);
    notes.push_back(absl::StrCat(field, ": \"", name, "\" ran on no rank",
                                 nearest.empty() ? "" : absl::StrCat("; \"", nearest, "\" did")));
  };
  if (names.empty()) return notes;
  for (const std::string& name : config.collective_measurements()) {
    // A glob is of what a program may have, and not of what it must have.
    if (name.find_first_of("*?") == std::string::npos) check("collective_measurements", name);
  }
  for (const CollectiveGroups& groups : config.collective_groups()) {
    for (const std::string& name : groups.measurements()) check("collective_groups", name);
  }
  if (!config.cpu_usage_measurement().empty()) {
    check("cpu_usage_measurement", config.cpu_usage_measurement());
  }
  return notes;
}

}  // namespace ott
