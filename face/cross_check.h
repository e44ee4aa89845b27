// Compares replicas and shards between ranks, and with a reference run.

#ifndef OTT_FACE_CROSS_CHECK_H_
#define OTT_FACE_CROSS_CHECK_H_

#include "ott/dist/check/cross_check.h"  // IWYU pragma: export
#include "ott/dist/check/verdict.h"      // IWYU pragma: export

#endif  // OTT_FACE_CROSS_CHECK_H_
