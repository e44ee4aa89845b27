// Sends the tables and verdicts that this library prints somewhere else than to stdout.

#ifndef OTT_FACE_TEXT_SINK_H_
#define OTT_FACE_TEXT_SINK_H_

#include "ott/core/base/text_sink.h"  // IWYU pragma: export

#endif  // OTT_FACE_TEXT_SINK_H_
