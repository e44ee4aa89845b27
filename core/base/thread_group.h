// Threads that are started as far as the machine gives any.

#ifndef OTT_CORE_BASE_THREAD_GROUP_H_
#define OTT_CORE_BASE_THREAD_GROUP_H_

#include <pthread.h>

#include <functional>
#include <vector>

namespace ott {

// Unlike std::thread, says in programs without exceptions, too, that a thread could not be started. Not
// thread-safe.
class ThreadGroup {
 public:
  ThreadGroup() = default;
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;
  ~ThreadGroup() { Join(); }

  // False if the process may have no more threads, or no memory for one; `work` is then not called.
  bool Start(std::function<void()> work);
  bool empty() const { return threads_.empty(); }
  // Waits until all have ended.
  void Join();

 private:
  std::vector<pthread_t> threads_;
};

}  // namespace ott

#endif  // OTT_CORE_BASE_THREAD_GROUP_H_
