"""The sources of a library and of what it needs in this repository, for a test that compiles them itself."""

_Sources = provider(fields = ["files"])

def _collect_impl(target, ctx):
    own = []
    if not target.label.workspace_name:
        own = [source.files for source in getattr(ctx.rule.attr, "srcs", []) + getattr(ctx.rule.attr, "hdrs", [])]
    deps = getattr(ctx.rule.attr, "deps", [])
    return [_Sources(files = depset(transitive = own + [dep[_Sources].files for dep in deps if _Sources in dep]))]

_collect = aspect(
    implementation = _collect_impl,
    attr_aspects = ["deps"],
)

def _sources_impl(ctx):
    return [DefaultInfo(files = ctx.attr.dep[_Sources].files)]

sources = rule(
    implementation = _sources_impl,
    attrs = {"dep": attr.label(aspects = [_collect], mandatory = True)},
    doc = "The sources and headers of dep and its deps, without those of implementation_deps.",
)
