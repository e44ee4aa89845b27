// Reading traces against decompressing and scanning them, in one run:
//   bazel run //core/kineto:read_trace_benchmark -- /path/to/*.json.gz

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/chrome_trace/byte_source.h"
#include "ott/core/kineto/read_trace.h"

namespace ott::kineto {
namespace {

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Bytes of the unpacked file: each is looked at for the quotes and brackets that structure JSON.
int64_t Scan(const std::string& path, int64_t* structure) {
  const auto source = chrome_trace::ByteSource::Open(path);
  OTT_CHECK(source.ok()) << std::string(source.status().message());
  std::vector<char> window(size_t{1} << 19);
  int64_t bytes = 0;
  while (const size_t got = (*source)->Read(window.data(), window.size())) {
    bytes += static_cast<int64_t>(got);
    for (size_t i = 0; i < got; ++i) {
      const char c = window[i];
      *structure += (c == '"') + (c == '{') + (c == '}') + (c == '[') + (c == ']') + (c == '\\');
    }
  }
  return bytes;
}

template <typename Function>
double Fastest(Function function) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = CpuSeconds();
    function();
    best = std::min(best, CpuSeconds() - begin);
  }
  return best;
}

}  // namespace
}  // namespace ott::kineto

int main(int argc, char** argv) {
  using namespace ott::kineto;
  bool good = true;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    int64_t bytes = 0, structure = 0, events = 0;
    const double scan = Fastest([&] { bytes = Scan(path, &structure); });
    const double read = Fastest([&] {
      const auto header = ReadTrace(path, [&](const Event&) { ++events; });
      OTT_CHECK(header.ok()) << std::string(header.status().message());
    });
    const double megabytes = static_cast<double>(bytes) * 1e-6;
    good = good && scan / read >= 0.5;
    std::printf("%s: %.1f MB; decompress and scan %.0f MB/s, read %.0f MB/s, ratio %.2f (at least 0.5) %s\n",
                path.c_str(), megabytes, megabytes / scan, megabytes / read, scan / read,
                scan / read >= 0.5 ? "ok" : "MISSED");
  }
  return good ? 0 : 1;
}
