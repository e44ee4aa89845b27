"""Tests that run on several ranks without MPI."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_shell//shell:sh_test.bzl", "sh_test")

def tcp_cc_test(name, ranks, args = [], size = "small", tags = [], target_compatible_with = [], **kwargs):
    """A cc_test of which several processes are started as torchrun would start them.

    Every rank must end by itself with 0. Rank 0 writes the test's XML report.

    Args:
      name: the test's name; NAME_rank is the program one rank runs.
      ranks: how many processes.
      args: arguments of the program.
      size: as in cc_test.
      tags: as in cc_test.
      target_compatible_with: as in cc_test.
      **kwargs: what cc_binary takes: srcs, deps, data, ...
    """
    cc_binary(
        name = name + "_rank",
        testonly = True,
        target_compatible_with = target_compatible_with,
        **kwargs
    )
    sh_test(
        name = name,
        size = size,
        srcs = ["//dist/comm:start_ranks.sh"],
        args = [str(ranks), "$(location :%s_rank)" % name] + args,
        data = [":%s_rank" % name],
        tags = tags + ["cpu:%d" % min(ranks, 2)],
        target_compatible_with = target_compatible_with,
    )
