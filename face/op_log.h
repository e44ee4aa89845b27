// Logs what operations read and wrote; perturbs inputs by rounding.

#ifndef OTT_FACE_OP_LOG_H_
#define OTT_FACE_OP_LOG_H_

#include "ott/core/op_log/op_log.h"        // IWYU pragma: export
#include "ott/core/op_log/perturbation.h"  // IWYU pragma: export

#endif  // OTT_FACE_OP_LOG_H_
