// A header of the consumer's own, at the path that a header of optim_test_tools has in its repository.

#ifndef CONSUMER_CORE_STOPWATCH_STOPWATCH_H_
#define CONSUMER_CORE_STOPWATCH_STOPWATCH_H_

namespace consumer {

inline constexpr int kIterations = 8;

}  // namespace consumer

#endif  // CONSUMER_CORE_STOPWATCH_STOPWATCH_H_
