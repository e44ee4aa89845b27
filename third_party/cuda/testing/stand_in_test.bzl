"""Tests of CUDA code that run on the stand-in for the CUDA runtime."""

load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//third_party:optional_library.bzl", "needs")

_STAND_IN = "//third_party/cuda/testing:libcudart.so.13"
_RUN = "//third_party/cuda/testing:run_on_stand_in.sh"

def stand_in_test(name, test, kernels = [], args = [], command = [], data = [], libraries = [], size = "small", tags = [], needs_library = "cuda", **kwargs):
    """Runs a test's program, as it is, on devices made of host memory.

    Args:
      name: the test's name.
      test: the cc_test or cc_binary, linked with the real runtime.
      kernels: the cuda_library targets whose kernels it launches.
      args: arguments of the program.
      command: what starts the program, with its arguments; their files are in data.
      data: as of every rule.
      libraries: further stand-ins, each found in place of the real library.
      size: as of every rule.
      tags: as of every rule.
      needs_library: as of needs().
      **kwargs: as of sh_test.
    """
    files = [_STAND_IN] + libraries + [kernel + "_host_bodies" for kernel in kernels]
    sh_test(
        name = name,
        size = size,
        srcs = [_RUN],
        args = ["$(location %s)" % file for file in files] + ["--"] + command + ["$(location %s)" % test] + args,
        data = files + [test] + data,
        # The stand-in is loaded before a sanitizer could be.
        tags = tags + ["no-sanitizer"],
        target_compatible_with = needs(needs_library),
        **kwargs
    )
