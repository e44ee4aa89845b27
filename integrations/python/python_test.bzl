"""Tests in Python, run by the machine's python3 (py_test of Bazel 4 asks for a program called python)."""

load("@rules_shell//shell:sh_test.bzl", "sh_test")
load("//third_party:optional_library.bzl", "needs")

def python_test(name, size = "small", src = None, data = [], launcher = [], arguments = [], target_compatible_with = None, **kwargs):
    """A program, with the package.

    Args:
      name: the test's name.
      size: as of the rule.
      src: NAME.py if not given.
      data: as of the rule.
      launcher: words in front of python3, such as what starts several ranks.
      arguments: of the program.
      target_compatible_with: as of the rule; Python if not given.
      **kwargs: as of the rule.
    """
    src = src or name + ".py"
    sh_test(
        name = name,
        size = size,
        srcs = ["//integrations/python:run_python.sh"],
        args = launcher + ["python3", "-P", "$(rootpath %s)" % src] + arguments,
        data = data + [src, "//integrations/python:ott"],
        target_compatible_with = target_compatible_with or needs("python"),
        **kwargs
    )
