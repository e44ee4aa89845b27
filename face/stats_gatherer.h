// Gathers one table of all ranks, which names the slow one.

#ifndef OTT_FACE_STATS_GATHERER_H_
#define OTT_FACE_STATS_GATHERER_H_

#include "ott/run/gather/stats_gatherer.h"  // IWYU pragma: export

#endif  // OTT_FACE_STATS_GATHERER_H_
