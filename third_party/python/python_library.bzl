"""Headers of Python and pybind11, as a repository that loads whether or not they are installed.

The repository's found.bzl has

  FOUND       True iff the interpreter, its Python.h and pybind11 were found,
  CACHE_TAG   "cpython-311", the interpreter's sys.implementation.cache_tag; empty if not found,
  EXT_SUFFIX  the end of an extension module's file name, ".cpython-311-x86_64-linux-gnu.so"; empty if not found.

The environment's PYTHON_HOME is the prefix of both; PYTHON_INTERPRETER and PYBIND11_INCLUDE name one of them elsewhere.
"""

_ASK = """
import sys, sysconfig
print(sysconfig.get_path("include"))
print(sysconfig.get_config_var("EXT_SUFFIX"))
print(sys.implementation.cache_tag)
"""

def _python_library_impl(ctx):
    home = ctx.os.environ.get("PYTHON_HOME", "/usr")
    interpreter = ctx.path(ctx.os.environ.get("PYTHON_INTERPRETER", home + "/bin/python3"))
    found, suffix, tag = False, "", ""
    if interpreter.exists:
        answer = ctx.execute([interpreter, "-I", "-c", _ASK])
        lines = answer.stdout.split("\n")
        pybind11 = ctx.path(ctx.os.environ.get("PYBIND11_INCLUDE", home + "/include") + "/pybind11")
        found = answer.return_code == 0 and ctx.path(lines[0] + "/Python.h").exists and pybind11.exists
        if found:
            ctx.symlink(lines[0], "python")
            ctx.symlink(pybind11, "pybind11_include/pybind11")
            suffix, tag = lines[1:3]
    ctx.file("found.bzl", "FOUND = %r\nCACHE_TAG = %r\nEXT_SUFFIX = %r\n" % (found, tag, suffix))
    ctx.symlink(ctx.attr.build_file, "BUILD.bazel")

python_library = repository_rule(
    implementation = _python_library_impl,
    attrs = {"build_file": attr.label(mandatory = True)},
    configure = True,
    environ = ["PYBIND11_INCLUDE", "PYTHON_HOME", "PYTHON_INTERPRETER"],
    local = True,
)
