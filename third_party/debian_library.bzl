"""A library of a Debian -dev package, whose headers lie where the compiler looks anyway.

The repository loads whether or not the package is installed. Without it, the first target that needs the
library fails to build, naming the package.
"""

_HEAD = """load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])
"""

_MISSING = """
genrule(
    name = "{name}_missing",
    outs = ["{name}_missing.h"],
    cmd = "echo 'Debian package {package} is not installed; tools/setup installs all that is needed' >&2; exit 1",
)
"""

_LIBRARY = """
cc_library(
    name = "{name}",
    hdrs = {hdrs},
    linkopts = {linkopts},
)
"""

def debian_cc_library(name, package, linkopts, installed):
    """Returns the BUILD text of one library; see debian_build_file.

    Args:
      name: the target's name.
      package: the Debian package that has it.
      linkopts: what links it.
      installed: False makes every use of it an error that names the package.

    Returns:
      Text for a BUILD file.
    """
    text = "" if installed else _MISSING.format(name = name, package = package)
    hdrs = [] if installed else [":%s_missing" % name]
    return text + _LIBRARY.format(name = name, hdrs = repr(hdrs), linkopts = repr(linkopts))

def debian_build_file(libraries):
    """Returns the text of a BUILD file holding these libraries (texts of debian_cc_library)."""
    return _HEAD + "".join(libraries)

def _debian_library_impl(ctx):
    installed = ctx.path("/usr/include/" + ctx.attr.header).exists
    ctx.file("BUILD.bazel", debian_build_file([
        debian_cc_library(name, ctx.attr.package, linkopts, installed)
        for name, linkopts in ctx.attr.targets.items()
    ]))

debian_library = repository_rule(
    implementation = _debian_library_impl,
    attrs = {
        "header": attr.string(mandatory = True, doc = "A header of the package, below /usr/include."),
        "package": attr.string(mandatory = True),
        "targets": attr.string_list_dict(mandatory = True, doc = "Target name -> linkopts."),
    },
    configure = True,
    local = True,
)
