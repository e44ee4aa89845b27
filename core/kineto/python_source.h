// Lines of the program in what PyTorch's profiler says of Python's stack.

#ifndef OTT_CORE_KINETO_PYTHON_SOURCE_H_
#define OTT_CORE_KINETO_PYTHON_SOURCE_H_

#include <string>
#include <string_view>

namespace ott::kineto {

// "my/model.py:12" of "my/model.py(12): forward"; empty for frames of PyTorch itself and of the interpreter.
std::string SourceOfFrame(std::string_view frame);

// Returns the innermost line of the program in "Call stack".
std::string SourceOfStack(std::string_view stack);

}  // namespace ott::kineto

#endif  // OTT_CORE_KINETO_PYTHON_SOURCE_H_
