"""D3 (https://d3js.org), which draws the page of `ott report`, as a repository that loads whether or not it is installed.

:d3.min.js is empty where it is not: such a page has tables instead of pictures.
"""

_PLACE = "/usr/share/nodejs/d3/dist/d3.min.js"

def _system_d3_impl(ctx):
    file = ctx.path(ctx.os.environ.get("D3_JS", _PLACE))
    if file.exists:
        ctx.symlink(file, "d3.min.js")
    else:
        ctx.file("d3.min.js", "")
    ctx.file("BUILD.bazel", "exports_files([\"d3.min.js\"])\n")

system_d3 = repository_rule(
    implementation = _system_d3_impl,
    configure = True,
    doc = "Debian's package node-d3, or the file that D3_JS names.",
    environ = ["D3_JS"],
    local = True,
)
