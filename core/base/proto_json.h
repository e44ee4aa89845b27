// Protocol buffers as JSON, with the field names of the .proto file.

#ifndef OTT_CORE_BASE_PROTO_JSON_H_
#define OTT_CORE_BASE_PROTO_JSON_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace ott {

enum class JsonLayout { kOneLine, kIndented };

// Fields that hold their default are written too, messages that are absent are not. Ends with a newline.
// REQUIRES: strings of the message are UTF-8, as proto3 demands.
std::string ProtoToJson(const google::protobuf::Message& message, JsonLayout layout);

// Sets *message. Fields and names of enums that this version does not know are left out; `unknown`, if not
// null, then says which is the first, and is empty otherwise. INVALID_ARGUMENT, with the parser's
// explanation, if the text is no such message.
absl::Status JsonToProto(std::string_view json, google::protobuf::Message* message,
                         std::string* unknown = nullptr);

}  // namespace ott

#endif  // OTT_CORE_BASE_PROTO_JSON_H_
