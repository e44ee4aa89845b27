// Finds what of a job could be mended.

#ifndef OTT_QUESTIONS_SAVED_REPAIRS_H_
#define OTT_QUESTIONS_SAVED_REPAIRS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "questions/saved/named_job.h"
#include "questions/saved/part_replayer.h"

namespace ott::saved {

// Returns what is worth a word, the best first: an operation of ranks that are slower in it than others, and
// a stage. ranks: each rank as a part, with what mending it saves. blamed: of ranks that do the same, only
// these are mended.
std::vector<JobPart> FindRepairs(const NamedJob& job, const std::vector<JobPart>& ranks,
                                 const std::vector<size_t>& blamed);

// Returns the best repair together with those that save most besides what is saved already; nullopt if none
// saves more.
std::optional<JobPart> FindRepairsTogether(const NamedJob& job, const std::vector<JobPart>& repairs);

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_REPAIRS_H_
