"""Tests of several ranks that run on the stand-ins for the CUDA runtime and for NCCL."""

load("//third_party/cuda/testing:stand_in_test.bzl", "stand_in_test")

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
        command = (["env"] + environment if environment else []) + ["$(location //dist/comm:start_ranks.sh)", str(ranks)],
        data = ["//dist/comm:start_ranks.sh"],
        libraries = ["//third_party/nccl/testing:libnccl.so.2"],
        needs_library = "nccl",
        tags = ["cpu:2"],
        test = test,
        **kwargs
    )
