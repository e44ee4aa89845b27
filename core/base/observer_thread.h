// Threads that this library has of its own, and what they cost.

#ifndef OTT_CORE_BASE_OBSERVER_THREAD_H_
#define OTT_CORE_BASE_OBSERVER_THREAD_H_

namespace ott {

// The calling thread is the library's, from construction to destruction: its CPU time counts as the
// observer's.
class ObserverThread {
 public:
  enum class Priority {
    kNormal,
    // Runs where the training leaves a CPU idle, and hardly otherwise (SCHED_BATCH, nice 19). Stays with the
    // thread until its end.
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
