// Makes what stands in a dump for a tensor whose elements are not in it: its statistics, or an image of it.

#ifndef OTT_CORE_DUMP_STAND_IN_H_
#define OTT_CORE_DUMP_STAND_IN_H_

#include <optional>
#include <string>
#include <vector>

#include "ott/core/tensor/value.h"

namespace ott {

// Returns the entries of kStatisticsName, or of kImageName (dump_files.h); null if the value does not stand
// for a tensor in that way.
const ValueMap* StatisticsOf(const Value& value);
const ValueMap* ImageOf(const Value& value);

// Returns the digest of the tensor for which the value stands; nullopt if the dump does not have it, or if
// the value stands for none.
std::optional<std::string> DigestOfStandIn(const Value& value);

// Lists all that may be compared in a tree, by path and in its order: tensors, numbers and bools as 0-d
// tensors, texts, and what stands for tensors. Of a stand-in without a digest or a dtype, its numbers.
std::vector<NamedTensor> ListComparable(const Value& root);

}  // namespace ott

#endif  // OTT_CORE_DUMP_STAND_IN_H_
