"""A cc_library of CUDA sources, compiled by nvcc. Its targets are skipped where CUDA is missing."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//third_party:optional_library.bzl", "needs")

# Newer versions of Bazel put here the include paths of other repositories.
def _external_includes(headers):
    return getattr(headers, "external_includes", depset())

def _compile(ctx, toolchain, src, output, headers, flags):
    # nvcc takes the standard from the flags of C++; the compiler is the toolchain's.
    standards = [flag for flag in ctx.fragments.cpp.cxxopts if flag.startswith("-std=")]
    args = ctx.actions.args()
    args.add_all(["-x", "cu", (["-std=c++17"] + standards)[-1], "-O3", "-lineinfo", "-Xcompiler", "-fPIC", src, "-o", output])
    args.add("-ccbin", toolchain.compiler_executable)
    args.add_all(flags)
    args.add_all(ctx.attr._copts[BuildSettingInfo].value)
    args.add_all(headers.defines, before_each = "-D")
    args.add_all(headers.includes, before_each = "-I")
    args.add_all(headers.quote_includes, before_each = "-I")
    args.add_all(headers.system_includes, before_each = "-isystem")
    args.add_all(_external_includes(headers), before_each = "-isystem")
    ctx.actions.run(
        arguments = [args],
        executable = ctx.executable._nvcc,
        inputs = depset([src], transitive = [headers.headers, toolchain.all_files]),
        mnemonic = "CudaCompile",
        outputs = [output],
        use_default_shell_env = True,
    )
    return output

def _cuda_library_impl(ctx):
    toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    deps = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])

    # Compiles nothing: gives the public headers their include prefix.
    compilation, _ = cc_common.compile(
        name = ctx.label.name,
        actions = ctx.actions,
        cc_toolchain = toolchain,
        compilation_contexts = [deps.compilation_context],
        feature_configuration = features,
        include_prefix = ctx.attr.include_prefix,
        public_hdrs = ctx.files.hdrs,
    )

    architectures = ctx.attr._architectures[BuildSettingInfo].value
    object_flags = ["-c", "-gencode=arch=compute_%s,code=compute_%s" % (architectures[-1], architectures[-1])]
    object_flags += ["-gencode=arch=compute_%s,code=sm_%s" % (arch, arch) for arch in architectures]
    objects = []
    cubins = []
    for src in ctx.files.srcs:
        stem = "_objs/%s/%s" % (ctx.label.name, src.basename)
        objects.append(_compile(ctx, toolchain, src, ctx.actions.declare_file(stem + ".o"), compilation, object_flags))
        for arch in architectures:
            cubin = ctx.actions.declare_file("%s.sm_%s.cubin" % (stem, arch))
            cubins.append(_compile(ctx, toolchain, src, cubin, compilation, ["-cubin", "-arch=sm_" + arch]))

    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        feature_configuration = features,
        linking_contexts = [deps.linking_context],
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(compilation_context = compilation, linking_context = linking),
        # The machine code of each architecture, for tests that look at it.
        OutputGroupInfo(cubins = depset(cubins)),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "include_prefix": attr.string(doc = "As in cc_library."),
        "srcs": attr.label_list(allow_files = [".cu"]),
        "_architectures": attr.label(default = "//third_party/cuda:architectures"),
        "_cc_toolchain": attr.label(default = "@rules_cc//cc:current_cc_toolchain"),
        "_copts": attr.label(default = "//third_party/cuda:copts"),
        "_nvcc": attr.label(cfg = "exec", default = "@cuda//:nvcc", executable = True),
    },
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)

def _host_bodies_impl(ctx):
    toolchain = find_cc_toolchain(ctx)
    headers = ctx.attr.library[CcInfo].compilation_context
    output = ctx.actions.declare_file(ctx.label.name + ".so")
    args = ctx.actions.args()
    args.add_all([toolchain.compiler_executable, output, ctx.file._host_body])
    args.add_all(ctx.files.srcs)
    args.add("--")
    args.add_all(headers.defines, before_each = "-D")
    args.add_all(headers.includes, before_each = "-I")
    args.add_all(headers.quote_includes, before_each = "-I")
    args.add_all(headers.system_includes, before_each = "-isystem")
    args.add_all(_external_includes(headers), before_each = "-isystem")
    ctx.actions.run(
        arguments = [args],
        executable = ctx.file._compile,
        inputs = depset(ctx.files.srcs + [ctx.file._host_body], transitive = [headers.headers, toolchain.all_files]),
        mnemonic = "HostBodies",
        outputs = [output],
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles(files = [output]))]

_host_bodies = rule(
    implementation = _host_bodies_impl,
    attrs = {
        "library": attr.label(providers = [CcInfo]),
        "srcs": attr.label_list(allow_files = [".cu"]),
        "_cc_toolchain": attr.label(default = "@rules_cc//cc:current_cc_toolchain"),
        "_compile": attr.label(
            allow_single_file = True,
            default = "//third_party/cuda/testing:compile_host_bodies.sh",
        ),
        "_host_body": attr.label(
            allow_single_file = True,
            default = "//third_party/cuda/testing:host_body.h",
        ),
    },
    doc = "The kernels of a cuda_library as a shared library for the stand-in for the CUDA runtime.",
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)

def cuda_library(name, deps = [], **kwargs):
    """A cc_library whose sources are CUDA; headers are included as "ott/PACKAGE/HEADER".

    Args:
      name: the target's name.
      deps: cc_library targets; the CUDA runtime is added.
      **kwargs: hdrs, srcs (.cu), and what every rule takes.

    NAME_host_bodies is for stand_in_test.
    """
    _host_bodies(
        name = name + "_host_bodies",
        testonly = True,
        srcs = kwargs["srcs"],
        library = ":" + name,
        tags = ["manual"],
        visibility = ["//visibility:public"],
        target_compatible_with = needs("cuda"),
    )
    _cuda_library(
        name = name,
        target_compatible_with = needs("cuda"),
        include_prefix = "ott/" + native.package_name(),
        deps = deps + ["@cuda//:cuda_runtime"],
        **kwargs
    )
