"""Tests of CUDA code, on a GPU and on the stand-in for the CUDA runtime."""

load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//third_party:optional_library.bzl", "needs")
load("//tools/build_defs:cc.bzl", "cc_test")

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

def gpu_test(name, deps, kernels = [], libraries = [], data = [], stand_in_args = [], **kwargs):
    """A GoogleTest that needs a GPU, and NAME_on_stand_in, which runs it without one.

    Args:
      name: the test's name.
      deps: as of cc_test, without the CUDA runtime and the header of the stand-in.
      kernels: as of stand_in_test.
      libraries: as of stand_in_test.
      data: as of every rule.
      stand_in_args: arguments of the program on the stand-in.
      **kwargs: as of cc_test.
    """
    cc_test(
        name = name,
        data = data,
        main = "//third_party/cuda/testing:gpu_gtest_main",
        # Whoever runs others beside it measures them too.
        tags = [
            "exclusive",
            "requires-gpu",
        ],
        target_compatible_with = needs("cuda"),
        deps = deps + [
            "//third_party/cuda/testing:stand_in",
            "@cuda//:cuda_runtime",
        ],
        **kwargs
    )
    stand_in_test(
        name = name + "_on_stand_in",
        test = ":" + name,
        kernels = kernels,
        libraries = libraries,
        args = stand_in_args,
        data = data,
    )
