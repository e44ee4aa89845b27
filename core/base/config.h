// Reads ott.Config (config.proto), which configures the helpers from outside of the program.

#ifndef OTT_CORE_BASE_CONFIG_H_
#define OTT_CORE_BASE_CONFIG_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "ott/core/base/config.pb.h"

namespace ott {

// Reads protobuf text into *message. Errors as those of LoadConfig().
absl::Status ReadTextProto(const std::string& path, google::protobuf::Message* message);

// Reads protobuf text. NOT_FOUND or another code of errno if the file cannot be read; INVALID_ARGUMENT naming
// file, line and column (both from 1) if it is not an ott.Config.
absl::StatusOr<Config> LoadConfig(const std::string& path);

// LoadConfig() of the file that the environment variable OTT_CONFIG names, with OTT_RUN_DIR, where that is
// set, as its run_dir; an empty Config, which enables nothing, if OTT_CONFIG is unset or empty.
absl::StatusOr<Config> LoadConfigFromEnvironment();

}  // namespace ott

#endif  // OTT_CORE_BASE_CONFIG_H_
