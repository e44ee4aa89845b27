// Decides whether somebody is to blame for what a job takes longer than it could.

#ifndef OTT_QUESTIONS_SAVED_BLAME_H_
#define OTT_QUESTIONS_SAVED_BLAME_H_

#include <cstddef>
#include <vector>

#include "ott/questions/saved/what_if.pb.h"
#include "questions/saved/named_job.h"
#include "questions/saved/part_replayer.h"

namespace ott::saved {

// Returns ranks by what their own times alone would cost, most first; of two alike the lower rank.
std::vector<size_t> WorstFirst(const std::vector<JobPart>& ranks);

// Sets the verdict, the conclusion, blamed_ranks and not_excluded of an answer that has its times and the
// shares of the worst ranks and of the last stage. ranks and stages: each as a part, with slowdown and
// saving. Returns the ranks to blame, if ranks do the same.
std::vector<size_t> Blame(const NamedJob& job, const std::vector<JobPart>& ranks,
                          const std::vector<JobPart>& stages, WhatIfAnswer& answer);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_BLAME_H_
