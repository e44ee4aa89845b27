"""Tests in Python, run by the machine's python3 (py_test of Bazel 4 asks for a program called python)."""

load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//third_party:optional_library.bzl", "needs")

def python_test(name, size = "small", data = [], launcher = [], **kwargs):
    """NAME.py, with the package ott.

    Args:
      name: the test's name.
      size: as of the rule.
      data: as of the rule.
      launcher: words in front of python3, such as what starts several ranks.
      **kwargs: as of the rule.
    """
    sh_test(
        name = name,
        size = size,
        srcs = ["//integrations/python:run_python.sh"],
        args = launcher + ["python3", "-P", "$(rootpath %s.py)" % name],
        data = data + [name + ".py", "//integrations/python:ott"],
        target_compatible_with = needs("python"),
        **kwargs
    )
