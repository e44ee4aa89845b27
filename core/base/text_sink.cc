#include "ott/core/base/text_sink.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace ott {
namespace {

struct ChosenSink {
  std::mutex mutex;
  std::shared_ptr<const TextSink> sink;
};

// Never destroyed: tables are printed while the process ends, too.
ChosenSink& TheSink() {
  static auto* const chosen = new ChosenSink;
  return *chosen;
}

}  // namespace

void SetTextSink(TextSink sink) {
  auto shared = sink ? std::make_shared<const TextSink>(std::move(sink)) : nullptr;
  const std::lock_guard lock(TheSink().mutex);
  TheSink().sink.swap(shared);
}

void PrintLines(std::string_view lines) {
  std::shared_ptr<const TextSink> sink;
  {
    const std::lock_guard lock(TheSink().mutex);
    sink = TheSink().sink;
  }
  // Without the lock: the sink may wait for what another thread holds that prints as well.
  if (sink != nullptr) return (*sink)(lines);
  std::fwrite(lines.data(), 1, lines.size(), stdout);
  std::fflush(stdout);
}

}  // namespace ott
