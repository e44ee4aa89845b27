#include "ott/core/base/proto_json.h"

#include "google/protobuf/util/json_util.h"
#include "ott/core/base/check.h"

namespace ott {

std::string ProtoToJson(const google::protobuf::Message& message, JsonLayout layout) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = layout == JsonLayout::kIndented;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  OTT_CHECK(status.ok()) << status.ToString();
  if (layout == JsonLayout::kOneLine) json.push_back('\n');
  return json;
}

absl::Status JsonToProto(std::string_view json, google::protobuf::Message* message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), message, options);
  return status.ok() ? absl::OkStatus() : absl::InvalidArgumentError(status.ToString());
}

}  // namespace ott
