"""Packages what programs of other build systems get: one library, and the headers that they include."""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def _headers_impl(ctx):
    headers = depset(transitive = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.deps])

    # Those of other repositories are the system's.
    own = [header for header in headers.to_list() if "/ott/" in header.path]
    paths = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(paths, "".join([header.path + "\n" for header in own]))
    return [DefaultInfo(files = depset([paths] + own))]

headers = rule(
    implementation = _headers_impl,
    attrs = {"deps": attr.label_list(mandatory = True, providers = [CcInfo])},
    doc = "All headers named ott/... that deps and what they use have, and NAME.txt with their paths, one a line.",
)

def _objects_impl(ctx):
    objects = []
    for dep in ctx.attr.deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            for library in linker_input.libraries:
                objects += library.pic_objects or library.objects or []
    own = [object for object in objects if object.owner.workspace_name == ""]
    return [DefaultInfo(files = depset(own))]

objects = rule(
    implementation = _objects_impl,
    attrs = {"deps": attr.label_list(mandatory = True, providers = [CcInfo])},
    doc = "The object files of deps and of what they use in this repository: from archives, a linker takes what it needs.",
)
