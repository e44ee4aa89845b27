#include "ott/questions/answer/picture.h"

#include <string>

#include "google/protobuf/descriptor.h"
#include "ott/questions/answer/display_text.h"

namespace ott {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// index: in a repeated field; -1: of any other.
Json DrawValue(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& values = *message.GetReflection();
  const auto get = [&](auto of_field, auto of_repeated) {
    return index < 0 ? (values.*of_field)(message, &field) : (values.*of_repeated)(message, &field, index);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Rounded(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Rounded(static_cast<double>(get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* const value = get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum);
      return value->name();
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return DisplayName(get(&Reflection::GetString, &Reflection::GetRepeatedString));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return DrawMessage(index < 0 ? values.GetMessage(message, &field)
                                   : values.GetRepeatedMessage(message, &field, index));
  }
  return Json();
}

}  // namespace

Json DrawMessage(const Message& message) {
  Json json = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    Json& drawn = json[field.name()];
    if (field.is_repeated()) {
      drawn = Json::array();
      for (int k = 0; k < message.GetReflection()->FieldSize(message, &field); ++k)
        drawn.push_back(DrawValue(message, field, k));
    } else if (!field.has_presence() || message.GetReflection()->HasField(message, &field)) {
      drawn = DrawValue(message, field, -1);
    }
  }
  return json;
}

}  // namespace ott
