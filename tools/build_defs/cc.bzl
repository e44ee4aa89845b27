"""The rules of C++ as the rooms of this repository use them."""

load("@com_google_protobuf//bazel:cc_proto_library.bzl", "cc_proto_library")
load("@com_google_protobuf//bazel:proto_library.bzl", "proto_library")
load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library", _cc_test = "cc_test")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

# Folders whose headers nobody else includes.
_PROGRAMS = ["examples", "tools"]

def _linked_impl(ctx):
    return [
        CcInfo(linking_context = ctx.attr.dep[CcInfo].linking_context),
        DefaultInfo(runfiles = ctx.attr.dep[DefaultInfo].default_runfiles),
    ]

_linked = rule(
    implementation = _linked_impl,
    attrs = {"dep": attr.label(mandatory = True, providers = [CcInfo])},
    doc = "What links dep, without its headers and include paths.",
)

def _one_file(name, srcs):
    """Compiles srcs as one file with --define=ott_compile=joined, which this repository's .bazelrc sets.

    That takes half the time: headers are read and templates made once. The file names where its parts are from. What needs
    protobuf (_proto.cc) is another one, for programs that do without. Without it, as in other repositories, each file is
    compiled by itself.
    """
    if type(srcs) != "list":
        return srcs
    proto = [src for src in srcs if src.endswith("_proto.cc")]
    parts = [src for src in srcs if src.endswith(".cc") and src not in proto]
    rest = [src for src in srcs if src not in parts + proto]
    return _joined(name + ".sources.cc", parts) + _joined(name + ".proto_sources.cc", proto) + rest

def _joined(file, parts):
    if len(parts) < 2:
        return parts
    native.genrule(
        name = file.replace(".cc", "").replace(".", "_"),
        srcs = parts,
        outs = [file],
        cmd = """printf '#if !defined(__clang__)\\n#pragma GCC diagnostic ignored "-Wsubobject-linkage"\\n#endif\\n' > $@
            for part in $(SRCS); do printf '#line 1 "%s"\\n' $$part; cat $$part; done >> $@""",
    )
    return select({
        "//tools/build_defs:compile_joined": [file],
        "//conditions:default": parts,
    })

def cc_library(name, srcs = None, hdrs = None, deps = [], implementation_deps = None, visibility = None, **kwargs):
    """A cc_library of the files of its name, or of srcs and hdrs.

    Headers of what is linked into programs of others are included as "ott/PACKAGE/HEADER", so that a consumer's own core/
    never collides.

    Args:
      name: the target's name.
      srcs: NAME.cc if not given; [] where the header is all.
      hdrs: NAME.h if not given.
      deps: as of the rule.
      implementation_deps: what srcs alone need, as in newer versions of Bazel: users link it, and are not compiled again
          where it changes or is missing.
      visibility: as of the rule.
      **kwargs: as of the rule.
    """
    if srcs == None:
        srcs = [name + ".cc"]
    if hdrs == None:
        hdrs = [name + ".h"]
    if native.package_name().split("/")[0] not in _PROGRAMS:
        kwargs["include_prefix"] = "ott/" + native.package_name()
    srcs = _one_file(name, srcs)
    if implementation_deps != None:
        _cc_library(
            name = name + "_implementation",
            srcs = srcs,
            hdrs = hdrs,
            deps = deps + implementation_deps,
            **kwargs
        )
        _linked(
            name = name + "_linked",
            dep = ":" + name + "_implementation",
        )
        srcs = []
        deps = deps + [":" + name + "_linked"]
        kwargs = {"include_prefix": kwargs["include_prefix"]}
    _cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        visibility = visibility,
        deps = deps,
        **kwargs
    )

def cc_binary(name, srcs, **kwargs):
    """A cc_binary."""
    _cc_binary(
        name = name,
        srcs = _one_file(name, srcs),
        **kwargs
    )

def cc_test(name, size = "small", srcs = None, deps = [], main = "@googletest//:gtest_main", **kwargs):
    """A GoogleTest.

    Args:
      name: the target's name.
      size: as of the rule.
      srcs: NAME.cc if not given.
      deps: as of the rule, without the main program and GoogleTest.
      main: what has the main program.
      **kwargs: as of the rule.
    """
    _cc_test(
        name = name,
        size = size,
        srcs = _one_file(name, srcs or [name + ".cc"]),
        deps = deps + [main, "@googletest//:gtest"],
        **kwargs
    )

def cc_proto(name, deps = [], visibility = None, testonly = None):
    """NAME.proto, imported as "ott/PACKAGE/NAME.proto": the targets NAME_proto and NAME_cc_proto.

    Args:
      name: the file's name without .proto.
      deps: the proto_library targets (..._proto) that it imports.
      visibility: of both targets.
      testonly: of both targets.
    """
    proto_library(
        name = name + "_proto",
        testonly = testonly,
        srcs = [name + ".proto"],
        import_prefix = "ott",
        strip_import_prefix = "/",
        visibility = visibility,
        deps = deps,
    )
    cc_proto_library(
        name = name + "_cc_proto",
        testonly = testonly,
        visibility = visibility,
        deps = [":" + name + "_proto"],
    )
