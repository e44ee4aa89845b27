// Measures what operations made of the differences of their inputs in the perturbed run.

#ifndef OTT_QUESTIONS_ORIGIN_GAINS_H_
#define OTT_QUESTIONS_ORIGIN_GAINS_H_

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ott/questions/origin/aligned_ops.h"
#include "ott/questions/origin/collectives.h"

namespace ott::origin {

// A gain is the difference of an output, before it was rounded to its dtype, over the largest difference of
// the operation's inputs. One run of an operation may tell nothing, where its inputs were equal, or too much,
// where a number was rounded the other way; the median of many does neither.
class Gains {
 public:
  // Adds those of one rank; perturbed: the reference against the perturbed run.
  void Add(const AlignedOps& perturbed, const CollectiveInputs& collectives, int world_size);

  // Returns the median over all ranks and iterations of the operation's module, or, where that ran too
  // rarely, of all modules. Nothing if no operation of that name had inputs that differ.
  std::optional<double> MedianOf(const OpDefinition& definition, int output) const;

  // Returns the largest median there is of any operation; 0: none.
  double LargestMedian() const;

 private:
  std::unordered_map<std::string, std::vector<float>> gains_;
};

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_GAINS_H_
