#include "ott/core/op_cost/kernel_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <vector>

namespace ott {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

enum class Names {
  kSplitSum,
  kAttentionStep,
  kTensorCore,
  kTensorCoreAttention,
  kCudaCore,
  kSaysNothing,
  kElementType,
};

struct NamePart {
  Names names;
  std::string_view part;
  DType dtype;  // of kElementType
};

constexpr NamePart kNameParts[] = {
// Made of kernel_names.tsv.
#include "core/op_cost/kernel_names.inc"
};

bool HasAny(std::string_view text, Names names) {
  return std::any_of(std::begin(kNameParts), std::end(kNameParts), [&](const NamePart& name_part) {
    return name_part.names == names && Has(text, name_part.part);
  });
}

// Demangled, without conditions and namespaces that have no name, whose brackets would be taken for template
// arguments or parameters.
std::string WithoutUnnamed(std::string_view name) {
  std::string text = DemangledKernelName(std::string(name));
  // cuBLAS's kernels may have it for a return type.
  constexpr std::string_view kCondition = ">::type ";
  if (const size_t end = text.find(kCondition);
      end != std::string::npos && Has(text.substr(0, end), "std::enable_if<"))
    text.erase(0, end + kCondition.size());
  for (const std::string_view unnamed : {"<unnamed>::", "(anonymous namespace)::"}) {
    for (size_t at = text.find(unnamed); at != std::string::npos; at = text.find(unnamed, at)) {
      text.erase(at, unnamed.size());
    }
  }
  return text;
}

// Tensile's and hipBLASLt's: "Cijk_Alik_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1_SN".
bool IsTensile(std::string_view lower) { return Has(lower, "cijk_"); }

// "_MI16x16x16" is the instruction of the matrix cores; others multiply thread by thread.
bool HasMatrixInstruction(std::string_view lower) {
  for (size_t at = lower.find("_mi"); at != std::string_view::npos; at = lower.find("_mi", at + 1)) {
    if (at + 3 < lower.size() && std::isdigit(static_cast<unsigned char>(lower[at + 3])) != 0) return true;
  }
  return false;
}

// The inputs' type, which comes after the layouts of A and B: "HHS" of "Cijk_Alik_Bljk_HHS_BH".
std::optional<DType> TensileDType(std::string_view lower) {
  lower.remove_prefix(lower.find("cijk_") + 5);
  for (int layout = 0; layout < 2; ++layout)
    lower.remove_prefix(std::min(lower.size(), lower.find('_')) + (lower.find('_') < lower.size() ? 1 : 0));
  switch (lower.empty() ? '\0' : lower[0]) {
    case 'h':
      return DType::kFloat16;
    case 'b':
      return DType::kBFloat16;
    case 's':
      return DType::kFloat32;
    case 'd':
      return DType::kFloat64;
    case 'f':
      return lower.substr(0, 2) == "f8" ? std::optional<DType>(DType::kFloat8E4M3) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// Returns true for kernels that torch.compile makes of elementwise ops and reductions.
bool IsCompiledWithoutProducts(std::string_view lower) {
  return Has(lower, "triton_poi_") || Has(lower, "triton_red_") || Has(lower, "triton_per_");
}

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns where the parameters begin: the first parenthesis outside of template arguments, or the end.
size_t EndOfName(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool arrow = i > 0 && text[i - 1] == '-';
    if (text[i] == '<') ++depth;
    if (text[i] == '>' && !arrow && depth > 0) --depth;
    if (text[i] == '(' && depth == 0) return i;
  }
  return text.size();
}

bool IsGeneric(std::string_view base) {
  return Has(base, "elementwise_kernel") || base == "reduce_kernel" || Has(base, "multi_tensor_apply") ||
         base == "Kernel" || base == "Kernel2" || base == "device_kernel" || base == "kernel";
}

// Types and wrappers that say nothing of what a generic kernel computes.
bool TellsNothing(std::string_view word) {
  if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return true;
  if (word.size() <= 2 && word[0] == 'T') return true;  // T1: a template parameter
  return std::any_of(std::begin(kNameParts), std::end(kNameParts), [&](const NamePart& name_part) {
    return name_part.names == Names::kSaysNothing && name_part.part == word;
  });
}

std::string_view FirstTellingWord(std::string_view arguments) {
  size_t i = 0;
  while (i < arguments.size()) {
    if (!IsNameCharacter(arguments[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < arguments.size() && IsNameCharacter(arguments[end])) ++end;
    const std::string_view word = arguments.substr(i, end - i);
    if (!TellsNothing(word)) return word;
    i = end;
  }
  return {};
}

// "qqtst" of "nvjet_sm90_qqtst_128x256_...": inputs, what is added, what it is added up in, result. "" for
// other kernels.
std::string_view NvjetTypes(std::string_view lower) {
  const size_t nvjet = lower.find("nvjet_");
  if (nvjet == std::string_view::npos) return {};
  std::string_view types = lower.substr(nvjet + 6);
  if (types.substr(0, 2) == "sm") types.remove_prefix(types.find('_') + 1);  // npos + 1 is 0
  return types.substr(0, types.find('_'));
}

std::optional<DType> NvjetDType(char letter) {
  switch (letter) {
    case 'h':
      return DType::kFloat16;
    case 't':
      return DType::kBFloat16;
    case 's':
      return DType::kFloat32;
    case 'q':
      return DType::kFloat8E4M3;
    default:
      return std::nullopt;
  }
}

// The template arguments of the function called base, those within others left whole.
std::vector<std::string_view> TemplateArguments(std::string_view name, std::string_view base) {
  std::vector<std::string_view> arguments;
  const size_t at = name.find(base);
  if (at == std::string_view::npos || at + base.size() >= name.size() || name[at + base.size()] != '<')
    return arguments;
  size_t begin = at + base.size() + 1;
  int depth = 0;
  for (size_t i = begin; i < name.size() && depth >= 0; ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth < 0 || (depth == 0 && name[i] == ',')) {
      arguments.push_back(name.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return arguments;
}

bool IsTrue(std::string_view argument) {
  return !argument.empty() && (argument.back() == '1' || Has(argument, "true"));
}

}  // namespace

TensorCoreUse TensorCoreUseOf(std::string_view name) {
  const std::string lower = Lower(WithoutUnnamed(name));
  if (Has(lower, "ffma") || HasAny(lower, Names::kSplitSum)) return TensorCoreUse::kNo;
  if (HasAny(lower, Names::kTensorCoreAttention)) {
    if (HasAny(lower, Names::kAttentionStep)) return TensorCoreUse::kNo;
    // CUTLASS's attention multiplies on CUDA cores where the architecture has no instruction for the type.
    const bool before_ampere = Has(lower, "_sm50") || Has(lower, "_sm70") || Has(lower, "_sm75");
    const bool single = Has(lower, "_f32_") && Has(lower, "fmha_cutlass");
    return Has(lower, "_sm50") || (single && before_ampere) ? TensorCoreUse::kNo : TensorCoreUse::kYes;
  }
  if (IsTensile(lower)) return HasMatrixInstruction(lower) ? TensorCoreUse::kYes : TensorCoreUse::kNo;
  if (HasAny(lower, Names::kTensorCore)) return TensorCoreUse::kYes;
  // Kernels that do not use them say ffma, or multiply float32.
  if (Has(lower, "_xmma_") && (Has(lower, "f16f16") || Has(lower, "tf32") || Has(lower, "_i8"))) {
    return TensorCoreUse::kYes;
  }
  if (IsCompiledWithoutProducts(lower)) return TensorCoreUse::kNo;
  if (Has(lower, "triton")) return TensorCoreUse::kUnknown;
  if (HasAny(lower, Names::kCudaCore)) return TensorCoreUse::kNo;
  const bool multiplies = Has(lower, "gemm") || Has(lower, "conv") || Has(lower, "mm_") ||
                          Has(lower, "attn") || Has(lower, "attention");
  if (!multiplies && Has(lower, "at::native")) return TensorCoreUse::kNo;
  return TensorCoreUse::kUnknown;
}

KernelKind KernelKindOf(std::string_view name) {
  const std::string lower = Lower(WithoutUnnamed(name));
  if (Has(lower, "nccl") || Has(lower, "rccl")) return KernelKind::kCollective;
  if (HasAny(lower, Names::kTensorCoreAttention)) {
    return HasAny(lower, Names::kAttentionStep) ? KernelKind::kOther : KernelKind::kAttention;
  }
  if (Has(lower, "elementwise") || HasAny(lower, Names::kSplitSum) || IsCompiledWithoutProducts(lower))
    return KernelKind::kOther;
  if (IsTensile(lower)) return KernelKind::kGemm;
  // MIOpen's implicit products.
  if (Has(lower, "igemm_bwd")) return KernelKind::kConvolutionInputGradient;
  if (Has(lower, "igemm_wrw")) return KernelKind::kConvolutionWeightGradient;
  if (Has(lower, "igemm_fwd") || Has(lower, "asmconv")) return KernelKind::kConvolution;
  if (Has(lower, "dgrad")) return KernelKind::kConvolutionInputGradient;
  if (Has(lower, "wgrad")) return KernelKind::kConvolutionWeightGradient;
  if (Has(lower, "depthwise")) {
    return Has(lower, "weight")     ? KernelKind::kConvolutionWeightGradient
           : Has(lower, "backward") ? KernelKind::kConvolutionInputGradient
                                    : KernelKind::kConvolution;
  }
  if (Has(lower, "fprop") || Has(lower, "cudnn_1") || Has(lower, "scudnn") || Has(lower, "884cudnn") ||
      Has(lower, "1688cudnn") || Has(lower, "16816cudnn") || Has(lower, "8816cudnn") ||
      Has(lower, "16832cudnn") || Has(lower, "implicit_convolve") || Has(lower, "winograd") ||
      Has(lower, "conv2d") || Has(lower, "convolve")) {
    return KernelKind::kConvolution;
  }
  if (Has(lower, "gemm") || Has(lower, "gemv") || Has(lower, "nvjet_") || Has(lower, "bmm_") ||
      Has(lower, "triton_mm") || Has(lower, "triton_tem")) {
    return KernelKind::kGemm;
  }
  return KernelKind::kOther;
}

std::optional<DType> KernelDType(std::string_view name) {
  const std::string lower = Lower(WithoutUnnamed(name));
  // Casts on the way, so two types at least; and cuDNN says f16 for bfloat16 too.
  if (Has(lower, "withcast") || Has(lower, "native_sdpa")) return std::nullopt;
  // Four bits, which no type of ours has.
  if (Has(lower, "xf4_") || Has(lower, "e2m1")) return std::nullopt;
  if (const std::string_view types = NvjetTypes(lower); !types.empty()) return NvjetDType(types[0]);
  if (IsTensile(lower)) return TensileDType(lower);
  // "(unsigned long)2" is a size, not a type of elements.
  std::string types = lower;
  for (size_t at = types.find("unsigned long"); at != std::string::npos;
       at = types.find("unsigned long", at)) {
    types.erase(at, 13);
  }
  // A learning rate is double whatever the parameters are; the functor's first type is theirs.
  constexpr std::string_view kFunctor = "functor<";
  if (const size_t functor = types.find(kFunctor);
      functor != std::string::npos && Has(types, "multi_tensor_apply"))
    types = types.substr(functor, types.find(',', functor) - functor);
  for (const NamePart& name_part : kNameParts) {
    if (name_part.names == Names::kElementType && Has(types, name_part.part)) return name_part.dtype;
  }
  // Elsewhere it is a type of indices.
  if (Has(types, "elementwise_kernel") && Has(types, "long")) return DType::kInt64;
  return std::nullopt;
}

std::optional<DType> KernelResultDType(std::string_view name) {
  const std::string lower = Lower(name);
  const std::string_view types = NvjetTypes(lower);
  return types.empty() ? std::nullopt : NvjetDType(types.back());
}

std::optional<bool> KernelIsCausal(std::string_view name) {
  struct Kernel {
    std::string_view name;
    size_t causal;  // among the template arguments; whether a window limits the keys comes next
  };
  static constexpr Kernel kKernels[] = {{"flash_fwd_kernel", 2},
                                        {"flash_fwd_splitkv_kernel", 1},
                                        {"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel", 2}};
  for (const Kernel& kernel : kKernels) {
    const std::vector<std::string_view> arguments = TemplateArguments(name, kernel.name);
    if (arguments.size() <= kernel.causal + 1 || IsTrue(arguments[kernel.causal + 1])) continue;
    return IsTrue(arguments[kernel.causal]);
  }
  return std::nullopt;
}

std::string BriefKernelName(std::string_view name) {
  const std::string text = WithoutUnnamed(name);
  std::string_view base = ShortKernelName(text);
  const std::string_view rest = std::string_view(text).substr(base.data() + base.size() - text.data());
  const std::string_view before(text.data(), base.data() - text.data());
  if (base == "kernel" && before.size() > 2 && before.back() == ':') {
    // "gemvx::kernel" is named by its namespace.
    const size_t end = before.find_last_of(": ", before.size() - 3);
    base = std::string_view(text).substr(end + 1);  // npos + 1 is 0
    base.remove_suffix(rest.size());
  }
  std::string result(base);
  if (IsGeneric(base)) {
    const std::string_view word = FirstTellingWord(rest.substr(0, EndOfName(rest)));
    if (!word.empty()) result.append("<").append(word).append(">");
  }
  for (char& c : result) {
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) c = '_';
  }
  return result.empty() ? "?" : result;
}

std::string DemangledKernelName(const std::string& name) {
  // Others may be types: "f" is float.
  if (name.substr(0, 2) != "_Z") return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 ? demangled.get() : name;
}

std::string_view ShortKernelName(std::string_view demangled) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  size_t begin = 0, end = 0;  // of the part of the name that was seen last
  int depth = 0;              // of brackets
  for (size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    // Kernels return void, some by way of std::enable_if.
    const std::string_view word = demangled.substr(begin, i - begin);
    const bool is_return_type = word == "void" || word == "type";
    if (depth == 0 && c == '(' && demangled.substr(i, kAnonymous.size()) != kAnonymous) break;
    if (c == '<' || c == '(') {
      ++depth;
    } else if (c == '>' || c == ')') {
      const bool is_arrow = i > 0 && demangled[i - 1] == '-';
      if (depth > 0 && !is_arrow) --depth;
    } else if (depth == 0 && (c == ':' || (c == ' ' && is_return_type))) {
      begin = end = i + 1;
    } else if (depth == 0 && c != ' ') {
      end = i + 1;
    }
  }
  return end > begin ? demangled.substr(begin, end - begin) : demangled;
}

}  // namespace ott
