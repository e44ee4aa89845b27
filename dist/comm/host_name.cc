#include "ott/dist/comm/host_name.h"

#include <unistd.h>

namespace ott {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

}  // namespace ott
