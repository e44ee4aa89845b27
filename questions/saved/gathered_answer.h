// The answer on rank 0, while the job runs.

#ifndef OTT_QUESTIONS_SAVED_GATHERED_ANSWER_H_
#define OTT_QUESTIONS_SAVED_GATHERED_ANSWER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/saved/what_if.pb.h"

namespace ott::saved {

// Returns how many bytes of its sample each rank sends, so that rank 0 gets few MB in all.
size_t SampleBytesPerRank(int world_size);

// samples: IterationSample of each rank, as bytes. Errors of MakeJob() (sampled_job.h): NOT_FOUND as long as
// there are no iterations.
absl::StatusOr<WhatIfAnswer> AnswerGathered(const std::vector<std::string>& samples);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_GATHERED_ANSWER_H_
