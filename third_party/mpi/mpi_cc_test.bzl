"""Tests that run on several ranks."""

load("@rules_cc//cc:defs.bzl", "cc_binary")
load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//third_party:optional_library.bzl", "needs")

def tests_of_ranks(name, launcher, ranks, cases = [], args = [], tags = [], **kwargs):
    """The tests that start the program NAME_rank on several ranks.

    Every rank must end by itself with 0. Rank 0 writes the test's XML report.

    Args:
      name: the test's name.
      launcher: the script that starts RANKS PROGRAM [ARG...].
      ranks: how many processes; of a list, each number has a test NAME_RANKS_ranks.
      cases: each has processes of its own, and a test NAME_CASE.
      args: arguments of the program.
      tags: as of sh_test.
      **kwargs: as of sh_test.
    """
    numbers = ranks if type(ranks) == "list" else [ranks]
    for number in numbers:
        prefix = name if len(numbers) == 1 else "%s_%d_ranks" % (name, number)
        runs = {prefix + "_" + case: ["--gtest_filter=*." + case] for case in cases}

        # A test that nobody made a case runs all the same.
        runs[prefix + ("_others" if cases else "")] = ["--gtest_filter=-*." + ":*.".join(cases)] if cases else []
        for test, arguments in runs.items():
            sh_test(
                name = test,
                srcs = [launcher],
                args = [str(number), "$(location :%s_rank)" % name] + arguments + args,
                data = [":%s_rank" % name],
                tags = tags + ["cpu:%d" % min(number, 2)],
                **kwargs
            )

def mpi_cc_test(name, ranks, cases = [], args = [], size = "small", srcs = None, tags = [], deps = [], **kwargs):
    """A cc_test started as `mpirun -np RANKS`; skipped where MPI is missing.

    Args:
      name: the test's name; NAME_rank is the program one rank runs.
      ranks: as of tests_of_ranks.
      cases: as of tests_of_ranks.
      args: arguments of the program.
      size: as in cc_test.
      srcs: NAME.cc if not given.
      tags: as in cc_test.
      deps: of the program.
      **kwargs: what else cc_binary takes: data, ...
    """
    cc_binary(
        name = name + "_rank",
        testonly = True,
        srcs = srcs or [name + ".cc"],
        target_compatible_with = needs("mpi"),
        deps = deps + [Label("//third_party/mpi:thread_sanitizer_suppressions")],
        **kwargs
    )
    tests_of_ranks(
        name = name,
        size = size,
        args = args,
        cases = cases,
        launcher = Label("//third_party/mpi:mpirun.sh"),
        ranks = ranks,
        tags = tags,
        target_compatible_with = needs("mpi"),
    )
