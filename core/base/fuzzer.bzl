"""Fuzzers: libFuzzer programs that need clang, so they are built by hand."""

load("@rules_cc//cc:defs.bzl", "cc_binary")

def fuzzer(name, deps):
    """A program of NAME.cc, run as bazel run --config=fuzz :NAME -- CORPUS -max_total_time=600.

    Args:
      name: the program's and, with .cc, its source's name.
      deps: what the source needs.
    """
    cc_binary(
        name = name,
        testonly = True,
        srcs = [name + ".cc"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps,
    )
