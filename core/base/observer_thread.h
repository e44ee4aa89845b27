// The threads that this library starts, and what they cost.

#ifndef OTT_CORE_BASE_OBSERVER_THREAD_H_
#define OTT_CORE_BASE_OBSERVER_THREAD_H_

namespace ott {

// Marks the calling thread as one of the library's, from construction to destruction: its CPU time then
// counts as the observer's.
class ObserverThread {
 public:
  enum class Priority {
    kNormal,
    // Runs mostly while the training leaves a CPU idle (SCHED_BATCH, nice 19). The thread keeps this priority
    // until it ends.
    kBackground,
  };

  explicit ObserverThread(Priority priority = Priority::kNormal);
  ObserverThread(const ObserverThread&) = delete;
  ObserverThread& operator=(const ObserverThread&) = delete;
  // REQUIRES: on the same thread.
  ~ObserverThread();
};

// CPU time of all such threads of this process so far, those that ended included, in seconds.
double ObserverThreadSeconds();

}  // namespace ott

#endif  // OTT_CORE_BASE_OBSERVER_THREAD_H_
