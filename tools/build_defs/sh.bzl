"""Tests that are scripts."""

load("@rules_shell//shell:sh_test.bzl", "sh_test")

def script_test(name, programs, size = "small", src = None, words = [], data = [], **kwargs):
    """A script that is told where what it runs lies.

    Args:
      name: the test's name.
      programs: programs and files, whose paths are its first arguments.
      size: as of the rule.
      src: NAME.sh if not given.
      words: its further arguments.
      data: what it needs beside the programs.
      **kwargs: as of the rule.
    """
    sh_test(
        name = name,
        size = size,
        srcs = [src or name + ".sh"],
        args = ["$(rootpath %s)" % program for program in programs] + words,
        data = programs + data,
        **kwargs
    )
