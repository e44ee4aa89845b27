// The rank that the name of a capture tells.

#ifndef OTT_CORE_KERNEL_PROFILE_RANK_IN_NAME_H_
#define OTT_CORE_KERNEL_PROFILE_RANK_IN_NAME_H_

#include <string_view>

namespace ott::kernels {

// Returns the number after the last "rank" of a file's name ("rank3", "rank_00003"); else of SGLang's
// "123-TP-3.trace.json.gz", where tensor parallel ranks are all there are. -1 without.
int RankInName(std::string_view path);

}  // namespace ott::kernels

#endif  // OTT_CORE_KERNEL_PROFILE_RANK_IN_NAME_H_
