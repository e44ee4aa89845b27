// Holds the times of a kernel on the device, and reports them.

#ifndef OTT_FACE_KERNEL_TIMER_BUFFER_H_
#define OTT_FACE_KERNEL_TIMER_BUFFER_H_

#include "ott/core/kernel_timer/kernel_timer_buffer.h"  // IWYU pragma: export
#include "ott/core/kernel_timer/kernel_timer_report.h"  // IWYU pragma: export

#endif  // OTT_FACE_KERNEL_TIMER_BUFFER_H_
