// The name of this machine.

#ifndef OTT_DIST_COMM_HOST_NAME_H_
#define OTT_DIST_COMM_HOST_NAME_H_

#include <string>

namespace ott {

// Returns the name that gethostname(2) gives; "unknown" if it fails.
std::string HostName();

}  // namespace ott

#endif  // OTT_DIST_COMM_HOST_NAME_H_
