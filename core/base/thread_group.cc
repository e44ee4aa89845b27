#include "ott/core/base/thread_group.h"

#include <memory>
#include <utility>

namespace ott {
namespace {

void* Run(void* work) {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(work));
  (*owned)();
  return nullptr;
}

}  // namespace

bool ThreadGroup::Start(std::function<void()> work) {
  auto owned = std::make_unique<std::function<void()>>(std::move(work));
  pthread_t thread;
  if (pthread_create(&thread, nullptr, &Run, owned.get()) != 0) return false;
  static_cast<void>(owned.release());
  threads_.push_back(thread);
  return true;
}

void ThreadGroup::Join() {
  for (const pthread_t thread : std::exchange(threads_, {})) pthread_join(thread, nullptr);
}

}  // namespace ott
