"""Tests that run on several ranks."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//third_party:optional_library.bzl", "needs")

def mpi_cc_test(name, ranks, args = [], size = "small", tags = [], deps = [], **kwargs):
    """A cc_test started as `mpirun -np RANKS`; skipped where MPI is missing.

    Every rank must end by itself with 0. Rank 0 writes the test's XML report.

    Args:
      name: the test's name; NAME_rank is the program one rank runs.
      ranks: how many processes.
      args: arguments of the program.
      size: as in cc_test.
      tags: as in cc_test.
      deps: of the program.
      **kwargs: what else cc_binary takes: srcs, data, ...
    """
    cc_binary(
        name = name + "_rank",
        testonly = True,
        target_compatible_with = needs("mpi"),
        deps = deps + [Label("//third_party/mpi:thread_sanitizer_suppressions")],
        **kwargs
    )
    sh_test(
        name = name,
        size = size,
        srcs = [Label("//third_party/mpi:mpirun.sh")],
        args = [str(ranks), "$(location :%s_rank)" % name] + args,
        data = [":%s_rank" % name],
        tags = tags + ["cpu:%d" % min(ranks, 2)],
        target_compatible_with = needs("mpi"),
    )
