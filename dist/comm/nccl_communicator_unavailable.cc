#include "ott/dist/comm/nccl_communicator.h"

namespace ott {

absl::StatusOr<std::unique_ptr<NcclCommunicator>> CreateNcclCommunicator(std::shared_ptr<Communicator>,
                                                                         const NcclOptions&) {
  return absl::UnimplementedError(
      "built without NCCL: it or CUDA was not found or not wanted when this program was built; set NCCL_HOME "
      "and CUDA_HOME, and see --//third_party/nccl:enable");
}

}  // namespace ott
