// Traces as torch.profiler writes them, of ranks that reduce together.

#ifndef OTT_CORE_KINETO_TRACES_FOR_TEST_H_
#define OTT_CORE_KINETO_TRACES_FOR_TEST_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace ott::kineto {

// Steps of 10 ms, in each a product and an all-reduce of 1 million floats. The rank comes `late` to it,
// and its clock is `ahead`; both in microseconds. All leave 1 ms after the rank that comes `last`. Each step
// has num_others more operations of the CPU.
inline std::string RankTraceForTest(int rank, int64_t late, int64_t last, int64_t ahead = 0,
                                    int num_steps = 5, int num_others = 0) {
  std::string events;
  const auto add = [&](const std::string& category, const std::string& name, int64_t start, int64_t duration,
                       const std::string& args) {
    absl::StrAppend(&events, events.empty() ? "" : ",\n", R"({"ph":"X","cat":")", category, R"(","name":")",
                    name, R"(","pid":)", 100 + rank, R"(,"tid":1,"ts":)", start + ahead, R"(,"dur":)",
                    duration, R"(,"args":{)", args, "}}");
  };
  for (int step = 0; step < num_steps; ++step) {
    const int64_t begin = 1000 + 10'000 * step;
    const int id = 10 * step + 1;
    for (int other = 0; other < num_others; ++other) {
      const int64_t index = 1'000'000'000 + int64_t{num_others} * step + other;
      add("cpu_op", "aten::add_", begin + 5000 + other, 1,
          absl::StrCat(R"("External id":)", index,
                       R"(,"Record function id":0,"Concrete Inputs":["","","1"],"Input type":)",
                       R"(["float","float","Scalar"],"Input Strides":[[200,1],[200,1],[]],"Input Dims":)",
                       R"([[100,200],[100,200],[]],"Ev Idx":)", index));
    }
    add("user_annotation", absl::StrCat("ProfilerStep#", step), begin, 9'000, "");
    add("cpu_op", "aten::mm", begin + 10, 50,
        absl::StrCat(R"("External id":)", id,
                     R"(,"Input Dims":[[100,200],[200,300]],"Input type":["float","float"])"));
    add("cuda_runtime", "cudaLaunchKernel", begin + 20, 5,
        absl::StrCat(R"("External id":)", id, R"(,"correlation":)", id));
    add("kernel", "ampere_sgemm_128x64_tn", begin + 100, 1900 + late,
        absl::StrCat(R"("External id":)", id, R"(,"correlation":)", id, R"(,"device":0,"stream":7)"));
    const std::string collective =
        R"("Collective name":"allreduce","dtype":"Float","In msg nelems":1000000,"Out msg nelems":1000000,)"
        R"("Group size":2,"Process Group Name":"0","Process Group Description":"default_pg")";
    add("cpu_op", "record_param_comms", begin + 80, 20,
        absl::StrCat(R"("External id":)", id + 1, R"(,"Seq":)", 7 + step, ",", collective));
    add("cuda_runtime", "cudaLaunchKernelExC", begin + 85, 5,
        absl::StrCat(R"("External id":)", id + 1, R"(,"correlation":)", id + 1));
    add("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        begin + 2000 + late, 1000 + last - late,
        absl::StrCat(R"("External id":)", id + 1, R"(,"correlation":)", id + 1, R"(,"device":0,"stream":20,)",
                     collective));
  }
  return absl::StrCat(R"({"schemaVersion":1,"distributedInfo":{"rank":)", rank, R"(,"world_size":2},)",
                      R"("deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3"}],"traceEvents":[)",
                      events, "]}");
}

}  // namespace ott::kineto

#endif  // OTT_CORE_KINETO_TRACES_FOR_TEST_H_
