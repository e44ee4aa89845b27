#include "ott/core/kineto/python_source.h"

#include <cstddef>

namespace ott::kineto {

std::string SourceOfFrame(std::string_view frame) {
  const size_t open = frame.rfind("): ");
  const size_t line = open == std::string_view::npos ? open : frame.rfind('(', open);
  if (line == std::string_view::npos || frame[0] == '<') return "";
  const std::string_view file = frame.substr(0, line);
  if (file.substr(0, 6) == "torch/" || file.find("/torch/") != std::string_view::npos) return "";
  return std::string(file).append(":").append(frame.substr(line + 1, open - line - 1));
}

std::string SourceOfStack(std::string_view stack) {
  while (!stack.empty()) {
    const size_t end = stack.find(';');
    std::string source = SourceOfFrame(stack.substr(0, end));
    if (!source.empty()) return source;
    stack.remove_prefix(end == std::string_view::npos ? stack.size() : end + 1);
  }
  return "";
}

}  // namespace ott::kineto
