/* What a training program in C calls of ott: observe.cc hands it on. */

#ifndef OBSERVE_H_
#define OBSERVE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Before anything else, and after the last iteration; 0, or -1 with a message on stderr. OTT_CONFIG says what
 * is on. */
int observe_start(void);
int observe_finish(void);

/* At the end of each iteration; 0, or -1 with a message on stderr. */
int observe_finish_iteration(void);

/* Around a part of an iteration. `name` is any text; begin and end may be on different threads. */
void observe_begin(const char* name);
void observe_end(const char* name);

/* A tensor of float32 with these extents, row-major. The elements are copied, where anybody wants them. */
int observe_tensor(const char* path, const float* data, int num_dims, const int64_t* extents);

#ifdef __cplusplus
}
#endif

#endif /* OBSERVE_H_ */
