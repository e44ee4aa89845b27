// The name of this machine.

#ifndef OTT_DIST_COMM_HOST_NAME_H_
#define OTT_DIST_COMM_HOST_NAME_H_

#include <string>

namespace ott {

// As gethostname(2) says; "unknown" where it fails.
std::string HostName();

}  // namespace ott

#endif  // OTT_DIST_COMM_HOST_NAME_H_
