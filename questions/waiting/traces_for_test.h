// Profiles of ranks as traces give them, by hand and by simulation.

#ifndef OTT_QUESTIONS_WAITING_TRACES_FOR_TEST_H_
#define OTT_QUESTIONS_WAITING_TRACES_FOR_TEST_H_

#include <cstdint>
#include <vector>

#include "ott/core/kernel_profile/profile.h"
#include "ott/questions/waiting/traced_job.h"

namespace ott::waiting {

// Returns the trace of one rank, with the kernels "gemm" (0) and an all-reduce (1) of 1 million floats;
// empty.
kernels::Profile EmptyTraceForTest();

// A kernel and its call; of kernel 1 also a collective. In the order of time.
void AddKernelForTest(kernels::Profile* profile, uint32_t name, int64_t call, int64_t start, int64_t end);

// ProfilerStep#number.
void AddStepForTest(kernels::Profile* profile, int number, int64_t start, int64_t end);

// A job of which everything is known: ranks compute, reduce together, and compute on.
struct SimulatedJob {
  int num_ranks = 4;
  int num_hosts = 1;  // each with a clock of its own
  int num_steps = 60;
  bool has_steps = true;  // ProfilerStep#
  int collectives_per_step = 8;
  double work_seconds = 0.1;  // of a step
  // Standard deviations, as shares: of ranks, of their single stretches of work, of what a rank has to do in
  // a step, and of what a machine does to a rank for 0.3 s.
  double rank_spread = 0.02;
  double jitter = 0.03;
  double uneven_data = 0;
  double disturbance = 0.02;
  // The probability that a stretch of work has a stall of half a step.
  double stall_probability = 0;
  // This rank's work takes so much more, as a share; -1: none.
  int slow_rank = -1;
  double slowdown = 0;
};

std::vector<kernels::Profile> SimulateTraces(const SimulatedJob& job, uint64_t seed);

// DescribeJob() of ranks 0, 1, ...
TracedJob DescribeForTest(const std::vector<kernels::Profile>& profiles);

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_TRACES_FOR_TEST_H_
