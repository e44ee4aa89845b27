#include "ott/questions/answer/question.h"

namespace ott {

int64_t AskedRun::start_iteration() const {
  if (!info) return 0;
  return info->resumptions().empty() ? info->config().start_iteration()
                                     : info->resumptions().rbegin()->start_iteration();
}

}  // namespace ott
