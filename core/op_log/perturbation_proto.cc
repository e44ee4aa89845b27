// The parts of Perturbation that need protobuf, apart from the rest.

#include "ott/core/base/config.pb.h"
#include "ott/core/op_log/perturbation.h"

namespace ott {

Perturbation::Options Perturbation::FromConfig(const PerturbConfig& config) {
  Options options;
  if (config.seed() != 0) options.seed = config.seed();
  if (config.ulps() != 0) options.ulps = config.ulps();
  options.paths.assign(config.paths().begin(), config.paths().end());
  return options;
}

}  // namespace ott
