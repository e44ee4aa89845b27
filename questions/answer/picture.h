// Pictures are messages: JSON has the names of their .proto files, and the page reads them.

#ifndef OTT_QUESTIONS_ANSWER_PICTURE_H_
#define OTT_QUESTIONS_ANSWER_PICTURE_H_

#include "google/protobuf/message.h"
#include "ott/questions/answer/answer_json.h"

namespace ott {

// Returns the message as the page gets it: fields by their names, enums by theirs, text as DisplayName()
// shows it, and numbers with five digits. Null stands for an optional field that is absent, and for NaN and
// infinity.
Json DrawMessage(const google::protobuf::Message& message);

// Leaves the first `most` of a repeated field.
template <typename Repeated>
void KeepFirst(int most, Repeated* repeated) {
  while (repeated->size() > most) repeated->RemoveLast();
}

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_PICTURE_H_
