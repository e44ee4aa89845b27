// C++ of its own in a Python process, which links the library statically.

#include <cstdint>

#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/stopwatch/stopwatch.h"

extern "C" {

void ott_test_measure() { OTT_STOPWATCH_SCOPE("in the plugin"); }

void ott_test_start(const char* name) { ott::Stopwatch::Get().Start(name); }

void ott_test_end(const char* name) { ott::Stopwatch::Get().End(name); }

int64_t ott_test_num_measured_iters() { return ott::Stopwatch::Get().num_measured_iters(); }

bool ott_test_add(const char* path, const float* data, int64_t size) {
  return ott::TensorDumper::Get().AddTensorData(path, ott::TensorView(data, {size})).ok();
}

int64_t ott_test_dump_count() { return ott::TensorDumper::Get().dump_count(); }
}
