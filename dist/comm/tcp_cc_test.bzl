"""Tests that run on several ranks without MPI."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("//third_party:optional_library.bzl", "needs")
load("//third_party/cuda/testing:stand_in_test.bzl", "WITH_GPU", "stand_in_test")
load("//third_party/mpi:mpi_cc_test.bzl", "tests_of_ranks")

_LAUNCHER = "//dist/comm:start_ranks.sh"

def tcp_cc_test(name, ranks, srcs = None, tags = [], target_compatible_with = [], machines = [], **kwargs):
    """A cc_test of which several processes are started as torchrun would start them.

    Args:
      name: the test's name; NAME_rank is the program one rank runs.
      ranks: as of tests_of_ranks.
      srcs: NAME.cc if not given.
      tags: as in cc_test.
      target_compatible_with: as in cc_test.
      machines: further constraints on where it is run, not on where it is built.
      **kwargs: what cc_binary takes: deps, data, ...
    """
    cc_binary(
        name = name + "_rank",
        testonly = True,
        srcs = srcs or [name + ".cc"],
        target_compatible_with = target_compatible_with,
        **kwargs
    )
    tests_of_ranks(
        name = name,
        size = "small",
        launcher = _LAUNCHER,
        ranks = ranks,
        tags = tags,
        target_compatible_with = target_compatible_with + machines,
    )

def nccl_gpu_test(name, ranks, stand_in_ranks, deps, kernels = []):
    """A tcp_cc_test of ranks that have GPUs and NCCL, and NAME_RANKS_ranks_on_stand_in, which run it without.

    Args:
      name: the test's name; NAME_rank is the program one rank runs.
      ranks: as of tests_of_ranks.
      stand_in_ranks: how many processes there are on the stand-ins, a list.
      deps: as of cc_binary, without the CUDA runtime, the header of its stand-in, and GoogleTest.
      kernels: as of stand_in_test.
    """
    tcp_cc_test(
        name = name,
        ranks = ranks,
        tags = [
            "exclusive",
            "requires-gpu",
        ],
        machines = WITH_GPU,
        target_compatible_with = needs("nccl"),
        deps = deps + [
            "//third_party/cuda/testing:stand_in",
            "@cuda//:cuda_runtime",
            "@googletest//:gtest",
        ],
    )
    for number in stand_in_ranks:
        nccl_stand_in_test(
            name = "%s_%d_ranks_on_stand_in" % (name, number),
            kernels = kernels,
            ranks = number,
            test = ":%s_rank" % name,
        )

def nccl_stand_in_test(name, test, ranks, environment = [], **kwargs):
    """Starts a test's program once for each rank; see stand_in_test.

    Args:
      name: the test's name.
      test: the program of one rank, linked with the real libraries.
      ranks: how many processes.
      environment: NAME=VALUE of all of them.
      **kwargs: as of stand_in_test.
    """
    stand_in_test(
        name = name,
        command = (["env"] + environment if environment else []) + ["$(location %s)" % _LAUNCHER, str(ranks)],
        data = [_LAUNCHER],
        libraries = ["//third_party/nccl/testing:libnccl.so.2"],
        needs_library = "nccl",
        tags = ["cpu:2"],
        test = test,
        **kwargs
    )
