// Finds out which rank called what, after the failure of a collective of another library that does not say
// it.

#ifndef OTT_DIST_COMM_OTHER_CALLS_H_
#define OTT_DIST_COMM_OTHER_CALLS_H_

#include <chrono>
#include <string>
#include <string_view>

#include "ott/dist/comm/communicator.h"

namespace ott {

// Returns "ranks 0, 2 called AreEqual #3; rank 1 (node7) called BroadcastOnDevice #3; nothing from rank 3
// (node9)". Called by each rank whose collective failed, once for a communicator, with the call that it made.
// Rank 0 collects the calls of the others for as long as `patience`, and sends the result to all. Waits no
// longer than twice that.
std::string DescribeCalls(Communicator& ranks, std::string_view call, std::chrono::nanoseconds patience);

// For a rank whose collective failed and that does not ask what the others called: they get to know its call.
void PostCall(Communicator& ranks, std::string_view call);

// The tags that these use are below.
inline constexpr int kTagsOfOtherCalls = 2;

}  // namespace ott

#endif  // OTT_DIST_COMM_OTHER_CALLS_H_
