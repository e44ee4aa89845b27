#include "ott/questions/kernels/kernels_question.h"

#include "ott/questions/kernels/prof_command.h"

namespace ott::kernels {

Question KernelsQuestion() { return {kKernelsTitle, AddProfCommand}; }

}  // namespace ott::kernels
