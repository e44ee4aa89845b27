#include "ott/questions/saved/gathered_answer.h"

#include <algorithm>
#include <utility>

#include "ott/core/base/status_macros.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/saved/sampled_job.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

constexpr size_t kBytesOfAllRanks = size_t{4} << 20;
constexpr size_t kMaxBytesOfRank = size_t{64} << 10;

}  // namespace

size_t SampleBytesPerRank(int world_size) {
  return std::min(kMaxBytesOfRank, kBytesOfAllRanks / static_cast<size_t>(std::max(world_size, 1)));
}

absl::StatusOr<WhatIfAnswer> AnswerGathered(const std::vector<std::string>& samples) {
  std::vector<IterationSample> parsed;
  for (const std::string& bytes : samples) {
    IterationSample sample;
    if (!sample.ParseFromString(bytes)) return absl::InternalError("bytes that are no iterations");
    parsed.push_back(std::move(sample));
  }
  OTT_ASSIGN_OR_RETURN(const ReplayJob job, MakeJob(std::move(parsed)));
  return AnswerWhatIf(job);
}

}  // namespace ott::saved
