"""Tests of CUDA code, on a GPU and on the stand-in for the CUDA runtime."""

load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//third_party:optional_library.bzl", "needs")
load("//tools/build_defs:cc.bzl", "cc_binary")

_STAND_IN = "//third_party/cuda/testing:libcudart.so.13"
_RUN = "//third_party/cuda/testing:run_on_stand_in.sh"

# For target_compatible_with, beside needs(): what has it is skipped on platforms whose machines have no GPU.
WITH_GPU = [str(Label("//third_party/cuda:with_gpu"))]

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

def gpu_test(name, deps, srcs = None, kernels = [], libraries = [], data = [], stand_in_args = [], **kwargs):
    """A GoogleTest that needs a GPU, and NAME_on_stand_in, which runs it without one.

    Args:
      name: the test's name; NAME_program is what both run.
      deps: as of cc_binary, without the CUDA runtime, the header of the stand-in, and GoogleTest.
      srcs: NAME.cc if not given.
      kernels: as of stand_in_test.
      libraries: as of stand_in_test.
      data: as of every rule.
      stand_in_args: arguments of the program on the stand-in.
      **kwargs: as of cc_binary.
    """
    program = name + "_program"
    cc_binary(
        name = program,
        testonly = True,
        srcs = srcs or [name + ".cc"],
        data = data,
        target_compatible_with = needs("cuda"),
        deps = deps + [
            "//third_party/cuda/testing:gpu_gtest_main",
            "//third_party/cuda/testing:stand_in",
            "@cuda//:cuda_runtime",
            "@googletest//:gtest",
        ],
        **kwargs
    )
    sh_test(
        name = name,
        size = "small",
        srcs = ["//third_party/cuda/testing:run_on_gpu.sh"],
        args = ["$(location :%s)" % program],
        data = data + [":" + program],
        # Whoever runs others beside it measures them too.
        tags = [
            "exclusive",
            "requires-gpu",
        ],
        target_compatible_with = needs("cuda") + WITH_GPU,
    )
    stand_in_test(
        name = name + "_on_stand_in",
        test = ":" + program,
        kernels = kernels,
        libraries = libraries,
        args = stand_in_args,
        data = data,
    )
