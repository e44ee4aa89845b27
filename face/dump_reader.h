// Reads a dump back: ours, or the Python TensorDumper's.

#ifndef OTT_FACE_DUMP_READER_H_
#define OTT_FACE_DUMP_READER_H_

#include "ott/core/dump/dump_reader.h"  // IWYU pragma: export

#endif  // OTT_FACE_DUMP_READER_H_
