#include "ott/questions/saved/run_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/saved/sampled_job.h"

namespace ott::saved {
namespace {

absl::StatusOr<IterationSample> ReadSample(const std::string& run_dir, int rank) {
  const std::string path = IterationsPath(run_dir, rank);
  OTT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  IterationSample sample;
  if (!sample.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(path, ": no IterationSample in its ", bytes.size(), " bytes"));
  }
  if (sample.rank() != rank) {
    return absl::DataLossError(
        absl::StrCat(path, ": says it is rank ", sample.rank(), "'s; was it copied here?"));
  }
  return sample;
}

}  // namespace

absl::StatusOr<ReplayJob> ReadRunJob(const std::string& run) {
  const std::string run_dir = LatestAttempt(run);
  OTT_RETURN_IF_ERROR(CheckRunDirectory(run_dir));
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  std::vector<std::string> notes;
  std::vector<IterationSample> samples;
  bool is_damaged = false;
  for (const int rank : ranks) {
    absl::StatusOr<IterationSample> sample = ReadSample(run_dir, rank);
    if (sample.ok()) {
      samples.push_back(*std::move(sample));
    } else {
      notes.push_back(std::string(sample.status().message()));
      is_damaged = is_damaged || !absl::IsNotFound(sample.status());
    }
  }
  absl::StatusOr<ReplayJob> job = MakeJob(std::move(samples));
  if (!job.ok()) {
    return absl::Status(is_damaged ? absl::StatusCode::kDataLoss : job.status().code(),
                        absl::StrCat(run_dir, ": ", job.status().message(), notes.empty() ? "" : "; ",
                                     notes.empty() ? "" : notes[0]));
  }
  if (!notes.empty()) job->incomplete = true;
  job->notes.insert(job->notes.end(), notes.begin(), notes.end());
  if (const std::string starts = DescribeStarts(run); !starts.empty()) job->notes.push_back(starts);
  return job;
}

}  // namespace ott::saved
