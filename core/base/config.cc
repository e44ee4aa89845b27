#include "ott/core/base/config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

// Room for the tolerances of a million tensors.
constexpr int64_t kMaxBytes = 256 << 20;

// Keeps the first error, which the others often follow from.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstError(const std::string& path) : path_(path) {}

  // Overrides what Protocol Buffers call since version 26, and before.
  void RecordError(int line, google::protobuf::io::ColumnNumber column, absl::string_view message) {
    if (!text_.empty()) return;
    text_ = absl::StrCat(path_, ":", line + 1, ":", column + 1, ": ", message);
  }

  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) {
    RecordError(line, column, message);
  }

  const std::string& text() const { return text_; }

 private:
  const std::string& path_;
  std::string text_;
};

}  // namespace

absl::Status ReadTextProto(const std::string& path, google::protobuf::Message* message) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat("cannot read the configuration ", text.status().message()));
  }
  FirstError error(path);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(*text, message)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(error.text(), " (expected an ", message->GetDescriptor()->full_name(), ")"));
}

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  Config config;
  OTT_RETURN_IF_ERROR(ReadTextProto(path, &config));
  return config;
}

absl::StatusOr<Config> LoadConfigFromEnvironment() {
  const char* path = std::getenv("OTT_CONFIG");
  if (path == nullptr || *path == '\0') return Config();
  absl::StatusOr<Config> config = LoadConfig(path);
  const char* const run_dir = std::getenv("OTT_RUN_DIR");
  if (config.ok() && run_dir != nullptr && *run_dir != '\0') config->set_run_dir(run_dir);
  return config;
}

}  // namespace ott
