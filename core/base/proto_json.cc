#include "ott/core/base/proto_json.h"

#include "google/protobuf/util/json_util.h"
#include "ott/core/base/check.h"

namespace ott {
namespace {

// Version 26 of Protocol Buffers renamed the option.
template <typename Options>
auto PrintDefaults(Options* options, int) -> decltype(void(options->always_print_primitive_fields)) {
  options->always_print_primitive_fields = true;
}
template <typename Options>
auto PrintDefaults(Options* options, char) -> decltype(void(options->always_print_fields_with_no_presence)) {
  options->always_print_fields_with_no_presence = true;
}

}  // namespace

std::string ProtoToJson(const google::protobuf::Message& message, JsonLayout layout) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = layout == JsonLayout::kIndented;
  PrintDefaults(&options, 0);
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  OTT_CHECK(status.ok()) << status.ToString();
  if (layout == JsonLayout::kOneLine) json.push_back('\n');
  return json;
}

absl::Status JsonToProto(std::string_view json, google::protobuf::Message* message, std::string* unknown) {
  google::protobuf::util::JsonParseOptions options;
  const std::string text(json);
  if (unknown != nullptr) {
    const auto strict = google::protobuf::util::JsonStringToMessage(text, message, options);
    *unknown = strict.ok() ? "" : strict.ToString();
    if (strict.ok()) return absl::OkStatus();
    message->Clear();
  }
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(text, message, options);
  return status.ok() ? absl::OkStatus() : absl::InvalidArgumentError(status.ToString());
}

}  // namespace ott
