// A program that works on a GPU within an NVTX range.

#include <nvtx3/nvToolsExt.h>

#include "tools/profile/cuda_work_for_test.h"

int main() {
  nvtxRangePushA("work");
  const bool is_good = ott::profile::WorkOnGpu();
  nvtxRangePop();
  return is_good ? 0 : 1;
}
